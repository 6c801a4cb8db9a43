#include "intervals.hpp"

#include <algorithm>
#include <utility>

#include "../math.hpp"
#include "scaling.hpp"

namespace kb {

/// Predictions stay within the range of the targets, widened by this share of it on both sides.
static constexpr double MARGIN = 0.05;
/// They may lie farther beyond it where the slots agree: by what is left of the distance after this many
/// times the standard deviation of the slots' predictions is subtracted.
static constexpr double AGREEMENT = 2.0;
/// Rows after which the range of the targets limits predictions.
static constexpr double RANGE_AFTER = 30.0;
static constexpr double STEP = 0.05;
static constexpr double START = 10.0;   // the first steps are larger: 1 / (rows + this)
static constexpr double MEMORY = 50.0;  // rows of the running mean square
/// The standard deviation of some dozens of targets, in their range.
static constexpr double NORMAL_RANGE = 0.25;
static constexpr double LONGEST_MEMORY = 1000.0;  // of late targets
static constexpr double LARGEST_SHARE = 0.2;  // of the rows so far, for longer memories
static constexpr double GAIN = 8.0, PATIENCE = 300.0;  // of corrections for late targets
static constexpr double LARGEST_CORRECTION = 2.0794415416798357;  // log 8
static constexpr double LEAP = 100.0;   // a squared error counts as at most this many times the mean

void ErrorStats::widen_range(double y) {
  low = std::min(low, y);
  high = std::max(high, y);
}

void ErrorStats::add_square(double square, double memory) {
  weight = std::min(weight + 1.0, memory);
  if (variance > 0.0) square = std::min(square, LEAP * variance);
  variance += (square - variance) / weight;
}

void ErrorStats::check(const Archive& archive) const {
  archive.require(all_finite(&low, SIZE), "all numbers are finite");
  archive.require(variance >= 0.0 && weight >= 0.0 && is_count(rows), "counts are not negative");
}

double predicted_value(double f, double deviation, double mean, double sd, ErrorStats stats,
                       Bounds bounds) {
  double value = mean + sd * f;
  if (!std::isfinite(value)) value = mean;
  if (stats.rows >= RANGE_AFTER) {
    double room = MARGIN * (stats.high - stats.low);
    const double beyond = std::max(stats.low - value, value - stats.high);
    room = std::max(room, beyond - AGREEMENT * sd * deviation);
    value = std::min(std::max(value, stats.low - room), stats.high + room);
  }
  return bounds.nearest(value);
}

/// The quantile of the error at a tail, interpolated between the tracked ones (TRACKED,) in log(tail).
///
/// A smaller tail must not have a smaller quantile, though each moves by itself: the running maximum is
/// taken. Below the smallest tail the last line is extrapolated.
static double quantile(const double* quantiles, double tail) {
  double low, high = quantiles[TRACKED - 1];
  int g = TRACKED - 1;
  do {
    --g;
    low = high;
    high = std::max(high, quantiles[g]);
  } while (!(tail >= TAILS[g] || g == 0));
  const double share = log(tail / TAILS[g + 1]) / log(TAILS[g] / TAILS[g + 1]);
  return low + std::max(share, 0.0) * (high - low);
}

Interval interval_around(double value, ErrorStats stats, ErrorQuantiles quantiles, double tail,
                         Bounds bounds) {
  const double width = std::sqrt(stats.variance);
  double low = value - width * quantile(quantiles.below(), tail);
  double high = value + width * quantile(quantiles.above(), tail);
  if (!(std::isfinite(low) && std::isfinite(high)) || low > high) low = high = value;
  return {value, bounds.nearest(low), bounds.nearest(high)};
}

void ErrorQuantiles::start() {
  for (int g = 0; g < TRACKED; ++g)
    quantiles[g] = quantiles[TRACKED + g] = normal_quantile(1.0 - TAILS[g]);
  std::fill_n(corrections, 2 * TRACKED, 0.0);
}

void ErrorQuantiles::write_in_order(double* out) const {
  for (const double* side : {below(), above()}) {
    double highest = -INF;
    for (int g = TRACKED - 1; g >= 0; --g) out[g] = highest = std::max(highest, side[g]);
    out += TRACKED;
  }
}

void ErrorQuantiles::move(double error, double width, double delay, const double* ends,
                          double scored) {
  const double step = std::max(STEP / std::sqrt(1.0 + delay), 1.0 / (scored + START));
  const double independent = scored / std::sqrt(1.0 + delay), gain = GAIN / (PATIENCE + delay);
  const bool late = delay > 0.0 && ends && ends[0] > 0.0;
  // A target that never moved has no width; its quantiles stay, else they would fall for ever.
  for (int i = 0; width > 0.0 && i < 2 * TRACKED; ++i) {
    const double beyond = i < TRACKED ? -error : error;
    const double tail = TAILS[i % TRACKED], move = step / std::sqrt(tail);
    double aim = tail;
    if (late) {
      const double missed = beyond > ends[0] * ends[1 + i] ? 1.0 : 0.0;
      corrections[i] = clipped(corrections[i] + gain * (missed - tail), LARGEST_CORRECTION);
      aim = 1.0 / (1.0 + (1.0 - tail) / tail * exp(corrections[i]));
    }
    // q moves by step / sqrt(p) * ((error > width q) - s), p its tail; s = p' - (1 - p') / n leaves p' for
    // the next error; it is at least half of p'.
    aim -= std::min(0.5 * aim, (1.0 - aim) / (independent + 1.0));
    quantiles[i] += move * ((beyond > width * quantiles[i] ? 1.0 : 0.0) - aim);
  }
}

double width_memory(double delay, double rows) {
  // Early errors, which were large, must not stay.
  const double longest = std::min(LONGEST_MEMORY, std::max(LARGEST_SHARE * rows, MEMORY));
  return std::min(MEMORY * (1.0 + delay), longest);
}

Intervals::Intervals(Bounds bounds)
    : bounds_(bounds), stats_(ErrorStats::SIZE), quantiles_(2, TRACKED), corrections_(2, TRACKED) {
  quantiles().start();
}

Interval Intervals::predict(double score, double deviation, double mean, double sd,
                            double tail) {
  const double value = predicted_value(score, deviation, mean, sd, stats(), bounds_);
  return interval_around(value, stats(), quantiles(), tail, bounds_);
}

double Intervals::believed(double y, double predicted) {
  return predicted + clipped(y - predicted, std::sqrt(stats().variance));
}

void Intervals::write_ends(double* out) {
  const ErrorStats stats = this->stats();
  out[0] = stats.weight > 1.0 ? std::sqrt(stats.variance) : 0.0;
  quantiles().write_in_order(out + 1);
}

double Intervals::score(double predicted, double y, double mean, double sd, bool far, double delay,
                        const double* ends) {
  ErrorStats stats = this->stats();
  const double error = y - predicted;
  double usual = sd == 0.0 ? y : mean + clipped((y - mean) / sd, FAR_DEVIATIONS) * sd;
  if (far) usual = believed(y, predicted);
  if (stats.rows == 0.0) {
    stats.low = stats.high = usual;
    stats.variance = sd * sd;
    stats.weight = 1.0;
  } else {
    stats.widen_range(usual);
    stats.baseline_loss += (y - stats.last_target) * (y - stats.last_target);
  }
  if (!far) stats.last_target = y;
  stats.loss += error * error;
  const double scored = delay > 0.0 ? stats.weight : stats.rows;
  quantiles().move(error, std::sqrt(stats.variance), delay, ends, scored);
  const double width_error = far ? usual - predicted : error;
  stats.add_square(width_error * width_error, width_memory(delay, stats.rows));
  stats.rows += 1.0;
  return std::fabs(error);
}

double Intervals::skip(double y, double mean, double sd) {
  ErrorStats stats = this->stats();
  if (stats.rows == 0.0) {
    const double error = score(0.0, y, mean, sd);
    stats.loss = 0.0;
    return error;
  }
  // Targets come late, and there is still no error: these are of the size of their range.
  stats.widen_range(y);
  stats.baseline_loss += (y - stats.last_target) * (y - stats.last_target);
  stats.last_target = y;
  const double width = NORMAL_RANGE * (stats.high - stats.low);
  stats.variance = width * width;
  stats.weight = 1.0;
  quantiles().start();
  stats.rows += 1.0;
  return std::fabs(y);
}

void Intervals::visit(Archive& archive) {
  archive("stats", stats_);
  archive("quantiles", quantiles_);
  archive("corrections", corrections_);
  if (!archive.loaded) return;
  stats().check(archive);
  for (const Matrix<double>* numbers : {&quantiles_, &corrections_})
    archive.require(all_finite((*numbers)[0], 2 * TRACKED), "all quantiles are finite");
}

double weighted_std(const double* values, double center, const double* weights, int n) {
  double total = 0.0;
  for (int p = 0; p < n; ++p)
    if (weights[p] > 0.0) total += weights[p] * (values[p] - center) * (values[p] - center);
  return std::sqrt(total);
}

double weighted_median(const double* values, const double* weights, int n) {
  std::vector<std::pair<double, double>> pairs;  // value, weight
  double total = 0.0;
  for (int p = 0; p < n; ++p)
    if (weights[p] > 0.0 && std::isfinite(values[p])) {
      pairs.push_back({values[p], weights[p]});
      total += weights[p];
    }
  std::sort(pairs.begin(), pairs.end());
  double sum = 0.0;
  for (const auto& [value, weight] : pairs)
    if ((sum += weight) >= 0.5 * total) return value;
  return 0.0;
}

}  // namespace kb
