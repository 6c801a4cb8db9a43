// Far targets are held back here, until it is clear what they mean.
//
// A target that lies more than 10 standard deviations from the mean, though its inputs are usual, is
// *far*: it may be a spike, or a new level. Its row is not learned at once, but held back, and all that
// learns from later rows, or is an input of theirs, takes a *believed* target instead: the bank's
// prediction, moved towards the target by at most the root mean square error.
//
// - If a row with usual targets follows, the far ones before it were spikes. Their rows are learned with
//   the believed targets, or not at all if they are extreme (beyond 1,000).
// - Five far values of a target in a row are a change. If the bank had predicted half of the way, the
//   target's standard deviation was too small. Else, if the bank was off by much the same each time, the
//   level has moved, and so does the mean. Else the scale is new, and the running statistics start anew.
//   The five rows are then learned in full, with the new statistics.
//
// So neither spikes nor jumps teach the slots nonsense or make the combiner trust the wrong ones.
#pragma once
#include "scaling.hpp"

namespace kb {

/// A row that is held back.
struct HeldRow {
  Array<double> x, past, y;
  Array<double> predicted;  // by the bank, in the targets' units, not limited to their range
  Array<double> believed;   // the targets, those that are far within the usual error of the prediction
};

/// What is expected of the next row while rows are held back: with this probability its prediction is
/// wrong by this error, since the far targets stay where they are; else they were spikes.
struct Stay {
  double probability = 0.0, error = 0.0;
};

/// The rows that are held back, the oldest first, and how such streaks went on before.
class HeldTargets {
 public:
  explicit HeldTargets(int targets) : streaks_(targets, CHANGE_AFTER) {}

  std::vector<HeldRow> rows;

  /// What is believed of target k in the rows before the newest that knew it, the newest first.
  std::vector<double> believed(int k) const;
  /// One more far value of target k in a row, of which `before` came before.
  void count_streak(int k, int before) { streaks_[k][before] += 1.0; }
  /// Whether target k stays far: how often a streak of this length was followed by another far target,
  /// counted from one time in two after one far target, and from always after two that are near each other.
  Stay expected(int k, Scaling& scaling) const {
    return rows.empty() ? Stay{} : expected_after_rows(k, scaling);
  }
  /// Believe what was held back of target k: rows after it know the targets that came, of which each
  /// knows `each` of every row before it.
  void believe(int k, int each);
  /// Adapt the statistics of target k to five far values in a row; whether its level is new.
  bool adapt(int k, Scaling& scaling) const;
  /// Add inputs, which were missing so far.
  void add_inputs(int count);

  void visit(Archive& archive);

 private:
  Stay expected_after_rows(int k, Scaling& scaling) const;
  Matrix<double> streaks_;  // (targets, CHANGE_AFTER): [k][n - 1]: how often n in a row were held back
};

}  // namespace kb
