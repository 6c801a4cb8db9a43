#include "past.hpp"

#include <algorithm>

#include "../math.hpp"

namespace kb {

/// The order: lagged targets; of each period those of all targets; inputs of the row before.
void Past::write(std::int64_t rows, std::int64_t waiting, double* out) const {
  out = std::copy(lagged_.begin(), lagged_.end(), out);
  const int places = int(seasons[0].periods.size());
  Array<double> recalled(seasons[0].width());
  for (int k = 0; places > 0 && k < targets_; ++k) {
    seasons[k].recall(rows, rows + waiting, rows, recalled.data());
    for (int i = 0; i < places; ++i)
      std::copy_n(recalled.data() + i * SEASON_PAST, SEASON_PAST, out + (i * targets_ + k) * SEASON_PAST);
  }
  out += std::size_t(places) * targets_ * SEASON_PAST;
  std::copy(last_inputs_.begin(), last_inputs_.end(), out);
}

void Past::add(std::int64_t rows, const double* x, const double* y) {
  if (!lagged_.empty()) {
    std::copy_backward(lagged_.begin(), lagged_.end() - targets_, lagged_.end());
    std::copy_n(y, targets_, lagged_.begin());
  }
  for (int k = 0; season_width() > 0 && k < targets_; ++k) seasons[k].append(rows, y[k]);
  std::copy_n(x, last_inputs_.size(), last_inputs_.begin());
}

void Past::visit(Archive& archive) {
  archive("lagged", lagged_);
  if (!last_inputs_.empty()) archive("last_inputs", last_inputs_);
  for (int k = 0; season_width() > 0 && k < targets_; ++k)
    archive.part("season" + std::to_string(k), seasons[k]);
}

static constexpr double TURN = 6.283185307179586;

void SeasonHistory::recall(std::int64_t rows, std::int64_t position, std::int64_t known,
                           double* out) const {
  const auto target = [&](std::int64_t row) {
    return row < std::max<std::int64_t>(rows - size(), 0) ? NOT_A_NUMBER : targets_[row % size()];
  };
  for (std::int64_t period : periods) {
    if (period == 0) {
      out = std::fill_n(out, SEASON_PAST, NOT_A_NUMBER);
      continue;
    }
    const std::int64_t newest = position - ((position - known) / period + 1) * period;
    for (int i = 0; i < RECALLED; ++i) *out++ = target(newest - i * period);
    const std::int64_t phase = position % period;
    for (int h = 1; h <= HARMONICS; ++h) {
      const double angle = TURN * double(h * phase % period) / double(period);
      *out++ = cosine(angle);
      *out++ = sine(angle);
    }
  }
}

// --- tests of periods ----------------------------------------------------------------------------

/// The sum of values[t] values[t + lag], in four sums whose order is fixed.
static double product(const Array<double>& values, int lag) {
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  const int end = int(values.size()) - lag;
  const double *x = values.data(), *y = x + lag;
  int t = 0;
  for (; t + 3 < end; t += 4) {
    a += x[t] * y[t];
    b += x[t + 1] * y[t + 1];
    c += x[t + 2] * y[t + 2];
    d += x[t + 3] * y[t + 3];
  }
  for (; t < end; ++t) a += x[t] * y[t];
  return (a + b) + (c + d);
}

/// Subtract the straight line of least squares.
static void remove_line(Array<double>& values) {
  const int n = int(values.size());
  double mean = 0.0, slope = 0.0, squares = 0.0;
  for (int t = 0; t < n; ++t) {
    const double place = t - 0.5 * (n - 1);
    mean += values[t];
    slope += place * values[t];
    squares += place * place;
  }
  mean /= n, slope /= squares;
  for (int t = 0; t < n; ++t) values[t] -= mean + slope * (t - 0.5 * (n - 1));
}

/// values[t] - r values[t - 1], r the correlation with the value before. Empty if nothing is left: the
/// values were constant, or a line.
static Array<double> whitened(const Array<double>& values) {
  const double total = product(values, 0);
  if (!(total > 0.0)) return {};
  const double correlation = product(values, 1) / total;
  Array<double> residuals(values.size());
  for (std::size_t t = 1; t < values.size(); ++t)
    residuals[t] = values[t] - correlation * values[t - 1];
  if (!(product(residuals, 0) > 1e-20 * total)) return {};
  return residuals;
}

PeriodTests test_periods(Array<double> values) {
  const int count = int(values.size()), longest = count / 4, lags = 5 * count / 8 + 2;
  PeriodTests tests;
  tests.of_period.resize(longest + 1);
  remove_line(values);
  const Array<double> residuals = whitened(values);
  if (residuals.empty()) return tests;
  Array<double> r(lags);
  const double total = product(residuals, 0);
  for (int lag = 0; lag < lags; ++lag) r[lag] = product(residuals, lag) / total;
  tests.variance_factor = 1.0;
  for (int lag = 1; lag <= count / 8; ++lag) tests.variance_factor += 2.0 * r[lag] * r[lag];
  for (int period = SHORTEST_PERIOD; period <= longest; ++period) {
    const int multiples = std::min(PERIOD_MULTIPLES, count / 2 / period), early = multiples / 2;
    const int half = period / 2;
    double height = 0.0, contrast = 0.0, early_height = 0.0, early_contrast = 0.0;
    for (int m = 1; m <= multiples; ++m) {
      const int k = m * period;
      height += r[k];
      contrast += r[k] - 0.5 * (r[k - half] + r[k + half]);
      if (m == early) early_height = height, early_contrast = contrast;
    }
    const double late = double(multiples - early) / early;
    PeriodTest& test = tests.of_period[period];
    test.height = height / multiples;
    test.contrast = contrast / multiples;
    test.height_lasts = height - early_height - 0.5 * late * early_height;
    test.contrast_lasts = contrast - early_contrast - 0.5 * late * early_contrast;
  }
  return tests;
}

}  // namespace kb
