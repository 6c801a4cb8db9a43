#include "dense.hpp"

namespace kb {

/// out[g * number + r] = the products of G vectors with R rows, each with the bits of `dot`. Several sums
/// at once: an addition to one need not wait for the last one.
template <int G, int R>
static void dots(const double* const* ones, const double* const* rows, int count, double* out,
                 int number) {
  constexpr int sums = G * R;
  Lanes totals[(sums + 3) / WIDTH * WIDTH];
#pragma GCC unroll 16
  for (Lanes& total : totals) total = 0.0;
  const int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) {
    Lanes row[R];
#pragma GCC unroll 9
    for (int r = 0; r < R; ++r) row[r] = load(rows[r] + m);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const Lanes vector = load(ones[g] + m);
#pragma GCC unroll 9
      for (int r = 0; r < R; ++r) totals[g * R + r] = fma(vector, row[r], totals[g * R + r]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < sums; i += WIDTH) {
    const Lanes four = add_lanes(totals[i], totals[i + 1], totals[i + 2], totals[i + 3]);
    for (int j = i; j < std::min(i + WIDTH, sums); ++j) out[j / R * number + j % R] = four[j - i];
  }
  for (int m = even; m < count; ++m)
    for (int j = 0; j < sums; ++j) out[j / R * number + j % R] += ones[j / R][m] * rows[j % R][m];
}

/// The next R rows at a time; r : how many there have been.
template <int G, int R>
static void dots_by(const double* const* ones, const double* const* rows, int number, int count,
                    double* out, int& r) {
  for (; r + R <= number; r += R) dots<G, R>(ones, rows + r, count, out + r, number);
}

void all_dots(const double* const* ones, int many, const double* const* rows, int number, int count,
              double* out) {
  int r = 0;  // as many sums at once as there are registers for
  if (many == 4) {
    dots_by<4, 3>(ones, rows, number, count, out, r);
    dots_by<4, 1>(ones, rows, number, count, out, r);
  } else if (many == 2) {
    dots_by<2, 5>(ones, rows, number, count, out, r);
    dots_by<2, 4>(ones, rows, number, count, out, r);
    dots_by<2, 1>(ones, rows, number, count, out, r);
  } else {
    dots_by<1, 9>(ones, rows, number, count, out, r);
    dots_by<1, 3>(ones, rows, number, count, out, r);
    dots_by<1, 1>(ones, rows, number, count, out, r);
  }
}

void dot_rows(const double* vector, const double* rows, std::ptrdiff_t stride, int number,
              int count, double* out) {
  const double* group[9];
  for (int r = 0; r < number; r += 9) {
    const int here = std::min(number - r, 9);
    for (int i = 0; i < here; ++i) group[i] = rows + (r + i) * stride;
    all_dots(&vector, 1, group, here, count, out + r);
  }
}

void symmetric_matvec(const Matrix<double>& matrix, const double* vector, int count,
                      double* __restrict out) {
  std::fill_n(out, count, 0.0);
  for (int j = 0; j < count; ++j) {
    const double *row = matrix[j], factor = vector[j];
    for (int i = 0; i < count; ++i) out[i] += row[i] * factor;
  }
}

void add_outer(Matrix<double>& matrix, const double* __restrict vector, int count, double factor) {
  for (int i = 0; i < count; ++i) {
    double* row = matrix[i];
    const double scale = factor * vector[i];
    for (int j = 0; j < count; ++j) row[j] += scale * vector[j];
  }
}

void append_row_column(Matrix<double>& matrix, int count, const double* vector, double corner) {
  for (int i = 0; i < count; ++i) matrix[count][i] = matrix[i][count] = vector[i];
  matrix[count][count] = corner;
}

void delete_row_column(Matrix<double>& matrix, int count, int j) {
  for (int i = 0; i < count; ++i) {
    if (i == j) continue;
    delete_element(matrix[i], count, j);
    if (i > j) std::copy_n(matrix[i], count - 1, matrix[i - 1]);
  }
}

bool invert(const Matrix<double>& matrix, int count, double jitter, Matrix<double>& factor,
            Matrix<double>& inverse) {
  for (int i = 0; i < count; ++i) {
    const double* source = matrix[i];
    double* row = factor[i];
    for (int j = 0; j < i; ++j) row[j] = (source[j] - dot(row, factor[j], j)) / factor[j][j];
    const double square = (source[i] - dot(row, row, i)) + jitter * source[i];
    if (!(square > 0.0)) return false;
    row[i] = sqrt(square);
  }
  // Columns of the factor's inverse, kept as rows of `inverse`, above the diagonal.
  for (int i = 0; i < count; ++i) {
    double* row = inverse[i];
    row[i] = 1.0 / factor[i][i];
    for (int j = i + 1; j < count; ++j) row[j] = -dot(factor[j] + i, row + i, j - i) / factor[j][j];
  }
  // inverse = these rows times their transposes, from the top down: row i is not needed below i.
  for (int i = 0; i < count; ++i)
    for (int j = i; j < count; ++j) inverse[i][j] = dot(inverse[i] + j, inverse[j] + j, count - j);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j) inverse[i][j] = inverse[j][i];
  return true;
}

namespace packed {

void multiply(const double* matrix, int length, const double* vectors, int count,
              double* out, std::ptrdiff_t stride) {
  for (int k = 0; k < count; ++k) std::fill_n(out + k * stride, length, 0.0);
  for (int i = 0; i < length; i += WIDTH) {
    const double* r[WIDTH];
    for (int n = 0; n < WIDTH; ++n) r[n] = matrix + row_start(i) + n * (i + WIDTH);
    for (int k = 0; k < count; ++k) {
      const double* vector = vectors + k * stride;
      double* result = out + k * stride;
      // The block on the diagonal, then those to its left, which stand for those above too.
      Lanes diagonal = load(vector + i), v[WIDTH], s[WIDTH];
#pragma GCC unroll 4
      for (int n = 0; n < WIDTH; ++n) v[n] = vector[i + n], s[n] = load(r[n] + i) * diagonal;
      for (int j = 0; j < i; j += WIDTH) {
        Lanes x = load(vector + j), total = load(result + j);
#pragma GCC unroll 4
        for (int n = 0; n < WIDTH; ++n) {
          Lanes m = load(r[n] + j);
          total = fma(v[n], m, total);
          s[n] = fma(m, x, s[n]);
        }
        store(result + j, total);
      }
      store(result + i, load(result + i) + add_lanes(s[0], s[1], s[2], s[3]));
    }
  }
}

void update(double* matrix, int length, const double* scales, const double* factors,
            const double* vectors, std::ptrdiff_t stride) {
  const double* v[RANK];
  for (int k = 0; k < RANK; ++k) v[k] = vectors + k * stride;
  for (int i = 0; i < length; ++i) {
    double* row = matrix + row_start(i);
    int diagonal = whole_lanes(i);  // where the block on the diagonal begins
    Lanes scale = scales[i], f[RANK];
#pragma GCC unroll 8
    for (int k = 0; k < RANK; ++k) f[k] = factors[k] * v[k][i];
    for (int j = 0; j < diagonal + WIDTH; j += WIDTH) {
      // Two sums, which the processor computes side by side.
      Lanes value = scale * load(scales + j) * load(row + j);
      Lanes other = f[4] * load(v[4] + j);
#pragma GCC unroll 4
      for (int k = 0; k < 3; ++k) {
        value = fma(f[k], load(v[k] + j), value);
        other = fma(f[k + 5], load(v[k + 5] + j), other);
      }
      value = fma(f[3], load(v[3] + j), value);
      store(row + j, value + other);
    }
    // Rounding must not make the block on the diagonal unsymmetric.
    for (int j = diagonal; j < i; ++j) matrix[row_start(j) + i] = row[j];
  }
}

void copy_column(const double* matrix, int length, int j, double* out) {
  int end = whole_lanes(j) + WIDTH;
  std::copy_n(matrix + row_start(j), end, out);
  for (int i = end; i < length; ++i) out[i] = matrix[row_start(i) + j];
}

}  // namespace packed
}  // namespace kb
