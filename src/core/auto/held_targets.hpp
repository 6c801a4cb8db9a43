// Far targets are held back here, until it is clear what they mean.
//
// A target that lies more than 10 standard deviations from the mean, though its inputs are usual, is
// *far*. Its row is not learned at once, but held back:
//
// - If a row with usual targets follows, the far ones before it were outliers. Each is learned as if it
//   were 10 standard deviations away, or not at all if it is extreme (beyond 1,000).
// - Five far values of a target in a row are a change. If the bank had predicted half of the way, the
//   target's standard deviation was too small. Else, if the bank was off by much the same each time, the
//   level has moved, and so does the mean. Else the scale is new, and the running statistics start anew.
//   The five rows are then learned with the new statistics.
//
// So a jump neither teaches the slots nonsense nor makes the combiner trust the wrong ones.
#pragma once
#include "scaling.hpp"

namespace kb {

/// A row that is held back.
struct HeldRow {
  Array<double> x, past, y;
  Array<double> predicted;  // by the bank, in the targets' units, not limited to their range
};

/// The rows that are held back, the oldest first, and how such streaks went on before.
class HeldTargets {
 public:
  explicit HeldTargets(int targets) : streaks_(targets, CHANGE_AFTER) {}

  std::vector<HeldRow> rows;

  /// One more far value of target k in a row, of which `before` came before.
  void count_streak(int k, int before) { streaks_[k][before] += 1.0; }
  /// The error to expect of the next prediction of target k, while rows are held back: the last error,
  /// times how often a streak of this length was followed by another far target: at first half of the
  /// time after one, always after two; and at least times the correlation of a target with the next,
  /// since a target that stays where it is also stays after a jump.
  double expected_error(int k, Scaling& scaling) const;
  /// Adapt the statistics of target k to five far values in a row; whether its level is new.
  bool adapt(int k, Scaling& scaling) const;
  /// Add inputs, which were missing so far.
  void add_inputs(int count);

  void visit(Archive& archive);

 private:
  Matrix<double> streaks_;  // (targets, CHANGE_AFTER): [k][n - 1]: how often n in a row were held back
};

}  // namespace kb
