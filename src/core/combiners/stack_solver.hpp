// One problem of stacking on the simplex, solved up to a certificate.
#pragma once
#include "../lanes.hpp"
#include "pairwise_solver.hpp"

namespace kb {

///     minimise  E(w) = w'M w + penalty |w|^2  over the simplex.
class StackSolver {
 public:
  /// Larger errors count as this: its square, summed over 2^30 samples and times a ridge of 2^30, is
  /// finite, so that one extreme prediction does not make the moments infinite for good.
  static constexpr double LARGEST_ERROR = 0x1p470;
  /// A slot with more than this times the best slot's loss is left out: the rounding of its large moments
  /// would hide from the certificate whether the others are solved.
  static constexpr double WORST_RATIO = 0x1p60;

  StackSolver(int slots, double tolerance, int steps)
      : moments(slots, slots),
        certificate(4),
        slots_(slots),
        tolerance_(tolerance),
        steps_(steps),
        gradient_(slots),
        diagonal_(slots),
        solver_(slots) {}

  Matrix<double> moments;     // M, both halves, so that a column is a contiguous row
  Array<double> certificate;  // gap, cost, scale, moves

  /// An error of at most LARGEST_ERROR; NaN counts as that.
  static double bounded(double error) {
    if (std::fabs(error) <= LARGEST_ERROR) return error;
    return error < 0.0 ? -LARGEST_ERROR : LARGEST_ERROR;
  }

  /// Move the weights w from where they are to the minimiser over the active slots (1, else 0).
  void solve(const double* active, double penalty, double* w) {
    std::fill(certificate.begin(), certificate.end(), 0.0);
    if (PairwiseSolver::normalise(w, active, slots_) == 0) return;
    double* g = gradient_.data();
    const auto column = [&](int s, double* out) {  // of 2 M + 2 penalty
      for (int q = 0; q < slots_; ++q) out[q] = 2.0 * moments[s][q];
      out[s] += 2.0 * penalty;
    };
    int used = 0;
    double spare = -1.0;
    while (true) {
      write_gradient(penalty, w);
      double cost = 0.0;  // E(w) = w'g / 2
      for (int p = 0; p < slots_; ++p) cost += 0.5 * w[p] * g[p];
      if (spare < 0.0) {
        spare = SPARE * std::fabs(cost);
        solver_.drop_columns();
        for (int p = 0; p < slots_; ++p) diagonal_[p] = 2.0 * (moments[p][p] + penalty);
      }
      const int best = PairwiseSolver::least_gradient(g, active, slots_);
      const double gap = PairwiseSolver::gap(g, w, best, slots_), noise = gap_rounding(w, best);
      const double scale = std::fabs(cost) + spare;
      certificate = {gap, cost, scale, double(used)};
      if (gap <= std::max(tolerance_ * scale, noise) || used >= steps_) return;
      const double target = std::max(0.5 * tolerance_ * spare, 0.5 * noise);
      const int made = solver_.descend(column, active, w, g, diagonal_.data(), target,
                                       0.5 * tolerance_, cost, steps_ - used);
      if (made == 0) return;
      used += made;
      PairwiseSolver::normalise(w, active, slots_);
    }
  }

 private:
  static constexpr double ROUNDING = 4.0 * 0x1p-52;
  /// Part of the first cost that is added to the certificate's scale: the least cost may be 0.
  static constexpr double SPARE = 1e-4;

  /// g = 2 (M w + penalty w)
  void write_gradient(double penalty, const double* w) {
    double* g = gradient_.data();
    for (int q = 0; q < slots_; ++q) g[q] = 2.0 * penalty * w[q];
    for (int p = 0; p < slots_; ++p) {
      const double factor = 2.0 * w[p];
      if (!(factor > 0.0)) continue;
      const double* row = moments[p];
      for (int q = 0; q < slots_; ++q) g[q] += factor * row[q];
    }
  }

  /// The rounding error of the gap to slot s, with |M_pq| <= sqrt(M_pp M_qq). Where errors cancel, the
  /// cost can be far below the moments; no move improves on this.
  double gap_rounding(const double* w, int s) const {
    double mean = 0.0;
    for (int p = 0; p < slots_; ++p) mean += w[p] * moments[p][p];
    return ROUNDING * (mean + std::sqrt(moments[s][s]) * std::sqrt(mean));
  }

  int slots_;
  double tolerance_;
  int steps_;
  Array<double> gradient_, diagonal_;
  PairwiseSolver solver_;
};

}  // namespace kb
