// What rows know of those before them: last targets, those of earlier periods, inputs of the row before.
//
// A row is predicted, and learned later, with what was known at its prediction. So these numbers, the
// *past* of a row, are kept with predictions that wait, with rows that are held back, and for replays.
// The targets of earlier periods come from SeasonHistory, which also tells whether a stream has a period.
// Replay has the newest rows whole: slots that start later learn from them again.
#pragma once
#include <algorithm>

#include "../arrays.hpp"

namespace kb {

/// How many targets of the same phase a row knows: 1, 2 and 3 periods before it.
inline constexpr int RECALLED = 3;
/// The phase is given as cosine and sine of this many multiples of its angle.
inline constexpr int HARMONICS = 2;
/// Numbers that a row knows for each period: the recalled targets, then cosines and sines.
inline constexpr int SEASON_PAST = RECALLED + 2 * HARMONICS;
/// Columns of a scaled row for each period: the last target of the phase, the mean of those known,
/// then cosines and sines.
inline constexpr int SEASON_INPUTS = 2 + 2 * HARMONICS;

/// The newest targets of a stream, and what a row knows of earlier periods.
class SeasonHistory {
 public:
  /// size : how many of the newest targets are kept; places : for periods, some of which may be 0.
  SeasonHistory(int size, int places) : periods(places), targets_(size) {}

  Array<std::int64_t> periods;  // 0 where there is none; all of the others come first
  int width() const { return int(periods.size()) * SEASON_PAST; }

  /// Add the newest target of a stream of `rows` rows.
  void append(std::int64_t rows, double target) { targets_[(rows - 1) % size()] = target; }

  /// The targets that are kept of so many rows, the oldest first.
  Array<double> newest(std::int64_t rows) const {
    Array<double> targets(std::min(rows, size()));
    for (std::size_t i = 0; i < targets.size(); ++i)
      targets[i] = targets_[(rows - std::int64_t(targets.size() - i)) % size()];
    return targets;
  }

  /// out (width,): for each period the last known targets of the row's phase, and the phase.
  ///
  /// With position n and period p these are the targets of the rows n - mp, n - (m + 1) p, ... (the
  /// newest first, m the least whole number for which the first is known), then cos(2 pi h n / p) and
  /// sin(2 pi h n / p) for h = 1, 2, ... All are NaN where there is no period.
  ///
  /// rows : how many rows the history has seen; position, known : the number of the row in the stream,
  /// and how many targets were known when it was predicted.
  void recall(std::int64_t rows, std::int64_t position, std::int64_t known, double* out) const;

  void visit(Archive& archive) {
    archive("targets", targets_);
    archive("periods", periods);
    for (std::int64_t period : periods)
      archive.require(0 <= period && period <= size(), "periods are those of targets that are kept");
  }

 private:
  std::int64_t size() const { return std::int64_t(targets_.size()); }
  Array<double> targets_;  // that of row n at n % size
};

/// How much better a period is than half periods aside.
///
/// The values lose their line and their correlation with the value before: random walks and
/// autoregressive streams become noise. With r_k the autocorrelations of the rest, at the multiples
/// k = p, 2 p, ... up to half of the rows:
struct PeriodTest {
  double contrast;  // the mean of r_k - (r at k - p / 2 + r at k + p / 2) / 2, 0 for slow changes
  double height;    // the mean of r_k over the multiples
  // At least 0 if the mean over the later half of the multiples is at least half of that over the
  // earlier half. It is less where a cycle loses its phase.
  double contrast_lasts, height_lasts;
};

struct PeriodTests {
  /// The factor 1 + 2 sum r_k^2 by which the variance of an autocorrelation is more than 1 / rows
  /// (Bartlett's formula); 0 if there is nothing to test.
  double variance_factor = 0.0;
  std::vector<PeriodTest> of_period;  // by period, from 0 to a quarter of the values
};

inline constexpr int SHORTEST_PERIOD = 4;
/// How many multiples of a period are looked at, at most.
inline constexpr int PERIOD_MULTIPLES = 8;

PeriodTests test_periods(Array<double> values);

class Past {
 public:
  /// targets : of a row; remembered : rows whose targets a row knows; previous : how many inputs of the
  /// row before, the first ones; places : for periods, with `size` targets kept for them.
  Past(int targets, int remembered, int previous, int places, int size)
      : seasons(targets, SeasonHistory(places > 0 ? size : 0, places)),
        targets_(targets),
        lagged_(targets * remembered, NOT_A_NUMBER),
        last_inputs_(previous, NOT_A_NUMBER) {}

  std::vector<SeasonHistory> seasons;  // of each target

  int width() const { return int(lagged_.size() + last_inputs_.size()) + season_width(); }
  /// Where the inputs of the row before begin.
  int inputs_at() const { return int(lagged_.size()) + season_width(); }
  int known_targets() const { return int(lagged_.size()); }
  int targets() const { return targets_; }

  /// out (width,): what the row `waiting` rows after the next one knows, if `rows` were learned.
  void write(std::int64_t rows, std::int64_t waiting, double* out) const;
  /// Remember the newest row, of `rows` by now, with targets y (targets,).
  void add(std::int64_t rows, const double* x, const double* y);
  /// Replace target k of the row `ago` rows before the newest of `rows`.
  void replace(std::int64_t rows, int ago, int k, double y) {
    if (ago < known_targets() / targets_) lagged_[ago * targets_ + k] = y;
    if (season_width() > 0) seasons[k].append(rows - ago, y);
  }
  void visit(Archive& archive);

 private:
  int season_width() const { return targets_ * seasons[0].width(); }

  int targets_;
  Array<double> lagged_;       // the last targets: those of a row side by side, the newest row first
  Array<double> last_inputs_;
};

/// The newest `size` rows, kept as long as slots may start from them: up to row `until`. Row n is at
/// n % size.
class Replay {
 public:
  Replay(int size, std::int64_t until, int inputs, int past, int targets)
      : inputs(size, inputs),
        past(size, past),
        targets(size, targets),
        predicted_at(size),
        until_(until) {}

  Matrix<double> inputs, past, targets;
  /// How many rows were learned when each was predicted: fewer than its number if its target was delayed.
  Array<std::int64_t> predicted_at;

  int size() const { return inputs.rows(); }
  /// The index of row n.
  int at(std::int64_t n) const { return int(n % size()); }
  /// How many are kept after so many rows.
  int count(std::int64_t rows) const { return int(std::min<std::int64_t>(rows, size())); }

  /// Add the newest row of a stream of `rows` rows.
  void add(std::int64_t rows, const double* x, const double* row_past, const double* y,
           std::int64_t predicted) {
    if (rows > until_) return;
    const int i = at(rows - 1);
    std::copy_n(x, inputs.columns(), inputs[i]);
    std::copy_n(row_past, past.columns(), past[i]);
    std::copy_n(y, targets.columns(), targets[i]);
    predicted_at[i] = predicted;
  }
  /// Replace target k of row n, the newest but few.
  void replace(std::int64_t n, int k, double y) {
    if (n < until_) targets[at(n)][k] = y;
  }
  /// Add inputs, which were missing so far.
  void add_inputs(int count) {
    Matrix<double> wider(size(), inputs.columns() + count, NOT_A_NUMBER);
    for (int i = 0; i < size(); ++i) std::copy_n(inputs[i], inputs.columns(), wider[i]);
    inputs = std::move(wider);
  }
  void visit(Archive& archive) {
    archive("inputs", inputs);
    archive("past", past);
    archive("targets", targets);
    archive("predicted_at", predicted_at);
  }

 private:
  std::int64_t until_;
};

}  // namespace kb
