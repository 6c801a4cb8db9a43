// Vectors and small matrices, on plain pointers.
//
// A matrix is the first (count, count) of an array by rows, which are `stride` numbers apart. Loops
// run along rows, so that the compiler can vectorise without reordering a sum: the order of every
// sum is fixed, and so are the bits.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

#include "lanes.hpp"

namespace kb {

/// The largest multiple of four that is not above `count`.
inline int whole_lanes(int count) { return count - count % WIDTH; }

/// The least multiple of four that is not below `count`.
inline int padded_length(int count) { return (count + WIDTH - 1) / WIDTH * WIDTH; }

// --- vectors -------------------------------------------------------------------------------------

/// The dot product of two (count,) vectors, by four interleaved partial sums.
inline double dot(const double* one, const double* other, int count) {
  Lanes total = 0.0;
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) total = fma(load(one + m), load(other + m), total);
  double result = add_lanes(total);
  for (int m = even; m < count; ++m) result += one[m] * other[m];
  return result;
}

/// The dot products of a vector with R others, each with the bits of `dot`. Several sums at once:
/// an addition to one need not wait for the last one.
template <std::size_t R>
std::array<double, R> dots(const double* one, const std::array<const double*, R>& others,
                           int count) {
  std::array<Lanes, R> totals;
  totals.fill(0.0);
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) {
    Lanes x = load(one + m);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) totals[r] = fma(x, load(others[r] + m), totals[r]);
  }
  std::array<double, R> results;
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) results[r] = add_lanes(totals[r]);
  for (int m = even; m < count; ++m)
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) results[r] += one[m] * others[r][m];
  return results;
}

/// R rows of a matrix, from this one on.
template <std::size_t R>
std::array<const double*, R> rows_from(const double* first, std::ptrdiff_t stride) {
  std::array<const double*, R> rows;
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) rows[r] = first + std::ptrdiff_t(r) * stride;
  return rows;
}

/// out[r] = the dot product of a (count,) vector with row r, for r < number, each as by `dot`.
inline void dot_rows(const double* one, const double* rows, std::ptrdiff_t stride, int number,
                     int count, double* out) {
  int r = 0;
  auto several = [&]<std::size_t R>() {
    for (; r + int(R) <= number; r += int(R)) {
      auto sums = dots(one, rows_from<R>(rows + r * stride, stride), count);
      std::copy(sums.begin(), sums.end(), out + r);
    }
  };
  several.template operator()<9>();  // as many as there are registers for
  several.template operator()<3>();
  several.template operator()<1>();
}

/// out += factor * vector. out, vector: (count,).
inline void add_multiple(double* out, double factor, const double* vector, int count) {
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH)
    store(out + m, fma(factor, load(vector + m), load(out + m)));
  for (int m = even; m < count; ++m) out[m] += factor * vector[m];
}

/// `add_multiple`, then the `dots` of the new `out` with itself (first) and with R others: one
/// loop.
template <std::size_t R>
std::array<double, R + 1> add_multiple_and_dots(double* out, double factor, const double* vector,
                                                const std::array<const double*, R>& others,
                                                int count) {
  std::array<Lanes, R + 1> totals;
  totals.fill(0.0);
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) {
    Lanes x = fma(factor, load(vector + m), load(out + m));
    store(out + m, x);
    totals[0] = fma(x, x, totals[0]);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) totals[r + 1] = fma(x, load(others[r] + m), totals[r + 1]);
  }
  std::array<double, R + 1> results;
#pragma GCC unroll 16
  for (std::size_t r = 0; r <= R; ++r) results[r] = add_lanes(totals[r]);
  for (int m = even; m < count; ++m) {
    out[m] += factor * vector[m];
    results[0] += out[m] * out[m];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) results[r + 1] += out[m] * others[r][m];
  }
  return results;
}

/// vector *= factor. vector: (count,).
inline void multiply_by(double* vector, double factor, int count) {
  for (int m = 0; m < count; ++m) vector[m] *= factor;
}

/// Delete element j of a (count,) vector; the later ones move up.
inline void delete_element(double* vector, int count, int j) {
  std::copy(vector + j + 1, vector + count, vector + j);
}

/// The index of the least element, the first of equals; 0 if all are NaN.
inline int argmin(const double* vector, int count) {
  int best = 0;
  for (int i = 0; i < count; ++i)
    if (vector[i] < vector[best]) best = i;
  return best;
}

// --- square matrices -----------------------------------------------------------------------------

/// out = matrix vector, for a symmetric matrix. vector, out: (count,), different ones.
inline void symmetric_matvec(const double* matrix, std::ptrdiff_t stride, const double* vector,
                             int count, double* __restrict out) {
  std::fill_n(out, count, 0.0);
  for (int j = 0; j < count; ++j) {
    const double* row = matrix + j * stride;
    double factor = vector[j];
    for (int i = 0; i < count; ++i) out[i] += row[i] * factor;
  }
}

/// matrix += factor * vector vector'.
inline void add_outer(double* matrix, std::ptrdiff_t stride, const double* __restrict vector,
                      int count, double factor) {
  for (int i = 0; i < count; ++i) {
    double* row = matrix + i * stride;
    double own = factor * vector[i];
    for (int j = 0; j < count; ++j) row[j] += own * vector[j];
  }
}

/// Append a row and a column: `vector`, (count,), and the diagonal element `corner`.
inline void append_row_column(double* matrix, std::ptrdiff_t stride, int count,
                              const double* vector, double corner) {
  double* last = matrix + count * stride;
  for (int i = 0; i < count; ++i) {
    last[i] = vector[i];
    matrix[i * stride + count] = vector[i];
  }
  last[count] = corner;
}

/// Delete row and column j; the later ones move up.
inline void delete_row_column(double* matrix, std::ptrdiff_t stride, int count, int j) {
  for (int i = 0; i < count; ++i) {
    if (i == j) continue;
    double* row = matrix + i * stride;
    delete_element(row, count, j);
    if (i > j) std::copy_n(row, count - 1, row - stride);
  }
}

/// target = source.
inline void copy_matrix(const double* source, std::ptrdiff_t stride, int count, double* target,
                        std::ptrdiff_t target_stride) {
  for (int i = 0; i < count; ++i)
    std::copy_n(source + i * stride, count, target + i * target_stride);
}

// --- inverses ------------------------------------------------------------------------------------

/// Update the inverse of a symmetric matrix after row b and diagonal element c were appended to it.
///
/// solved = inverse b; rest = c - b' solved, the Schur complement.
inline void append_to_inverse(double* inverse, std::ptrdiff_t stride, int count,
                              const double* solved, double rest) {
  add_outer(inverse, stride, solved, count, 1.0 / rest);
  double* last = inverse + count * stride;
  for (int i = 0; i < count; ++i) {
    double own = -solved[i] / rest;
    last[i] = own;
    inverse[i * stride + count] = own;
  }
  last[count] = 1.0 / rest;
}

/// Update the inverse after row and column j were deleted; `column`, (count,), is scratch.
inline void delete_from_inverse(double* inverse, std::ptrdiff_t stride, int count, int j,
                                double* column) {
  for (int i = 0; i < count; ++i) column[i] = inverse[i * stride + j];
  add_outer(inverse, stride, column, count, -1.0 / column[j]);
  delete_row_column(inverse, stride, count, j);
}

/// inverse = the inverse of a positive definite matrix by Cholesky; false if it is not one.
///
/// Its diagonal is first multiplied by 1 + jitter. `factor` is scratch and holds the Cholesky
/// factor afterwards. The rows of all three are `stride` apart.
inline bool invert(const double* matrix, std::ptrdiff_t stride, int count, double jitter,
                   double* factor, double* inverse) {
  for (int i = 0; i < count; ++i) {
    const double* given = matrix + i * stride;
    double* own = factor + i * stride;
    for (int j = 0; j < i; ++j) {
      const double* other = factor + j * stride;
      own[j] = (given[j] - dot(own, other, j)) / other[j];
    }
    double square = (given[i] - dot(own, own, i)) + jitter * given[i];
    if (!(square > 0.0)) return false;
    own[i] = sqrt(square);
  }
  // Columns of the factor's inverse, kept as rows of `inverse`, above the diagonal.
  for (int i = 0; i < count; ++i) {
    double* row = inverse + i * stride;
    row[i] = 1.0 / factor[i * stride + i];
    for (int j = i + 1; j < count; ++j) {
      const double* own = factor + j * stride;
      row[j] = -dot(own + i, row + i, j - i) / own[j];
    }
  }
  // inverse = these rows times their transposes, from the top down: row i is not needed below i.
  for (int i = 0; i < count; ++i) {
    double* row = inverse + i * stride;
    for (int j = i; j < count; ++j) row[j] = dot(row + j, inverse + j * stride + j, count - j);
  }
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j) inverse[i * stride + j] = inverse[j * stride + i];
  return true;
}

// --- symmetric matrices of which half is kept, in blocks of four rows ----------------------------

/// Rows and columns are padded with zeros to `length`, a multiple of four (`padded_length`). Rows
/// 4b .. 4b + 3 are kept up to column 4b + 3, one behind the other: the blocks below the diagonal,
/// and the whole of the diagonal one. So loops run in steps of four, with nothing left over.
///
/// All sums have a fixed order: a product has the same bits whether it is computed alone or
/// together with others.
namespace packed {

/// Vectors of an update.
inline constexpr int RANK = 8;

/// How many numbers a matrix of padded length has.
inline std::size_t size(int length) { return std::size_t(length) * (length + WIDTH) / 2; }

/// Where row i begins.
inline std::size_t row_start(int i) {
  int block = i / WIDTH;
  return std::size_t(WIDTH) * (block + 1) * (2 * block + i % WIDTH);
}

/// Where element (i, j) is. Those of a block on the diagonal are kept twice, as (i, j) and (j, i).
inline std::size_t place(int i, int j) {
  return j / WIDTH <= i / WIDTH ? row_start(i) + j : row_start(j) + i;
}

/// out[k] = matrix vectors[k], for k < count. The rows of vectors and out have padded length and
/// are `stride` apart. Each block of four rows is used for all vectors while it is in the cache.
inline void multiply(const double* matrix, int length, const double* vectors, int count,
                     double* out, std::ptrdiff_t stride) {
  for (int k = 0; k < count; ++k) std::fill_n(out + k * stride, length, 0.0);
  for (int i = 0; i < length; i += WIDTH) {
    const auto r = rows_from<WIDTH>(matrix + row_start(i), i + WIDTH);
    for (int k = 0; k < count; ++k) {
      const double* vector = vectors + k * stride;
      double* result = out + k * stride;
      // The block on the diagonal, then those to its left, which stand for those above too.
      Lanes own = load(vector + i), v[WIDTH], s[WIDTH];
#pragma GCC unroll 4
      for (int n = 0; n < WIDTH; ++n) v[n] = vector[i + n], s[n] = load(r[n] + i) * own;
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
      Lanes sums(add_lanes(s[0]), add_lanes(s[1]), add_lanes(s[2]), add_lanes(s[3]));
      store(result + i, load(result + i) + sums);
    }
  }
}

/// matrix <- S matrix S + sum_k factors[k] vectors[k] vectors[k]', S the diagonal of `scales`.
///
/// scales: (length,); factors: (RANK,); vectors: RANK rows of padded length, `stride` apart.
inline void update(double* matrix, int length, const double* scales, const double* factors,
                   const double* vectors, std::ptrdiff_t stride) {
  const auto v = rows_from<RANK>(vectors, stride);
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

/// out = column j. out: (length,).
inline void copy_column(const double* matrix, int length, int j, double* out) {
  int end = whole_lanes(j) + WIDTH;
  std::copy_n(matrix + row_start(j), end, out);
  for (int i = end; i < length; ++i) out[i] = matrix[row_start(i) + j];
}

}  // namespace packed
}  // namespace kb
