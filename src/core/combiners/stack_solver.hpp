// Quadratics on the simplex: minimised by moving weight between two slots, up to a certificate.
//
//     minimise  g'(w - v) + (w - v)' H (w - v) / 2  over the simplex, from the weights v.
//
// H is never formed: a move between slots s and q needs two of its columns, and a column is computed
// when its slot first moves. Every few moves a *face step* goes to the minimiser on the face of the
// slots with weight, or as far towards it as all weights stay positive: pairs are slow where H is
// stiff. The certificate is the Frank-Wolfe gap sum_p w_p (g_p - min g).
#pragma once
#include <algorithm>
#include <cmath>

#include "../arrays.hpp"

namespace kb {

class PairwiseSolver {
 public:
  explicit PairwiseSolver(int slots)
      : slots_(slots),
        columns_(std::min(MAX_COLUMNS, slots), slots),
        column_of_(slots, -1),
        B_(MAX_FACE, MAX_FACE),
        move_(MAX_FACE) {}

  void drop_columns() { std::fill(column_of_.begin(), column_of_.end(), -1), stored_ = 0; }

  /// The slot of least gradient among the active ones.
  static int least_gradient(const double* g, const double* active, int slots) {
    int best = -1;
    for (int p = 0; p < slots; ++p)
      if (active[p] > 0.0 && (best < 0 || g[p] < g[best])) best = p;
    return best;
  }

  static double gap(const double* g, const double* w, int s, int slots) {
    double gap = 0.0;
    for (int p = 0; p < slots; ++p)
      if (w[p] > 0.0) gap += w[p] * (g[p] - g[s]);
    return gap;
  }

  /// Set inactive weights to 0 and divide the rest by their sum (equal weights if that is 0);
  /// returns the number of active slots.
  static int normalise(double* w, const double* active, int slots) {
    int number = 0;
    double total = 0.0;
    for (int p = 0; p < slots; ++p)
      if (active[p] > 0.0)
        ++number, total += w[p];
      else
        w[p] = 0.0;
    for (int p = 0; p < slots; ++p)
      w[p] = total > 0.0 ? w[p] / total : active[p] > 0.0 ? 1.0 / number : 0.0;
    return number;
  }

  /// Move weight until the gap is at most target + share * |cost|; returns the number of moves.
  /// column(s, out) writes column s of H; diag is its diagonal; w and g are changed.
  template <class Column>
  int descend(const Column& column, const double* active, double* w, double* g, const double* diag,
              double target, double share, double cost, int steps) {
    int pairs = 0;  // since the last face step
    for (int step = 0; step < steps; ++step) {
      const int s = least_gradient(g, active, slots_);
      if (!(gap(g, w, s, slots_) > target + share * std::fabs(cost))) return step;
      if (pairs >= PAIRS_PER_FACE_STEP) {
        pairs = 0;
        const double gain = face_step(column, w, g);
        if (gain > 0.0) {
          cost -= gain;
          continue;
        }
      }
      ++pairs;
      const double* gained = row(column, s);
      int giver = -1;
      double amount = 0.0, best = 0.0;
      for (int p = 0; p < slots_; ++p) {
        const double slope = g[p] - g[s];
        if (!(w[p] > 0.0 && slope > 0.0)) continue;
        const double curvature = gained[s] + diag[p] - 2.0 * gained[p];
        double move = w[p];
        if (slope < move * curvature) move = slope / curvature;
        const double gain = move * (slope - 0.5 * move * std::max(curvature, 0.0));
        if (gain > best) giver = p, amount = move, best = gain;
      }
      if (giver < 0) return step;
      const double left = w[giver] - amount, taken = w[s] + amount;
      if (left == w[giver] && taken == w[s]) return step;
      const double* lost = row(column, giver);
      gained = row(column, s);  // if that has dropped the first column, it is computed again
      w[giver] = std::max(left, 0.0);
      w[s] = taken;
      cost -= best;
      for (int p = 0; p < slots_; ++p) g[p] += amount * (gained[p] - lost[p]);
    }
    return steps;
  }

 private:
  static constexpr int MAX_COLUMNS = 64, MAX_FACE = 48, PAIRS_PER_FACE_STEP = 6;
  static constexpr double JITTER = 1e-14;  // makes a singular matrix positive

  int room() const { return std::min(MAX_COLUMNS, slots_); }

  template <class Column>
  const double* row(const Column& column, int s) {
    if (column_of_[s] < 0) {
      if (stored_ == room()) drop_columns();
      column_of_[s] = stored_++;
      column(s, columns_[column_of_[s]]);
    }
    return columns_[column_of_[s]];
  }

  /// One face step, if it lowers the quadratic; returns by how much.
  template <class Column>
  double face_step(const Column& column, double* w, double* g) {
    face_.clear();
    int missing = 0;
    for (int p = 0; p < slots_; ++p) {
      if (!(w[p] > 0.0)) continue;
      if (face_.size() == MAX_FACE) return 0.0;
      face_.push_back(p);
      missing += column_of_[p] < 0;
    }
    if (face_.size() < 3) return 0.0;  // a pair does as well
    if (stored_ + missing > room()) drop_columns();
    for (int p : face_) row(column, p);
    return go_to_face(w, g);
  }

  double go_to_face(double* w, double* g) {
    const int size = int(face_.size());
    if (!face_direction(g)) return 0.0;
    double slope = 0.0, curvature = 0.0, longest = 1.0;
    int first = -1;  // the member whose weight reaches 0 first
    for (int k = 0; k < size; ++k) {
      const int p = face_[k];
      slope += g[p] * move_[k];
      const double* column = columns_[column_of_[p]];
      for (int i = 0; i < size; ++i) curvature += move_[k] * move_[i] * column[face_[i]];
      if (move_[k] < 0.0 && w[p] < -longest * move_[k]) longest = -w[p] / move_[k], first = p;
    }
    if (!(slope < 0.0)) return 0.0;
    double step = longest;
    if (-slope < step * curvature) step = -slope / curvature, first = -1;
    const double gain = -step * (slope + 0.5 * step * std::max(curvature, 0.0));
    if (!(gain > 0.0)) return 0.0;
    for (int k = 0; k < size; ++k) {
      const int p = face_[k];
      w[p] = p == first ? 0.0 : std::max(w[p] + step * move_[k], 0.0);
      const double* column = columns_[column_of_[p]];
      for (int q = 0; q < slots_; ++q) g[q] += step * move_[k] * column[q];
    }
    return gain;
  }

  /// move = from the weights to the minimiser on the face; the sum of the weights fixes the last.
  bool face_direction(const double* g) {
    const int free = int(face_.size()) - 1, last = face_[free];
    const double* last_column = columns_[column_of_[last]];
    for (int i = 0; i < free; ++i) {
      const double* column = columns_[column_of_[face_[i]]];
      for (int j = 0; j <= i; ++j) {
        const int q = face_[j];
        B_[i][j] = (column[q] - column[last]) - (last_column[q] - last_column[last]);
      }
      move_[i] = g[last] - g[face_[i]];
    }
    if (!factorise(free)) return false;
    for (int i = 0; i < free; ++i) {
      for (int k = 0; k < i; ++k) move_[i] -= B_[i][k] * move_[k];
      move_[i] /= B_[i][i];
    }
    for (int i = free - 1; i >= 0; --i) {
      for (int k = i + 1; k < free; ++k) move_[i] -= B_[k][i] * move_[k];
      move_[i] /= B_[i][i];
    }
    move_[free] = 0.0;
    for (int i = 0; i < free; ++i) move_[free] -= move_[i];
    return true;
  }

  /// The Cholesky factor of B + jitter, in its lower half; false if there is none.
  bool factorise(int size) {
    double largest = 0.0;
    for (int j = 0; j < size; ++j) largest = std::max(largest, B_[j][j]);
    for (int j = 0; j < size; ++j) {
      double total = B_[j][j] + JITTER * largest;
      for (int k = 0; k < j; ++k) total -= B_[j][k] * B_[j][k];
      if (!(total > 0.0)) return false;
      const double root = B_[j][j] = std::sqrt(total);
      for (int i = j + 1; i < size; ++i) {
        total = B_[i][j];
        for (int k = 0; k < j; ++k) total -= B_[i][k] * B_[j][k];
        B_[i][j] = total / root;
      }
    }
    return true;
  }

  int slots_, stored_ = 0;
  Matrix<double> columns_;
  std::vector<int> column_of_, face_;
  Matrix<double> B_;
  std::vector<double> move_;
};

/// One problem of stacking on the simplex, solved up to a certificate:
///
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
      : moments(slots, slots), slots_(slots), tolerance_(tolerance), steps_(steps) {}

  Matrix<double> moments;  // M, both halves, so that a column is a contiguous row
  Array<double> certificate = Array<double>(4);  // gap, cost, scale, moves

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
      const int moves = solver_.descend(column, active, w, g, diagonal_.data(), target,
                                       0.5 * tolerance_, cost, steps_ - used);
      if (moves == 0) return;
      used += moves;
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
  Array<double> gradient_ = Array<double>(slots_), diagonal_ = gradient_;
  PairwiseSolver solver_{slots_};
};

}  // namespace kb
