// Signals of change: in the size of the errors, and in the weights.
//
// *Errors.* Each error is ranked among the last ones. While nothing changes the ranks are uniform, and a
// test martingale that bets on small ranks (large errors) is multiplied by a factor of mean 1, or less if
// there are ties. The Shiryaev-Roberts sum over all such martingales, one started at every row, then rises
// by at most 1 per row on average. So it passes `limit` at most once in `limit` rows, whatever the
// distribution of the errors (Vovk 2021). The mean of three such sums, for changes of different sizes, has
// the same property, and is soon as large as a third of the best of them. Three others bet on large
// ranks: on errors that have become smaller.
//
// Strictly this needs ranks among all errors since the last signal. Among the last ones only, ranks are
// not quite independent; simulated rates are about half of the promise for errors without ties, and far
// below it with ties.
//
// *Weights.* A short and a long running mean of the weights. The signal is given when they differ in more
// than half of the weight, not before the long one has its length. Then the long one starts from the short
// one, and there is no other signal before the two have come together again.
#pragma once
#include "../arrays.hpp"

namespace kb {

class ChangeDetector {
 public:
  /// slots : how many weights there are; recent : errors among which a new one is ranked; limit : a false
  /// signal of a changed error comes at most once in this many rows, on average.
  ChangeDetector(int slots, int recent, double limit)
      : limit_(limit), grew_(MARTINGALES), fell_(MARTINGALES), errors_(recent), means_(2, slots) {}

  /// 1 if the errors have grown, -1 if they have become smaller, else 0.
  int see_error(double error);
  /// Whether the weights (slots,) have just moved.
  bool see_weights(const double* weights);

  /// (slots,): the long running mean of the weights.
  const double* long_mean() const { return means_[1]; }
  int slots() const { return means_.columns(); }
  /// Start the means of the weights anew, for this many slots.
  void restart_weights(int slots) { means_ = Matrix<double>(2, slots); }

  void visit(Archive& archive);

 private:
  static constexpr int MARTINGALES = 3;
  static double bet(Array<double>& sums, double rank, double ranks);

  double limit_;
  Array<double> grew_, fell_;  // (MARTINGALES,): sums that bet on large and on small errors
  double seen_ = 0.0;          // errors since the last signal
  Array<double> errors_;       // a ring of the last ones
  double rows_ = 0.0;
  double apart_ = 0.0;    // 1 if the two means of the weights are apart
  Matrix<double> means_;  // (2, slots): the short and the long mean
};

}  // namespace kb
