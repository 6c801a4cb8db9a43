// Vectors and small matrices, on plain pointers.
//
// Loops run along rows, so that the compiler can vectorise without reordering a sum: the order of
// every sum is fixed, and so are the bits.
#pragma once
#include <algorithm>
#include <cstddef>

#include "arrays.hpp"

namespace kb {

/// The largest multiple of four that is not above `count`.
inline int whole_lanes(int count) { return count - count % WIDTH; }

/// The least multiple of four that is not below `count`.
inline int padded_length(int count) { return (count + WIDTH - 1) / WIDTH * WIDTH; }

// --- vectors -------------------------------------------------------------------------------------

/// The dot product of two (count,) vectors, by four interleaved partial sums.
inline double dot(const double* x, const double* y, int count) {
  Lanes total = 0.0;
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) total = fma(load(x + m), load(y + m), total);
  double result = add_lanes(total);
  for (int m = even; m < count; ++m) result += x[m] * y[m];
  return result;
}

/// out[g * number + r] = the dot product of vector g with row r, each as by `dot`, of 1, 2 or 4 vectors.
void all_dots(const double* const* ones, int many, const double* const* rows, int number, int count,
              double* out);

/// out[r] = the dot product of a (count,) vector with row r, for r < number, each as by `dot`.
void dot_rows(const double* x, const double* rows, std::ptrdiff_t stride, int number,
              int count, double* out);

/// out += factor * vector. out, vector: (count,).
inline void add_multiple(double* out, double factor, const double* vector, int count) {
  int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH)
    store(out + m, fma(factor, load(vector + m), load(out + m)));
  for (int m = even; m < count; ++m) out[m] += factor * vector[m];
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

// --- square matrices: the first (count, count) of a larger array ----------------------------------

/// out = matrix vector, for a symmetric matrix. vector, out: (count,), different ones.
void symmetric_matvec(const Matrix<double>& matrix, const double* vector, int count,
                      double* __restrict out);

/// matrix += factor * vector vector'.
void add_outer(Matrix<double>& matrix, const double* __restrict vector, int count, double factor);

/// Append a row and a column: `vector`, (count,), and the diagonal element `corner`.
void append_row_column(Matrix<double>& matrix, int count, const double* vector, double corner);

/// Delete row and column j; the later ones move up.
void delete_row_column(Matrix<double>& matrix, int count, int j);

/// inverse = the inverse of a positive definite matrix by Cholesky; false if it is not one.
///
/// Its diagonal is first multiplied by 1 + jitter. `factor` is scratch and holds the Cholesky
/// factor afterwards.
bool invert(const Matrix<double>& matrix, int count, double jitter, Matrix<double>& factor,
            Matrix<double>& inverse);

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
void multiply(const double* matrix, int length, const double* vectors, int count,
              double* out, std::ptrdiff_t stride);

/// matrix <- S matrix S + sum_k factors[k] vectors[k] vectors[k]', S the diagonal of `scales`.
///
/// scales: (length,); factors: (RANK,); vectors: RANK rows of padded length, `stride` apart.
void update(double* matrix, int length, const double* scales, const double* factors,
            const double* vectors, std::ptrdiff_t stride);

/// out = column j. out: (length,).
void copy_column(const double* matrix, int length, int j, double* out);

}  // namespace packed
}  // namespace kb
