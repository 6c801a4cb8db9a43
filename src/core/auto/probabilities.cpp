#include "probabilities.hpp"

#include "scaling.hpp"

namespace kb {

/// p = q, which is right for a score that is the mean of labels of -1 and 1.
static constexpr double LOGISTIC_START[] = {1.0, 0.0, 20.0, 0.0, 5.0};
static constexpr double SOFTNESS = 0.01;
/// The Hessians say how many rows the start is worth: classes differ little from one another.
static constexpr double COMMON_START[] = {2.0, 1.0, 1.0, 0.0, 1.0};
static constexpr double CLASS_START[] = {0.0, 0.0, 10.0, 0.0, 30.0};
/// The offset with which a class starts that appears later than others. Its score is near -1 at first,
/// because it has hardly been seen, but a class that has just appeared often comes again.
static constexpr double LATE_OFFSET = 1.0;

static constexpr double FORGET = 0.998;
static constexpr double FARTHEST = 1.5;  // scores are clipped here: labels are -1 and 1
static constexpr double SUREST = 1e-6;   // about the least probability of a class
static constexpr double FLAT = 1e-3;  // the least curvature of a sample: sure predictions must not freeze
                                      // the Hessian of the logistic curve
static constexpr double LIMIT = 30.0;     // of all parameters; those in common are not negative
static constexpr double LARGEST_Z = 400.0;
static constexpr double STEEPNESS = 25.0, UNIT = 0.3;  // of g, whose range is then about that of a score

void Probabilities::start(int scores) {
  curves_ = Matrix<double>(scores, PAIR);
  for (int k = 0; k < scores; ++k)
    std::copy_n(scores == 1 ? LOGISTIC_START : CLASS_START, PAIR, curves_[k]);
  std::copy_n(COMMON_START, PAIR, common_.begin());
  row_.resize(scores);
  late_errors_.assign(scores, 0.0);
  late_sums_.assign(2, 0.0);
}

/// How much is left of the Hessians after a row that counts as much as this part of one.
static double forgetting(double count) { return count < 1.0 ? 1.0 - count * (1.0 - FORGET) : FORGET; }

double Probabilities::late_count(double delay) {
  if (!(delay > 0.0)) return 1.0;
  for (std::size_t k = 0; k < row_.size(); ++k) {
    late_sums_[0] += row_[k].error * row_[k].error;
    late_sums_[1] += row_[k].error * late_errors_[k];
    late_errors_[k] = row_[k].error;
  }
  const double rows = 1.0 + delay, r = (late_sums_[1] + rows) / (late_sums_[0] + rows);
  return std::max((1.0 - r) / (1.0 + std::max(r, 0.0)), 1.0 / rows);
}

void Probabilities::grow(int scores) {
  const Matrix<double> before = curves_;
  const Array<double> common = common_;
  start(scores);
  common_ = common;
  if (scores <= 1 || before.rows() == 0) return;
  // Two classes become two of three: both were known so far.
  for (int k = std::max(before.rows(), 2); k < scores; ++k) curves_[k][OFFSET] = LATE_OFFSET;
  if (before.rows() > 1)
    std::copy(before.numbers.begin(), before.numbers.end(), curves_.numbers.begin());
}

// --- two classes ---------------------------------------------------------------------------------

/// l(s), the logarithm of the odds that a score stands for.
static double log_odds(double score) {
  const double q = 0.5 + 0.5 * clipped(score, 1.0);
  return log((q + SOFTNESS) / (1.0 - q + SOFTNESS));
}

/// odds : l(s)
double Probabilities::logistic(double odds) const {
  const double z = curves_[0][SLOPE] * odds + curves_[0][OFFSET];
  if (!std::isfinite(z)) return 0.5;
  const double p = 1.0 / (1.0 + exp(-clipped(z, 40.0)));
  return std::min(std::max(p, SUREST), 1.0 - SUREST);
}

/// One step of Newton's method for the logistic loss, with forgetting back to the start.
void Probabilities::update_logistic(double score, double label, double delay) {
  double* c = curves_[0];
  const double l = log_odds(score), p = logistic(l);
  row_[0].error = label - p;
  const double count = late_count(delay), forget = forgetting(count);
  const double error = count * (label - p), weight = count * std::max(p * (1.0 - p), FLAT);
  c[FIRST] = forget * c[FIRST] + (1.0 - forget) * LOGISTIC_START[FIRST] + weight * l * l;
  c[MIXED] = forget * c[MIXED] + weight * l;
  c[SECOND] = forget * c[SECOND] + (1.0 - forget) * LOGISTIC_START[SECOND] + weight;
  const double determinant = c[FIRST] * c[SECOND] - c[MIXED] * c[MIXED];
  if (determinant > 0.0) {
    c[SLOPE] += (c[SECOND] * l - c[MIXED]) * error / determinant;
    c[OFFSET] += (c[FIRST] - c[MIXED] * l) * error / determinant;
  }
  if (!(std::isfinite(c[SLOPE]) && std::isfinite(c[OFFSET]) && determinant > 0.0))
    std::copy_n(LOGISTIC_START, PAIR, c);
}

// --- more classes --------------------------------------------------------------------------------

void Probabilities::softmax(const double* scores) {
  const int count = this->scores();
  double top = -LARGEST_Z;
  for (int k = 0; k < count; ++k) {
    ClassRow& row = row_[k];
    const double* curve = curves_[k];
    row.score = clipped(scores[k], FARTHEST);
    row.curved_score = UNIT * asinh(STEEPNESS * (1.0 + row.score));
    double z = (common_[SLOPE] + curve[SLOPE]) * row.score;
    z += common_[OFFSET] * row.curved_score + curve[OFFSET];
    row.probability = std::isfinite(z) ? clipped(z, LARGEST_Z) : 0.0;
    top = std::max(top, row.probability);
  }
  double total = 0.0;
  for (ClassRow& row : row_) total += row.probability = exp(row.probability - top);
  const double share = 1.0 + count * SUREST;
  for (ClassRow& row : row_) row.probability = (row.probability / total + SUREST) / share;
}

/// One step for the common pair; its Hessian is the covariance of (s, g(s)) under p.
void Probabilities::update_common(int label, double count) {
  double mean_score = 0.0, mean_curved = 0.0;
  for (const ClassRow& row : row_) {
    mean_score += row.probability * row.score;
    mean_curved += row.probability * row.curved_score;
  }
  double first = 0.0, mixed = 0.0, second = 0.0;
  for (const ClassRow& row : row_) {
    const double p = row.probability, s = row.score - mean_score, g = row.curved_score - mean_curved;
    first += p * s * s;
    mixed += p * s * g;
    second += p * g * g;
  }
  newton_step(common_.data(), COMMON_START, first, mixed, second, row_[label].score - mean_score,
              row_[label].curved_score - mean_curved, 0.0, count);
}

/// Add a row to the Hessian of a pair, and move the pair by Hessian^-1 gradient. Parameters stay within
/// [least, LIMIT]. What is not finite returns to its start.
void Probabilities::newton_step(double* pair, const double* start, double first, double mixed,
                                double second, double gradient, double other_gradient,
                                double least, double count) {
  const double forget = forgetting(count);
  pair[FIRST] = forget * pair[FIRST] + (1.0 - forget) * start[FIRST] + count * first;
  pair[MIXED] = forget * pair[MIXED] + count * mixed;
  pair[SECOND] = forget * pair[SECOND] + (1.0 - forget) * start[SECOND] + count * second;
  const double determinant = pair[FIRST] * pair[SECOND] - pair[MIXED] * pair[MIXED];
  gradient *= count, other_gradient *= count;
  const double a = pair[0] + (pair[SECOND] * gradient - pair[MIXED] * other_gradient) / determinant;
  const double b = pair[1] + (pair[FIRST] * other_gradient - pair[MIXED] * gradient) / determinant;
  if (std::isfinite(a) && std::isfinite(b) && determinant > 0.0) {
    pair[0] = std::min(std::max(a, least), LIMIT);
    pair[1] = std::min(std::max(b, least), LIMIT);
  } else {
    std::copy_n(start, PAIR, pair);
  }
}

// --- any number ----------------------------------------------------------------------------------

void Probabilities::predict(const double* scores, double* out) {
  if (this->scores() == 1) {
    out[1] = logistic(log_odds(scores[0]));
    out[0] = 1.0 - out[1];
    return;
  }
  softmax(scores);
  for (const ClassRow& row : row_) *out++ = row.probability;
}

void Probabilities::update(const double* scores, int label, double delay) {
  const int classes = this->scores();
  if (classes == 1) return update_logistic(scores[0], label == 1 ? 1.0 : 0.0, delay);
  if (std::any_of(scores, scores + classes, [](double s) { return std::isnan(s); })) return;
  softmax(scores);
  for (int k = 0; k < classes; ++k) row_[k].error = (label == k ? 1.0 : 0.0) - row_[k].probability;
  const double count = late_count(delay);
  update_common(label, count);
  for (int k = 0; k < classes; ++k) {
    const double p = row_[k].probability, s = row_[k].score, weight = p * (1.0 - p);
    newton_step(curves_[k], CLASS_START, weight * s * s, weight * s, weight, row_[k].error * s,
                row_[k].error, -LIMIT, count);
  }
}

void Probabilities::visit(Archive& archive) {
  archive("curves", curves_);
  archive("common", common_);
  archive("late_errors", late_errors_);
  archive("late_sums", late_sums_);
  if (archive.loaded)
    archive.require(all_finite(curves_[0], curves_.numbers.size()) &&
                        all_finite(common_.data(), common_.size()) &&
                        all_finite(late_errors_.data(), late_errors_.size()) &&
                        all_finite(late_sums_.data(), late_sums_.size()),
                    "all parameters are finite");
}

}  // namespace kb
