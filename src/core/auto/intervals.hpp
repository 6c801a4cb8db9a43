// From scaled predictions to predictions in the target's units, with calibrated intervals.
//
// Intervals are conformal: the quantiles of the error, in units of its running root mean square, are
// moved after every sample towards their tail probability, each by itself (Gibbs and Candes 2021;
// Angelopoulos, Candes and Tibshirani 2023). Whatever the stream does, the share of errors beyond a
// quantile differs from its tail by (how far the quantile has moved) * sqrt(tail) / (step * samples).
// At first the aim is a smaller share: a quantile with a share s of n errors beyond it has the next one
// beyond it with probability (s n + 1) / (n + 1), as in split conformal prediction.
//
// A target may come late: d > 0 rows after its prediction, or h = d + 1 rows after its forecast. A quantile
// that moved by misses of ends *as they were made* would go on for d rows after it is where it should be.
// So it is compared with late errors where it stands *now*, and finds their quantile without that windup.
// If errors grow or fall within the delay, ends that were right for the last known ones are not for those to
// come. So the tail p aimed at follows, slowly, how often the ends as they were made were missed:
//
//     p' = 1 / (1 + (1 - p) / p * e^c),    c += GAIN / (PATIENCE + d) ((missed as made) - p),   |c| <= log 8
//
// A controller with a proportional and an integral part (Angelopoulos, Candes and Tibshirani 2023). Errors
// of neighboring rows are alike: n late ones count as n / sqrt(1 + d), move quantiles by steps divided by
// sqrt(1 + d), and are remembered longer.
#pragma once
#include "../arrays.hpp"

namespace kb {

/// Tail probabilities whose error quantiles are tracked, ascending; others are interpolated.
inline constexpr double TAILS[] = {0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                   0.1,    0.15,   0.2,   0.3,  0.4,   0.5};
inline constexpr int TRACKED = 12;
/// Numbers that all intervals of a row follow from: the root mean square error, then the quantiles of
/// errors below and above, in their order.
inline constexpr int INTERVAL_ENDS = 1 + 2 * TRACKED;

/// Statistics of the errors of a stream, as a view of SIZE numbers, which another object owns.
struct ErrorStats {
  static constexpr int SIZE = 8;
  explicit ErrorStats(double* stats)
      : low(stats[0]),
        high(stats[1]),
        variance(stats[2]),
        weight(stats[3]),
        rows(stats[4]),
        loss(stats[5]),
        last_target(stats[6]),
        baseline_loss(stats[7]) {}

  double &low, &high;     // the range of the targets
  double& variance;       // the running mean square of the errors
  double& weight;         // of the variance
  double& rows;
  double& loss;           // the sum of squared errors
  double& last_target;
  double& baseline_loss;  // the sum of squared errors of the last target as a prediction

  /// Let the range of the targets hold y.
  void widen_range(double y);
  /// Add a squared error to the running mean square, whose weight is at most `memory`.
  void add_square(double square, double memory);
  /// Refuse statistics from outside that no stream has.
  void check(const Archive& archive) const;
};

/// Quantiles of the errors of a stream in units of their width, below and above, as a view of what another
/// object owns.
struct ErrorQuantiles {
  double* quantiles;    // (2, TRACKED)
  double* corrections;  // (2, TRACKED): c, for late targets

  const double* below() const { return quantiles; }
  const double* above() const { return quantiles + TRACKED; }

  /// Begin with those of the normal distribution.
  void start();
  /// out (2, TRACKED): in order: that of a smaller tail is at least as large.
  void write_in_order(double* out) const;
  /// Move by an error whose target came `delay` rows late. width : of errors, now; ends (INTERVAL_ENDS,) :
  /// as they were made, their width is 0 if no error was known; scored : how many are remembered.
  void move(double error, double width, double delay, const double* ends, double scored);
};

/// How many errors a running mean square remembers of targets that come `delay` rows late, of `rows`.
double width_memory(double delay, double rows);

/// Numbers that no target lies beyond; infinite for none.
struct Bounds {
  double lower = -INF, upper = INF;
  double nearest(double value) const { return value < lower ? lower : value > upper ? upper : value; }
};

struct Interval {
  double value, low, high;
};

/// The prediction mean + sd * f, within the widened range of the targets and the bounds. Beyond the
/// range it is held back by the weighted standard deviation of the slots' predictions, in units of f.
double predicted_value(double f, double deviation, double mean, double sd, ErrorStats stats,
                       Bounds bounds);

/// A prediction, and an interval that leaves `tail` beyond each of its ends. Both ends are at the
/// prediction if they cross. All lie within the bounds.
Interval interval_around(double value, ErrorStats stats, ErrorQuantiles quantiles, double tail,
                         Bounds bounds);

/// Predictions and intervals of one target.
class Intervals {
 public:
  explicit Intervals(Bounds bounds);

  ErrorStats stats() { return ErrorStats(stats_.data()); }
  ErrorQuantiles quantiles() { return {quantiles_[0], corrections_[0]}; }
  const Bounds& bounds() const { return bounds_; }

  /// score, deviation : the scaled prediction, and the weighted standard deviation of the slots around
  /// it; mean, sd : the target's center and scale. Learns nothing.
  Interval predict(double score, double deviation, double mean, double sd, double tail);
  /// Score a prediction; returns |y - predicted|. mean, sd : the target's before this row; far : whether
  /// it may be a spike: then range and width follow it no farther than `believed`, and the last target,
  /// the baseline, is still the one before.
  /// delay : how many rows were learned since the prediction, whose ends (INTERVAL_ENDS,) these were.
  double score(double predicted, double y, double mean, double sd, bool far = false, double delay = 0.0,
               const double* ends = nullptr);
  /// out (INTERVAL_ENDS,): what intervals are made of now; the width is 0 before the first error.
  void write_ends(double* out);
  /// A target, moved towards its prediction until it is off by the root mean square error only.
  double believed(double y, double predicted);
  /// Take a target for which there was no prediction: its error does not count. Returns |y|.
  double skip(double y, double mean, double sd);

  void visit(Archive& archive);

 private:
  Bounds bounds_;
  Array<double> stats_;
  Matrix<double> quantiles_, corrections_;  // (2, TRACKED)
};

/// The weighted standard deviation of values (n,) around a center.
double weighted_std(const double* values, double center, const double* weights, int n);

/// The first of the finite values (n,) in ascending order up to which they have half of the weight; 0
/// without any.
double weighted_median(const double* values, const double* weights, int n);

}  // namespace kb
