// Intervals of forecasts, calibrated for every horizon from its own past errors.
//
// As in `Intervals`, quantiles of the error in units of its running root mean square move after every
// target. But the target of a forecast comes h rows later, and errors of neighboring rows are alike. So
// each error is compared with the ends of intervals *as they were made*, with the width and the quantiles
// of that time, in their order: then the share of errors beyond an end differs from its tail by (how far
// the quantile has moved) * sqrt(tail) / (step * samples), whatever the delay. An error that repeats for h
// rows moves a quantile h times. So that it moves no farther than independent errors would, steps are
// divided by sqrt(h); and the mean square is over more rows, the longer the horizon.
#pragma once
#include "intervals.hpp"

namespace kb {

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
  /// have forecasts. target : for the baselines; y unless some inputs are known. mean, sd : the target's.
  void score(int k, std::int64_t moment, double y, double target, std::int64_t waiting, double mean,
             double sd);

  void visit(Archive& archive);

 private:
  /// (TRACKED,): the quantiles of the errors of horizon k, below and above.
  double* quantiles(int k, int side) { return quantiles_[2 * k + side]; }
  int row(int k, std::int64_t moment) const { return int(moment % longest_) * outputs() + k; }
  void add_totals(int k, int row, double y, double target);
  void move_quantiles(int k, int row, double error);

  std::vector<int> horizons_;
  Bounds bounds_;
  bool in_range_;
  int longest_;
  Matrix<double> stats_, quantiles_, totals_;  // of every horizon
  // Forecasts that wait, a row for each moment and horizon: their intervals, baselines, the root mean
  // square at that time, and the quantiles, in order.
  Matrix<double> forecasts_, baselines_, widths_, issued_;
};

}  // namespace kb
