// Weights of forecasts, for every horizon from its own past errors.
//
//     minimise  sum_i d^(n-i) (w'e_i)^2 + RIDGE L |w|^2 + PRICE L h / (N + h) sum_p c_p w_p
//
// over the simplex, where e_i holds the errors of the slots' forecasts h rows ahead, as they were made, L
// is the sum of the best slot's squared errors and N the sum of the discounts (see `StackSolver`). A
// horizon learns its weights as soon as its own target comes, whatever the longest one is.
//
// The third part is a price of slots with coefficients: c_p is 0 for the last value and other forecasts
// that are only read off, else 1. Errors of h rows overlap, so N rows have no more than about N / h
// independent errors: by chance alone some slot is better than the last value by h / N of its loss. The
// memory, 1 / (1 - d), is longer for far horizons for the same reason.
//
// Some slots may forecast what inputs known in advance leave of a target. They are the first ones. Their
// errors are those with the known part added, so that the weights say for each horizon how much of the
// forecast is made with known inputs: the *share*.
//
// Intervals of forecasts, calibrated for every horizon from its own past errors.
//
// As those of late targets (`ErrorQuantiles`): the target of a forecast comes h rows later, h - 1 rows later
// than that of a prediction.
#pragma once
#include "../combiners/stack_solver.hpp"
#include "intervals.hpp"

namespace kb {

class HorizonStacking {
 public:
  /// horizons : in rows, ascending; prices (slots,) : c, all weight is on the least ones until a target
  /// has come; known : how many of the first slots forecast what inputs known in advance leave.
  HorizonStacking(std::vector<int> horizons, Array<double> prices, int known);

  int outputs() const { return int(horizons_.size()); }
  int slots() const { return int(prices_.size()); }
  const double* weights(int k) const { return weights_[k]; }
  /// The slots' forecasts (slots,) of horizon k that were made at a moment, of the last ones.
  const double* forecasts(int k, std::int64_t moment) const { return made_[row(k, moment)]; }
  /// The share of horizon k now, and that of its forecast of this moment; 0 if there is none.
  double share(int k) const;
  double share_due(int k, std::int64_t moment) const {
    return moment < horizons_[k] ? 0.0 : shares_[row(k, moment - horizons_[k])];
  }

  /// Keep the slots' forecasts (slots,) of horizon k until their target comes.
  void keep(int k, std::int64_t moment, const double* forecasts);
  /// Learn the target of a moment at horizon k; the last `waiting` moments have forecasts. left : what
  /// known inputs leave of the target, as far as they were known h rows before.
  void learn(int k, std::int64_t moment, std::int64_t waiting, double left, double target);

  struct Combined {
    double value, deviation;  // the weighted standard deviation of the slots around the value
  };
  Combined combine(int k, const double* forecasts) const;

  void visit(Archive& archive);

 private:
  int row(int k, std::int64_t moment) const { return int(moment % horizons_.back()) * outputs() + k; }

  std::vector<int> horizons_;
  Array<double> prices_;
  int known_;
  Matrix<double> weights_;             // (outputs, slots)
  Matrix<double> sums_;                // (outputs * slots, slots): of products of errors
  Array<double> counts_;               // (outputs,): N
  Matrix<double> made_;                // forecasts that wait, a row for each moment and output
  Array<double> shares_;               // of each of them
  Array<double> errors_, active_;      // scratch, as all that follows
  StackSolver solver_;
};

class HorizonIntervals {
 public:
  /// horizons : in rows, ascending; in_range : whether forecasts stay near the range of the targets.
  HorizonIntervals(std::vector<int> horizons, Bounds bounds, bool in_range);

  int outputs() const { return int(horizons_.size()); }
  ErrorStats stats(int k) { return ErrorStats(stats_[k]); }

  /// Sums over all scored forecasts of a horizon: squared errors of the last value, and of that of the
  /// same phase; absolute errors; targets inside their intervals; widths of intervals.
  enum { LAST_LOSS, SEASON_LOSS, ABSOLUTE, COVERED, WIDTHS, TOTALS };
  const double* totals(int k) const { return totals_[k]; }

  /// The forecast of horizon k and its interval, from the combined forecast and the weighted standard
  /// deviation of the slots around it.
  Interval forecast(int k, double point, double deviation, double tail);
  /// Keep the forecast of horizon k and its baselines (2,), made at this moment, until its target comes.
  /// Baselines are the last value, and the last value of the same phase.
  void issue(int k, std::int64_t moment, Interval forecast, const double* baselines);
  /// Score the forecast of horizon k whose target y is that of this moment; the last `waiting` moments
  /// have forecasts. target : for the baselines; y unless some inputs are known. believed : what range and
  /// width follow; y unless that may be a spike. mean, sd : the target's.
  void score(int k, std::int64_t moment, double y, double target, double believed,
             std::int64_t waiting, double mean, double sd);

  void visit(Archive& archive);

 private:
  ErrorQuantiles quantiles(int k) { return {quantiles_[2 * k], corrections_[2 * k]}; }
  int row(int k, std::int64_t moment) const { return int(moment % longest_) * outputs() + k; }
  void add_totals(int k, int row, double y, double target);

  std::vector<int> horizons_;
  Bounds bounds_;
  bool in_range_;
  int longest_;
  Matrix<double> stats_, quantiles_, corrections_, totals_;  // of every horizon
  // Forecasts that wait, a row for each moment and horizon: their intervals, baselines, and the ends
  // (INTERVAL_ENDS,) at that time.
  Matrix<double> forecasts_, baselines_, ends_;
};

}  // namespace kb
