#include "horizons.hpp"

#include "../exact_sum.hpp"
#include "scaling.hpp"

namespace kb {

/// Rows that the weights one row ahead look at; sqrt(h) times as many h rows ahead.
static constexpr double WEIGHT_MEMORY = 500.0;
static constexpr double RIDGE = 0.005, PRICE = 2.0, TOLERANCE = 1e-4;
static constexpr int STEPS = 200;

HorizonStacking::HorizonStacking(std::vector<int> horizons, Array<double> prices, int known)
    : horizons_(std::move(horizons)),
      prices_(std::move(prices)),
      known_(known),
      weights_(outputs(), slots()),
      sums_(outputs() * slots(), slots()),
      counts_(outputs()),
      made_(horizons_.back() * outputs(), slots()),
      shares_(std::size_t(horizons_.back()) * outputs()),
      errors_(slots()),
      active_(slots()),
      solver_(slots(), TOLERANCE, STEPS) {
  const double least = *std::min_element(prices_.begin(), prices_.end());
  const auto free = double(std::count(prices_.begin(), prices_.end(), least));
  for (int k = 0; k < outputs(); ++k)
    for (int p = 0; p < slots(); ++p) weights_[k][p] = prices_[p] == least ? 1.0 / free : 0.0;
}

double HorizonStacking::share(int k) const {
  ExactSum sum;
  for (int p = 0; p < known_; ++p) sum.add(weights_[k][p]);
  return sum.value();
}

void HorizonStacking::keep(int k, std::int64_t moment, const double* forecasts) {
  std::copy_n(forecasts, slots(), made_[row(k, moment)]);
  shares_[row(k, moment)] = share(k);
}

void HorizonStacking::learn(int k, std::int64_t moment, std::int64_t waiting, double left,
                            double target) {
  const double horizon = horizons_[k];
  if (horizons_[k] > waiting) return;
  const double* issued = forecasts(k, moment - horizons_[k]);
  const double discount = 1.0 - 1.0 / (WEIGHT_MEMORY * std::sqrt(horizon));
  for (int p = 0; p < slots(); ++p)
    errors_[p] = StackSolver::bounded(issued[p] - (p < known_ ? left : target));
  double least = INF;
  for (int p = 0; p < slots(); ++p) {
    double* sums = sums_[k * slots() + p];
    for (int q = 0; q < slots(); ++q) sums[q] = discount * sums[q] + errors_[p] * errors_[q];
    least = std::min(least, sums[p]);
  }
  counts_[k] = discount * counts_[k] + 1.0;
  const double price = 0.5 * PRICE * least * (horizon / (counts_[k] + horizon));
  for (int p = 0; p < slots(); ++p) {
    const double* sums = sums_[k * slots() + p];
    active_[p] = sums[p] <= StackSolver::WORST_RATIO * least ? 1.0 : 0.0;
    // As the weights have the sum 1, this is a linear price of 2 c'w.
    for (int q = 0; q < slots(); ++q)
      solver_.moments[p][q] = sums[q] + price * (prices_[p] + prices_[q]);
  }
  solver_.solve(active_.data(), RIDGE * least, weights_[k]);
}

HorizonStacking::Combined HorizonStacking::combine(int k, const double* forecasts) const {
  const double* weights = weights_[k];
  double value = 0.0, variance = 0.0;
  for (int p = 0; p < slots(); ++p)
    if (weights[p] > 0.0) value += weights[p] * forecasts[p];
  for (int p = 0; p < slots(); ++p) {
    const double away = forecasts[p] - value;
    if (weights[p] > 0.0) variance += weights[p] * (away * away);
  }
  return {value, std::sqrt(variance)};
}

void HorizonStacking::visit(Archive& archive) {
  archive("weights", weights_);
  archive("sums", sums_);
  archive("counts", counts_);
  archive("made", made_);
  archive("shares", shares_);
  if (!archive.loaded) return;
  for (const Matrix<double>* rows : {&sums_, &made_})
    archive.require(all_finite((*rows)[0], rows->numbers.size()), "all numbers are finite");
  for (const Array<double>* numbers : {&counts_, &shares_})
    archive.require(all_finite(numbers->data(), numbers->size()), "all numbers are finite");
  for (int k = 0; k < outputs(); ++k) {
    double total = 0.0;
    bool possible = counts_[k] >= 0.0;
    for (int p = 0; p < slots(); ++p) {
      total += weights_[k][p];
      possible = possible && weights_[k][p] >= 0.0 && sums_[k * slots() + p][p] >= 0.0;
    }
    archive.require(possible && std::fabs(total - 1.0) <= 1e-5, "weights are shares");
  }
}

HorizonIntervals::HorizonIntervals(std::vector<int> horizons, Bounds bounds, bool in_range)
    : horizons_(std::move(horizons)),
      bounds_(bounds),
      in_range_(in_range),
      longest_(horizons_.back()),
      stats_(outputs(), ErrorStats::SIZE),
      quantiles_(2 * outputs(), TRACKED),
      corrections_(2 * outputs(), TRACKED),
      totals_(outputs(), TOTALS),
      forecasts_(longest_ * outputs(), 3),
      baselines_(longest_ * outputs(), 2),
      ends_(longest_ * outputs(), INTERVAL_ENDS) {
  for (int k = 0; k < outputs(); ++k) quantiles(k).start();
}

Interval HorizonIntervals::forecast(int k, double point, double deviation, double tail) {
  double value = bounds_.nearest(point);
  if (in_range_) value = predicted_value(point, deviation, 0.0, 1.0, stats(k), bounds_);
  return interval_around(value, stats(k), quantiles(k), tail, bounds_);
}

void HorizonIntervals::issue(int k, std::int64_t moment, Interval forecast,
                             const double* baselines) {
  const int i = row(k, moment);
  const double ends[] = {forecast.value, forecast.low, forecast.high};
  std::copy_n(ends, 3, forecasts_[i]);
  std::copy_n(baselines, 2, baselines_[i]);
  ends_[i][0] = std::sqrt(stats(k).variance);
  quantiles(k).write_in_order(ends_[i] + 1);
}

void HorizonIntervals::score(int k, std::int64_t moment, double y, double target, double believed,
                             std::int64_t waiting, double mean, double sd) {
  const int horizon = horizons_[k];
  if (horizon > waiting) return;
  ErrorStats stats = this->stats(k);
  const double far = FAR_DEVIATIONS * sd;
  const double usual = sd == 0.0 ? believed : std::min(std::max(believed, mean - far), mean + far);
  const int i = row(k, moment - horizon);
  const double error = y - forecasts_[i][0], believed_error = believed - forecasts_[i][0];
  if (stats.rows == 0.0) {
    stats.low = stats.high = usual;
    stats.variance = std::max(sd * sd, believed_error * believed_error);
    stats.weight = 1.0;
  }
  stats.widen_range(usual);
  stats.loss += error * error;
  add_totals(k, i, y, target);
  const double delay = horizon - 1;
  quantiles(k).move(error, std::sqrt(stats.variance), delay, ends_[i], stats.rows);
  stats.add_square(believed_error * believed_error, width_memory(delay, stats.rows));
  stats.rows += 1.0;
}

void HorizonIntervals::add_totals(int k, int i, double y, double target) {
  double* totals = totals_[k];
  const double *forecast = forecasts_[i], *baselines = baselines_[i];
  totals[LAST_LOSS] += (target - baselines[0]) * (target - baselines[0]);
  totals[SEASON_LOSS] += (target - baselines[1]) * (target - baselines[1]);
  totals[COVERED] += forecast[1] <= y && y <= forecast[2] ? 1.0 : 0.0;
  totals[WIDTHS] += forecast[2] - forecast[1];
  totals[ABSOLUTE] += std::fabs(y - forecast[0]);
}

void HorizonIntervals::visit(Archive& archive) {
  archive("stats", stats_);
  archive("quantiles", quantiles_);
  archive("corrections", corrections_);
  archive("totals", totals_);
  archive("forecasts", forecasts_);
  archive("baselines", baselines_);
  archive("ends", ends_);
  if (!archive.loaded) return;
  for (int k = 0; k < outputs(); ++k) stats(k).check(archive);
  for (const Matrix<double>* numbers :
       {&quantiles_, &corrections_, &totals_, &forecasts_, &baselines_, &ends_})
    archive.require(all_finite((*numbers)[0], numbers->numbers.size()), "all numbers are finite");
}

}  // namespace kb
