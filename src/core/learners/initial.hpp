// Initial functions f = sum_j c_j k(points_j, .): what learners that start at one have in common.
#pragma once
#include "../exact_sum.hpp"
#include "../learner.hpp"

namespace kb {

/// (m, m): the kernel values of the points, for each slot.
inline Matrix<Lanes> gram_matrix(const std::vector<KernelSpec>& kernels,
                                 const Matrix<double>& points) {
  const int m = points.rows(), dimension = points.columns();
  Matrix<double> terms(dimension, m);
  for (int j = 0; j < m; ++j)
    for (int k = 0; k < dimension; ++k) terms[k][j] = points[j][k];
  Matrix<Lanes> gram(m, m);
  TermKernel kernel(kernels);
  for (int i = 0; i < m; ++i) kernel.write(points[i], terms[0], std::size_t(m), m, gram[i]);
  return gram;
}

/// Sums in each lane, rounded once.
struct ExactLanes {
  ExactSum lanes[WIDTH];
  void add(Lanes x) {
    for (int i = 0; i < WIDTH; ++i) lanes[i].add(x[i]);
  }
  Lanes value() const {
    return Lanes(lanes[0].value(), lanes[1].value(), lanes[2].value(), lanes[3].value());
  }
};

/// norm^2 = c' K c, at least 0.
inline Lanes expansion_norm(const Array<Lanes>& coefficients, const Matrix<Lanes>& gram) {
  ExactLanes total;
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    for (std::size_t j = 0; j < coefficients.size(); ++j)
      total.add(coefficients[i] * coefficients[j] * gram[int(i)][j]);
  const Lanes norm = total.value();
  return where_less(norm, 0.0, 0.0, norm);
}

}  // namespace kb
