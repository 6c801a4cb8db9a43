#include "horizon_intervals.hpp"

#include "running_stats.hpp"

namespace kb {

static constexpr double STEP = 0.05, START = 10.0;
static constexpr double MEMORY = 50.0, LONGEST_MEMORY = 1000.0;

HorizonIntervals::HorizonIntervals(std::vector<int> horizons, Bounds bounds, bool in_range)
    : horizons_(std::move(horizons)),
      bounds_(bounds),
      in_range_(in_range),
      longest_(horizons_.back()),
      stats_(outputs(), ErrorStats::SIZE),
      quantiles_(2 * outputs(), TRACKED),
      totals_(outputs(), TOTALS),
      forecasts_(longest_ * outputs(), 3),
      baselines_(longest_ * outputs(), 2),
      widths_(longest_ * outputs(), 1),
      issued_(longest_ * outputs(), 2 * TRACKED) {
  for (int i = 0; i < 2 * outputs(); ++i) write_normal_quantiles(quantiles_[i]);
}

Interval HorizonIntervals::forecast(int k, double point, double deviation, double tail) {
  double value = bounds_.nearest(point);
  if (in_range_) value = predicted_value(point, deviation, 0.0, 1.0, stats(k), bounds_);
  return interval_around(value, stats(k), quantiles(k, 0), quantiles(k, 1), tail, bounds_);
}

void HorizonIntervals::issue(int k, std::int64_t moment, Interval forecast,
                             const double* baselines) {
  const int i = row(k, moment);
  const double ends[] = {forecast.value, forecast.low, forecast.high};
  std::copy_n(ends, 3, forecasts_[i]);
  std::copy_n(baselines, 2, baselines_[i]);
  widths_[i][0] = std::sqrt(stats(k).variance);
  for (int side = 0; side < 2; ++side) {
    double highest = -INF;
    for (int g = TRACKED - 1; g >= 0; --g) {
      highest = std::max(highest, quantiles(k, side)[g]);
      issued_[i][side * TRACKED + g] = highest;
    }
  }
}

void HorizonIntervals::score(int k, std::int64_t moment, double y, double target,
                             std::int64_t waiting, double mean, double sd) {
  const int horizon = horizons_[k];
  if (horizon > waiting) return;
  ErrorStats stats = this->stats(k);
  const double far = FAR_DEVIATIONS * sd;
  const double usual = sd == 0.0 ? y : std::min(std::max(y, mean - far), mean + far);
  const int i = row(k, moment - horizon);
  const double error = y - forecasts_[i][0];
  if (stats.rows == 0.0) {
    stats.low = stats.high = usual;
    stats.variance = std::max(sd * sd, error * error);
    stats.weight = 1.0;
  }
  stats.widen_range(usual);
  stats.loss += error * error;
  add_totals(k, i, y, target);
  move_quantiles(k, i, error);
  stats.add_square(error * error, std::min(MEMORY * horizon, LONGEST_MEMORY));
  stats.rows += 1.0;
}

void HorizonIntervals::add_totals(int k, int i, double y, double target) {
  double* totals = totals_[k];
  const double *own = forecasts_[i], *baselines = baselines_[i];
  totals[LAST_LOSS] += (target - baselines[0]) * (target - baselines[0]);
  totals[SEASON_LOSS] += (target - baselines[1]) * (target - baselines[1]);
  totals[COVERED] += own[1] <= y && y <= own[2] ? 1.0 : 0.0;
  totals[WIDTHS] += own[2] - own[1];
  totals[ABSOLUTE] += std::fabs(y - own[0]);
}

/// Each quantile q of tail p moves by step / sqrt(p) * ((error > its end) - p).
void HorizonIntervals::move_quantiles(int k, int i, double error) {
  const double width = widths_[i][0], *issued = issued_[i];
  const double step =
      std::max(STEP / std::sqrt(double(horizons_[k])), 1.0 / (stats(k).rows + START));
  for (int g = 0; width > 0.0 && g < TRACKED; ++g) {
    const double move = step / std::sqrt(TAILS[g]);
    const double below = -error > width * issued[g] ? 1.0 : 0.0;
    const double above = error > width * issued[TRACKED + g] ? 1.0 : 0.0;
    quantiles(k, 0)[g] += move * (below - TAILS[g]);
    quantiles(k, 1)[g] += move * (above - TAILS[g]);
  }
}

void HorizonIntervals::visit(Archive& archive) {
  archive("stats", stats_);
  archive("quantiles", quantiles_);
  archive("totals", totals_);
  archive("forecasts", forecasts_);
  archive("baselines", baselines_);
  archive("widths", widths_);
  archive("issued", issued_);
  if (!archive.loaded) return;
  for (int k = 0; k < outputs(); ++k) stats(k).check(archive);
  for (const Matrix<double>* numbers :
       {&quantiles_, &totals_, &forecasts_, &baselines_, &widths_, &issued_})
    archive.require(all_finite((*numbers)[0], numbers->numbers.size()), "all numbers are finite");
}

}  // namespace kb
