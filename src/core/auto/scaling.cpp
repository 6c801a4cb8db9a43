#include "scaling.hpp"

#include "../transforms.hpp"
#include "past.hpp"

namespace kb {

// --- running statistics of a column --------------------------------------------------------------

/// c[0] r^7 + c[1] r^6 + ... + c[7]
static double polynomial(const double (&c)[8], double r) {
  double sum = c[0];
  for (int i = 1; i < 8; ++i) sum = sum * r + c[i];
  return sum;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    static constexpr double above[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                       6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                       1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                       1.3314166789178437745e+2, 3.3871328727963666080e+0};
    static constexpr double below[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                       3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                       5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                       4.2313330701600911252e+1, 1.0};
    const double r = 0.180625 - q * q;
    return polynomial(above, r) * q / polynomial(below, r);
  }
  static constexpr double above[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                     2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                     3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                     4.63033784615654529590e+0, 1.42343711074968357734e+0};
  static constexpr double below[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                     1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                     6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                     2.05319162663775882187e+0, 1.0};
  const double r = std::sqrt(-log(q <= 0.0 ? p : 1.0 - p)) - 1.6;
  const double x = polynomial(above, r) / polynomial(below, r);
  return q < 0.0 ? -x : x;
}

const Array<double>& normal_quantile_table() {
  static const Array<double> table = [] {
    constexpr int steps = 2048;
    constexpr double end = 0.5 / steps;
    Array<double> quantiles(steps + 1);
    for (int i = 0; i <= steps; ++i)
      quantiles[i] = normal_quantile(std::min(std::max(double(i) / steps, end), 1.0 - end));
    return quantiles;
  }();
  return table;
}

/// Rows after which mean and standard deviation forget: old levels fade.
static constexpr double MAX_COUNT = 10'000.0;
/// How far mean and standard deviation may move, in the latter, before center and scale follow.
static constexpr double DRIFT = 0.1;
/// Standard deviations before and after a change that differ by a smaller factor count as equal: five
/// values do not tell more.
static constexpr double SAME_SCALE = 4.0;
static constexpr double RELATIVE = 1e-10;  // a standard deviation below this share of the mean is rounding
static constexpr double MEMORY = 0.999;  // forgetting factor of the correlation between a row and the next
/// Of mean, center and scale: inputs and targets are at most 1e150, and a shift by a prediction may
/// move the level beyond the largest target.
static constexpr double LARGEST_LEVEL = 1e153;

double Column::standard_deviation() const {
  if (!(count > 1.0)) return 0.0;
  const double result = std::sqrt(std::max(squares, 0.0) / (count - 1.0));
  return result > RELATIVE * std::fabs(mean) ? result : 0.0;
}

double Column::deviation_from(double value, double center, double scale) {
  const double away = value - center;
  if (scale > 0.0) return away / scale;
  // A constant column's mean has the rounding of its sum.
  return std::fabs(away) <= RELATIVE * std::fabs(center) ? 0.0 : std::copysign(INF, away);
}

/// The normal quantile of the mid-rank, from a table over equal steps of probability.
double Column::rank(double value) const {
  const Array<double>& quantiles = normal_quantile_table();
  const int n = held();
  std::int64_t less = 0, same = 0;  // as wide as the numbers: so the loop is vectorized
  for (int i = 0; i < n; ++i) {
    less += ring_[i] < value;
    same += ring_[i] == value;
  }
  const double share = (double(less) + 0.5 * double(same) + 0.5) / (n + 1.0);
  const double place = share * double(quantiles.size() - 1);
  const int low = std::min(int(place), int(quantiles.size()) - 2);
  return quantiles[low] + (place - low) * (quantiles[low + 1] - quantiles[low]);
}

/// The remaining share of the last forms: the correlation, at least 0, to the power of age.
double Column::remaining() const {
  if (!(power > 0.0)) return 0.0;
  return kb::power(std::min(std::max(product / power, 0.0), 1.0), age + 1.0);
}

void Column::normalize(double value, double* forms) const {
  if (std::isnan(value) || is_extreme(value)) {
    const double share = remaining();
    for (int i = 0; i < FORMS; ++i) forms[i] = last[i] * share;
    return;
  }
  forms[FIXED] = clipped(deviation(value), CLIP);
  forms[MOVING] = clipped(deviation_from(value, mean, standard_deviation()), CLIP);
  forms[RANK] = rank(value);
}

void Column::remember_last(double value, const double* forms) {
  if (std::isnan(value) || is_extreme(value)) {
    age += 1.0;
    return;
  }
  if (age == 0.0) {
    product = MEMORY * product + last[FIXED] * forms[FIXED];
    power = MEMORY * power + last[FIXED] * last[FIXED];
  }
  std::copy_n(forms, FORMS, last);
  age = 0.0;
}

void Column::add_to_moments(double value, double most) {
  double width = standard_deviation();
  if (width > 0.0) value = mean + clipped((value - mean) / width, most) * width;
  const double total = std::min(count + 1.0, MAX_COUNT);
  const double keeping = count + 1.0 > MAX_COUNT ? (total - 1.0) / count : 1.0;
  const double away = value - mean;
  mean += away / total;
  squares = (squares + away * (value - mean)) * keeping;
  count = total;
  width = standard_deviation();
  const bool moved = std::fabs(mean - center) > DRIFT * width;
  if (moved || !(std::fabs(width - scale) <= DRIFT * width)) center = mean, scale = width;
}

void Column::push(double value) {
  ring_[std::int64_t(seen) % size_] = value;
  seen += 1.0;
}

void Column::restart() {
  double values[CHANGE_AFTER], middle = 0.0, sum = 0.0;  // values: the oldest first
  for (int i = 0; i < CHANGE_AFTER; ++i) {
    values[i] = newest(CHANGE_AFTER - i);
    middle += values[i] / CHANGE_AFTER;
  }
  for (double value : values) sum += (value - middle) * (value - middle);
  double width = std::sqrt(sum / (CHANGE_AFTER - 1));
  const double before = standard_deviation();
  if (width <= RELATIVE * std::fabs(middle)) {
    // The new level is constant: the step itself is the scale.
    width = 0.5 * std::fabs(middle - mean);
    middle = 0.5 * (middle + mean);
  } else if (before / SAME_SCALE < width && width < before * SAME_SCALE) {
    width = before;
  }
  count = CHANGE_AFTER;
  mean = center = middle;
  scale = width;
  squares = width * width * (CHANGE_AFTER - 1);
  streak = seen = 0.0;
  for (double value : values) push(value);
}

/// Whether the column steps through a few values, as an encoded category or a switch does: the last
/// CHANGE_AFTER values are equal, and the ring holds at most as many different ones. Such a step is no
/// change of the stream.
bool Column::only_steps() const {
  for (int i = 2; i <= CHANGE_AFTER; ++i)
    if (newest(i) != newest(1)) return false;
  double different[CHANGE_AFTER];
  double* end = different;
  for (int i = 0; i < held(); ++i) {
    if (std::find(different, end, ring_[i]) != end) continue;
    if (end == different + CHANGE_AFTER) return false;
    *end++ = ring_[i];
  }
  return true;
}

bool Column::update(double value, const double* forms) {
  remember_last(value, forms);
  if (std::isnan(value)) return false;
  const bool far = is_far(value);
  add_to_moments(value, FAR_DEVIATIONS);
  push(value);
  streak = far ? streak + 1.0 : 0.0;
  if (streak < CHANGE_AFTER) return false;
  const bool steps = only_steps();
  restart();
  return !steps;
}

void Column::fit(const double* values, int n) {
  count = mean = squares = center = scale = streak = seen = age = product = power = 0.0;
  std::fill_n(last, FORMS, 0.0);
  Array<double> present;
  for (int t = 0; t < n; ++t)
    if (!std::isnan(values[t])) present.push_back(values[t]);
  const int size = int(present.size());
  if (size == 0) return;
  std::sort(present.begin(), present.end());
  const double middle = (present[(size - 1) / 2] + present[size / 2]) / 2.0;
  for (double& value : present) value = std::fabs(value - middle);
  std::sort(present.begin(), present.end());
  const double usual = present[size - 1 - size / 8];  // an eighth is farther from the median
  const auto counts = [&](double value) {
    if (std::isnan(value)) return false;
    return !(usual > 0.0) || std::fabs(value - middle) <= EXTREME_DEVIATIONS * usual;
  };
  const auto total = double(std::count_if(values, values + n, counts));
  const double reach = usual > 0.0 ? 3.0 * usual : INF;
  double sum = 0.0, sum_of_squares = 0.0;  // of the clipped values
  for (int t = 0; t < n; ++t)
    if (counts(values[t])) sum += clipped(values[t] - middle, reach) / total;
  sum += middle;
  for (int t = 0; t < n; ++t) {
    if (!counts(values[t])) continue;
    const double away = middle + clipped(values[t] - middle, reach) - sum;
    sum_of_squares += away * away;
  }
  count = total;
  mean = center = sum;
  squares = sum_of_squares;
  scale = standard_deviation();
  double newest = middle;
  for (int t = 0; t < n; ++t) {
    remember_last(values[t]);
    if (age == 0.0) {
      push(values[t]);
      newest = values[t];
    }
  }
  last[RANK] = rank(newest);
}

void Column::check(const Archive& archive) const {
  const double sizes[] = {mean, center, scale};
  archive.require(all_finite(&count, STATS) && all_finite(ring_, size_), "all numbers are finite");
  archive.require(count >= 0.0 && scale >= 0.0 && power >= 0.0 && is_count(age) &&
                      is_count(seen) && is_count(streak, CHANGE_AFTER - 1) && streak <= seen,
                  "counts are whole and scales not negative");
  for (double size : sizes)
    archive.require(std::fabs(size) <= LARGEST_LEVEL, "levels are not too large");
  for (int i = 0; i < FORMS; ++i)
    archive.require(std::fabs(last[i]) <= CLIP, "the last deviations are clipped");
}

bool all_finite(const double* numbers, std::size_t count) {
  return std::all_of(numbers, numbers + count, [](double x) { return std::isfinite(x); });
}

bool is_count(double number, double most) {
  return 0.0 <= number && number <= most && std::floor(number) == number;
}

// --- rows ----------------------------------------------------------------------------------------

int RowLayout::past() const { return targets + seasons * SEASON_PAST + previous; }

Scaling::Scaling(RowLayout layout)
    : relevance(layout.relevant_sources.size(), 1.0),
      target_shift(std::max(layout.outputs, 1)),
      layout_(std::move(layout)),
      columns_(layout_.inputs, Column::STATS),
      rings_(layout_.inputs, layout_.ring),
      targets_(std::max(layout_.outputs, 1), Column::STATS),
      target_rings_(std::max(layout_.outputs, 1), layout_.target_ring),
      forms_(layout_.inputs, FORMS),
      normalized_(layout_.inputs, NOT_A_NUMBER) {
  for (int source : layout_.relevant_sources) {
    int target = -1;
    for (int i = 0; i < layout_.targets; ++i)
      for (int scaling : {STANDARD, PLAIN})
        if (layout_.places[scaling][layout_.inputs + i] == source)
          target = layout_.output_of(i);
    past_target_.push_back(target);
  }
}

void Scaling::fit_inputs(const double* X, int n) {
  const int inputs = layout_.inputs;
  Array<double> values(n);
  for (int k = 0; k < inputs; ++k) {
    for (int t = 0; t < n; ++t) values[t] = X[std::size_t(t) * inputs + k];
    input(k).fit(values.data(), n);
    normalized_[k] = NOT_A_NUMBER;
  }
}

/// Write the forms of a value of input k to forms_, unless they are there: a row that is predicted and
/// then learned is normalized once.
void Scaling::normalize(int k, double value) {
  if (value == normalized_[k] && std::signbit(value) == std::signbit(normalized_[k])) return;
  input(k).normalize(value, forms_[k]);
  normalized_[k] = value;
}

/// Add a value of input k, which was normalized, to the statistics; whether it made a new level.
bool Scaling::update(int k, double value) {
  normalized_[k] = NOT_A_NUMBER;
  return input(k).update(value, forms_[k]);
}

/// Write the forms of input or past target k to its columns; `plain` is its value as it is.
void Scaling::place(int k, const double* forms, double plain, double* out) const {
  const auto column = [&](int scaling) { return layout_.places[scaling][k]; };
  if (column(STANDARD) >= 0) out[column(STANDARD)] = forms[FIXED];
  if (column(ASINH) >= 0) out[column(ASINH)] = asinh(forms[MOVING]);
  if (column(RANKS) >= 0) out[column(RANKS)] = forms[RANK];
  if (column(PLAIN) >= 0) out[column(PLAIN)] = plain;
}

void Scaling::scale(const double* x, const double* past, double* out) {
  for (int k = 0; k < layout_.inputs; ++k) {
    const Column column = input(k);
    normalize(k, x[k]);
    const bool filled_in = std::isnan(x[k]) || column.is_extreme(x[k]);
    const double plain = filled_in ? column.center + column.scale * forms_[k][FIXED] : x[k];
    place(k, forms_[k], plain, out);
  }
  for (int i = 0; layout_.outputs > 0 && i < layout_.targets; ++i) {
    const Column target = this->target(layout_.output_of(i));
    double forms[FORMS] = {};
    // A far target is held back until it is clear what it means: only columns that the user asked for
    // have it meanwhile.
    const bool far = i >= layout_.shown && target.is_far(past[i]);
    if (!(std::isnan(past[i]) || far)) target.normalize(past[i], forms);
    place(layout_.inputs + i, forms, forms[FIXED], out);
  }
  for (int i = 0; i < layout_.seasons; ++i)
    scale_season(past + layout_.targets + i * SEASON_PAST, layout_.output_of(i),
                 out + layout_.season_column + i * SEASON_INPUTS);
  for (int k = 0; k < layout_.previous; ++k) {
    const Column column = input(k);
    const double value = past[layout_.past() - layout_.previous + k];
    const bool usable = !(std::isnan(value) || column.is_extreme(value));
    out[layout_.previous_column + k] = usable ? clipped(column.deviation(value), CLIP) : 0.0;
  }
  for (std::size_t j = 0; j < relevance.size(); ++j) {
    double value = out[layout_.relevant_sources[j]];
    if (past_target_[j] >= 0) value = shifted_log(value, target_shift[past_target_[j]]);
    out[layout_.relevant_column + j] = relevance[j] * value;
  }
}

/// The columns (SEASON_INPUTS,) of a period, from what a row knows of it and target k (SEASON_PAST,).
void Scaling::scale_season(const double* past, int k, double* out) {
  for (int i = 0; i < 2 * HARMONICS; ++i) {
    const double phase = past[RECALLED + i];
    out[2 + i] = -1.0 <= phase && phase <= 1.0 ? phase : 0.0;  // a forged file may claim anything
  }
  if (layout_.outputs == 0) return;
  const Column target = this->target(k);
  double count = 0.0;
  out[0] = out[1] = 0.0;
  for (int i = 0; i < RECALLED; ++i) {
    if (std::isnan(past[i]) || target.is_extreme(past[i])) continue;
    const double z = clipped(target.deviation(past[i]), CLIP);
    if (i == 0) out[0] = z;
    out[1] += z;
    count += 1.0;
  }
  if (count > 0.0) out[1] /= count;
}

void Scaling::add_inputs(const double* x, std::vector<int>& levels) {
  for (int k = 0; k < layout_.inputs; ++k) {
    normalize(k, x[k]);
    if (update(k, x[k])) levels.push_back(k);
  }
}

bool Scaling::scale_and_add(const double* x, const double* past, const double* y, double* out,
                            double* deviations, double* scales, std::vector<int>& levels) {
  for (int k = 0; k < layout_.outputs; ++k)
    if (outlier_level(y[k], k) != USUAL) return false;
  scale(x, past, out);
  for (int k = 0; k < layout_.inputs; ++k)
    if (update(k, x[k])) levels.push_back(k);
  for (int k = 0; k < layout_.outputs; ++k) {
    const bool has_scale = target(k).count > 0.0;
    deviations[k] = has_scale && !std::isnan(y[k]) ? target(k).deviation(y[k]) : NOT_A_NUMBER;
    scales[2 * k] = has_scale ? target(k).center : NOT_A_NUMBER;
    scales[2 * k + 1] = target(k).scale;
    add_usual(y[k], k);
  }
  return true;
}

double Scaling::mean_square(const double* row) {
  double total = 0.0;
  for (int k = 0; k < layout_.inputs; ++k) {
    const auto place = [&](int scaling) { return layout_.places[scaling][k]; };
    double z = 0.0;
    if (place(STANDARD) >= 0) {
      z = row[place(STANDARD)];
    } else if (place(ASINH) >= 0) {
      z = row[place(ASINH)];
    } else if (place(RANKS) >= 0) {
      z = row[place(RANKS)];
    } else if (input(k).scale > 0.0) {
      z = (row[place(PLAIN)] - input(k).center) / input(k).scale;
    }
    total += z * z;
  }
  return total / layout_.inputs;
}

// --- targets -------------------------------------------------------------------------------------

int Scaling::outlier_level(double y, int k) {
  if (std::isnan(y) || target(k).count == 0.0) return USUAL;
  if (target(k).is_extreme(y)) return EXTREME;
  return target(k).is_far(y) ? FAR : USUAL;
}

/// Add a target that may be missing. The first ones of a target that comes late are held back, until
/// they have a mean and a scale.
void Scaling::add_usual(double y, int k) {
  if (std::isnan(y)) return;
  if (target(k).count > 0.0) return add_target(y, k);
  if (hold_target(y, k)) restart_target(k);
}

double Scaling::scaled_target(double y, int k) {
  const Column column = target(k);
  if (std::isnan(y) || column.count == 0.0) return NOT_A_NUMBER;
  return column.scale == 0.0 ? 0.0 : clipped((y - column.center) / column.scale, FAR_DEVIATIONS);
}

double Scaling::target_correlation(int k) {
  const Column column = target(k);
  return column.power > 0.0 ? std::min(std::max(column.product / column.power, 0.0), 1.0) : 0.0;
}

/// Add the targets that are held back, as if they were at most `most` deviations away.
void Scaling::add_held(Column target, double most) {
  const int count = std::min(int(target.streak), target.held());
  for (int i = count; i > 0; --i) target.add_to_moments(target.newest(i), most);
  target.streak = 0.0;
}

void Scaling::add_target(double y, int k) {
  Column column = target(k);
  column.remember_last(y);
  add_held(column, FAR_DEVIATIONS);
  column.add_to_moments(y, FAR_DEVIATIONS);
  column.push(y);
}

bool Scaling::hold_target(double y, int k) {
  Column column = target(k);
  column.remember_last(y);
  column.push(y);
  column.streak += 1.0;
  return column.streak >= CHANGE_AFTER;
}

void Scaling::replace_held(const std::vector<double>& believed, int k) {
  const Column column = target(k);
  const int count = std::min(int(column.streak), column.held());
  for (int i = 0; i < count && i < int(believed.size()); ++i) column.newest(i + 1) = believed[i];
}

void Scaling::shift_target(double shift, int k) {
  Column column = target(k);
  column.mean += shift;
  column.center += shift;
  for (int i = CHANGE_AFTER + 1; i <= column.held(); ++i) column.newest(i) += shift;
  add_held(column, FAR_DEVIATIONS);
}

// --- state ---------------------------------------------------------------------------------------

void Scaling::continue_from(const Scaling& before) {
  std::copy(before.columns_.numbers.begin(), before.columns_.numbers.end(),
            columns_.numbers.begin());
  std::copy(before.rings_.numbers.begin(), before.rings_.numbers.end(), rings_.numbers.begin());
  normalized_.assign(normalized_.size(), NOT_A_NUMBER);
  targets_ = before.targets_;
  target_rings_ = before.target_rings_;
  target_shift = before.target_shift;
  if (relevance.size() == before.relevance.size()) relevance = before.relevance;  // else all are new
}

void Scaling::visit(Archive& archive) {
  archive("columns", columns_);
  archive("rings", rings_);
  archive("targets", targets_);
  archive("target_rings", target_rings_);
  if (!relevance.empty()) {
    archive("relevance", relevance);
    archive("target_shift", target_shift);
  }
  if (!archive.loaded) return;
  normalized_.assign(normalized_.size(), NOT_A_NUMBER);
  for (int k = 0; k < layout_.inputs; ++k) input(k).check(archive);
  for (int k = 0; k < targets_.rows(); ++k) target(k).check(archive);
  for (double factor : relevance)
    archive.require(0.0 < factor && factor <= double(relevance.size()), "relevance is a share");
  for (double shift : target_shift)
    archive.require(shift == 0.0 || (std::fabs(shift) >= LEAST_SHIFT && std::fabs(shift) <= LARGEST_SHIFT),
                    "a stream can have such a shift");
}

}  // namespace kb
