// Learners on centres: f = sum_j alpha_j k(c_j, .), with kept inputs c_j, oldest first. One loop for
// all; a learner has `step(f, sample)`: how f learns a sample. It may append one centre, and remove
// some; between two steps there are at most `budget`.
//
// A pack has one slot, in lane 0. Centres depend on the targets: outputs share nothing.
#pragma once
#include <cmath>

#include "../dense.hpp"
#include "../learner.hpp"

namespace kb {

/// Part of k(c, c) by which the diagonal of a Gram matrix is raised so that it can be inverted.
/// Smooth kernels on near inputs have matrices that no arithmetic can invert.
inline constexpr double JITTER = 1e-8;

/// A centre that is new by a smaller fraction of k(x, x) is not kept: it would spoil the inverse.
inline constexpr double DEPENDENT = 1e-6;

/// What a step knows of the present sample.
struct Sample {
  std::int64_t number;     // from 0
  const double* x;         // (dimension,)
  const Samples& samples;  // the newest ones, with this one
  const Loss& loss;
  double prediction;       // f(x) before the sample is learned
  double target;           // y; the prediction if it is missing
  bool missing;
  double slope;            // l'(f(x), y); 0 if y is missing
  double norm;             // |f|^2: the step keeps it up to date
  double effect = 0.0;     // how far dropped terms moved the window's values, over their size

  /// The parabola weight (f - response)^2 that second-order methods put in the place of the loss:
  /// with the loss's curvature, and its slope at f(x).
  struct Parabola {
    double error;     // response - f(x)
    double response;  // y for the squared loss
    double weight;    // curvature / 2
  };
  Parabola parabola() const {
    const CurvatureRule rule = loss.curvature_rule;
    if (missing || rule == CurvatureRule::constant || rule == CurvatureRule::none)
      return {target - prediction, target, 1.0};
    const double curvature = step_curvature(loss, prediction, target, slope);
    const double error = -slope / curvature;
    return {error, prediction + error, 0.5 * curvature};
  }
};

/// f = sum_j alpha_j k(c_j, .), with the kernel values of the centres and the window's inputs.
class Centres {
 public:
  /// keeps_gram : whether K is kept, for methods that need it.
  Centres(const LearnerSpec& spec, bool keeps_gram)
      : capacity(spec.settings.count("budget") + 1),
        gram(keeps_gram ? capacity : 0, keeps_gram ? capacity : 0),
        dimension_(spec.dimension),
        window_(spec.objective.window),
        kernel_(spec.kernels) {}

  void visit(Archive& archive) {
    archive("size", size_);
    archive.require(size_ >= 0 && size_ < capacity, "size is not one of up to budget centres");
    archive("centres", points_);
    archive("coefficients", alpha);
    archive("window_features", past_);
    if (keeps_gram()) archive("gram", gram);
  }

  int size() const { return int(size_); }
  /// Coordinate i of the centres, (size,).
  const double* coordinates(int i) const { return points_[i]; }
  /// f at the present point.
  double value() const { return dot(alpha.data(), k.data(), size()); }

  /// k and self_kernel of the present point.
  void compare(const double* x) { self_kernel = compare(x, k.data()); }
  /// The same at a point that is asked for. Returns f there.
  double predict(const double* x) {
    query_self_ = compare(x, query_k_.data());
    return dot(alpha.data(), query_k_.data(), size());
  }
  bool may_fail() const { return kernel_.may_fail(); }
  const double* query_k() const { return query_k_.data(); }
  double query_self() const { return query_self_; }
  /// The present point is the one that was just asked for.
  void compare_as_query() {
    std::copy_n(query_k_.begin(), size_, k.begin());
    self_kernel = query_self_;
  }

  /// The present point becomes the newest centre.
  void append(const Sample& sample, double coefficient) {
    const int m = size();
    if (keeps_gram()) append_row_column(gram, m, k.data(), self_kernel);  // K <- (K k; k' k(x, x))
    for (int i = 0; i < dimension_; ++i) points_[i][m] = sample.x[i];
    alpha[m] = coefficient;
    k[m] = self_kernel;
    size_ = m + 1;
    // Its kernel values with the window's older samples.
    const int older = count_older(sample.number);
    if (older == 0) return;
    const Samples& samples = sample.samples;
    const double* inputs = samples.inputs(0) + samples.place(sample.number) - older;
    kernel_.write(sample.x, inputs, std::size_t(samples.length + SLIDE_PERIOD), older,
                  lanes_.data());
    for (int age = 1; age <= older; ++age)
      past_[ring(sample.number - age)][m] = lanes_[older - age][0];
  }

  /// Remove centre j; those behind it move up.
  void remove(int j) {
    if (keeps_gram()) delete_row_column(gram, size(), j);
    for (int i = 0; i < dimension_; ++i) delete_element(points_[i], size(), j);
    delete_element(alpha.data(), size(), j);
    delete_element(k.data(), size(), j);
    for (int i = 0; i < past_.rows(); ++i) delete_element(past_[i], size(), j);
    --size_;
  }

  /// (size,): k(c_j, c_i) of centre j with all, until the next call.
  const double* row(int j) {
    for (int i = 0; i < dimension_; ++i) centre_[i] = points_[i][j];
    write(centre_.data(), points_[0], capacity, size(), row_.data());
    return row_.data();
  }

  /// |f|^2 = alpha' K alpha; one row of K at a time for methods that keep no K; O(budget^2).
  double compute_norm() {
    double total = 0.0;
    if (keeps_gram()) {
      symmetric_matvec(gram, alpha.data(), size(), row_.data());
      return std::max(dot(alpha.data(), row_.data(), size()), 0.0);
    }
    for (int i = 0; i < size(); ++i) {
      const double* kernels = row(i);
      double value = 0.0;  // f(c_i)
      for (int j = 0; j < size(); ++j) value += alpha[j] * kernels[j];
      total += alpha[i] * value;
    }
    return std::max(total, 0.0);
  }

  /// How far dropping the oldest term would move the values on the window, relative to the largest.
  double effect_of_oldest(std::int64_t number) {
    double moved = std::max(0.0, absolute(alpha[0] * k[0]));  // 0 for NaN
    double largest = std::max(0.0, absolute(value()));
    const int older = sum_past(number);
    for (int i = 0; i < older; ++i) {
      moved = std::max(moved, absolute(alpha[0] * past_[i][0]));
      largest = std::max(largest, absolute(sums_[i]));
    }
    return moved > 0.0 ? moved / largest : 0.0;
  }

  /// f on the window after sample `number`, the present point; the values before the first are 0.
  void write_values(std::int64_t number, Lanes* values) {
    const int older = sum_past(number), newest = window_ - 1;
    std::fill_n(values, newest - older, Lanes(0.0));
    for (int age = 1; age <= older; ++age)
      values[newest - age] = first_lane(sums_[ring(number - age)]);
    values[newest] = first_lane(value());
    if (newest > 0) std::copy_n(k.begin(), size_, past_[ring(number)]);
  }

  /// Start with these terms; the points are the oldest centres, with kernel values K.
  void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                  const Matrix<Lanes>& K) {
    if (points.rows() >= capacity) throw std::invalid_argument("more terms than the budget");
    size_ = points.rows();
    for (int j = 0; j < size(); ++j) {
      for (int i = 0; i < dimension_; ++i) points_[i][j] = points[j][i];
      alpha[j] = coefficients[j][0];
      for (int i = 0; keeps_gram() && i < size(); ++i) gram[i][j] = K[i][j][0];
    }
  }

  const int capacity;   // budget + 1: a new centre may come before an old one is removed
  Matrix<double> gram;  // state; K, if it is kept
  Array<double> alpha = Array<double>(capacity);  // state; (capacity,), like all rows over centres
  Array<double> k = alpha;                        // k(x, c_j) of the present point x
  double self_kernel = 0.0;  // k(x, x)

 private:
  bool keeps_gram() const { return gram.rows() > 0; }
  /// out[j] = k(x, t_j), j < count; coordinate i of t_j is at terms[i * stride + j].
  void write(const double* x, const double* terms, std::size_t stride, int count, double* out) {
    if (count == 0) return;
    kernel_.write(x, terms, stride, count, lanes_.data());
    for (int j = 0; j < count; ++j) out[j] = lanes_[j][0];
  }
  double compare(const double* x, double* out) {
    double self;
    write(x, points_[0], capacity, size(), out);
    write(x, x, 1, 1, &self);
    return self;
  }

  /// How many samples the window has before this one.
  int count_older(std::int64_t number) const {
    return int(std::min<std::int64_t>(number, window_ - 1));
  }
  int ring(std::int64_t number) const { return int(number % (window_ - 1)); }
  /// sums[ring(n)] = f at sample n, for the window's samples before this one. Returns their number:
  /// they fill the ring from its start.
  int sum_past(std::int64_t number) {
    const int older = count_older(number);
    dot_rows(alpha.data(), past_[0], capacity, older, size(), sums_.data());
    return older;
  }

  // settings
  int dimension_, window_;
  TermKernel kernel_;
  // state
  std::int64_t size_ = 0;
  Matrix<double> points_{dimension_, capacity};  // a centre per column
  Matrix<double> past_{window_ - 1, capacity};   // k(x_n, c_j) in row n % (window - 1)
  // scratch
  Array<double> query_k_ = alpha, row_ = alpha;
  double query_self_ = 0.0;
  Array<double> centre_ = Array<double>(dimension_), sums_ = Array<double>(window_);
  Array<Lanes> lanes_ = Array<Lanes>(std::max(capacity, window_));
};

/// The inverse of a matrix that grows and shrinks with the centres, by rank-one updates.
class Inverse {
 public:
  explicit Inverse(int capacity) : solved(capacity), matrix_(capacity, capacity) {}
  void visit(Archive& archive) { archive("inverse", matrix_); }

  const double* operator[](int j) const { return matrix_[j]; }
  /// out = inverse vector.
  void multiply(const double* vector, int size, double* out) const {
    symmetric_matvec(matrix_, vector, size, out);
  }
  /// A row b was appended to the matrix: solved = inverse b, rest is the Schur complement.
  void append(int size, double rest) {
    add_outer(matrix_, solved.data(), size, 1.0 / rest);
    for (int i = 0; i < size; ++i) column_[i] = -solved[i] / rest;
    append_row_column(matrix_, size, column_.data(), 1.0 / rest);
  }
  void remove(int size, int j) {
    for (int i = 0; i < size; ++i) column_[i] = matrix_[i][j];
    add_outer(matrix_, column_.data(), size, -1.0 / column_[j]);
    delete_row_column(matrix_, size, j);
  }
  /// From the matrix, with its diagonal raised; stays as it is if that cannot be inverted.
  void refresh(const Matrix<double>& matrix, int size, double jitter) {
    if (!invert(matrix, size, jitter, factor_, fresh_)) return;
    for (int i = 0; i < size; ++i) std::copy_n(fresh_[i], size, matrix_[i]);
  }

  Array<double> solved;  // scratch

 private:
  Matrix<double> matrix_;
  Matrix<double> factor_ = matrix_, fresh_ = matrix_;  // scratch
  Array<double> column_ = solved;
};

/// K^-1, with the diagonal of K raised by `jitter` of itself before it is inverted: a centre that
/// is new by less adds nothing. (kafbox adds a number to the diagonal, the same for kernels with
/// k(x, x) = 1.) It is computed again from K once in `capacity` samples, by the absolute number of
/// the sample, so that rounding does not add up.
class GramInverse : public Inverse {
 public:
  GramInverse(const Centres& f, double jitter) : Inverse(f.capacity), jitter_(jitter) {}

  /// solved = K^-1 k(x, centres); returns k(x, x) - k' solved, the part of x that is new.
  double project(const Centres& f) {
    multiply(f.k.data(), f.size(), solved.data());
    return std::max(f.self_kernel - dot(f.k.data(), solved.data(), f.size()), 0.0);
  }
  /// The present point becomes a centre; rest is from `project`.
  void append(Centres& f, const Sample& sample, double coefficient, double rest) {
    Inverse::append(f.size(), rest + jitter_ * f.self_kernel);
    f.append(sample, coefficient);
  }
  void remove(Centres& f, int j) {
    Inverse::remove(f.size(), j);
    f.remove(j);
  }
  /// To be called after each sample.
  void refresh(const Centres& f, std::int64_t number) {
    if ((number + 1) % f.capacity == 0) Inverse::refresh(f.gram, f.size(), jitter_);
  }

 private:
  double jitter_;
};

/// A learner on centres: a subclass is a method.
class CentreLearner : public Learner {
 public:
  /// keeps_gram : whether the method needs K. starts : whether it may start at any f: if its state is
  /// centres, coefficients, K and sums from 0 on.
  CentreLearner(const LearnerSpec& spec, bool keeps_gram, bool starts)
      : spec_(spec), f_(spec, keeps_gram), starts_(starts) {}

  void visit(Archive& archive) final {
    f_.visit(archive);
    visit_method(archive);
  }

  void learn(const Block& block, Record* records) override {
    Record& record = records[0];
    const Loss& loss = *spec_.objective.losses[0];
    for (int t = 0; t < block.count; ++t) {
      if (block.samples.uses_query)
        f_.compare_as_query();
      else
        f_.compare(block.x(t));
      const double prediction = f_.value(), target = block.targets[0][t][0];
      const bool missing = std::isnan(target);
      const double slope = missing ? 0.0 : loss.derivative(prediction, target);
      Sample sample{block.first + t, block.x(t), block.samples, loss, prediction,
                    missing ? prediction : target, missing, slope, record.norms[t][0]};
      step(f_, sample);
      record.predictions[t] = first_lane(prediction);
      record.norms[t + 1] = first_lane(sample.norm);
      record.effects[t] = first_lane(sample.effect);
      f_.write_values(sample.number, record.values[t + 1]);
    }
  }

  void predict(const Query& query, Lanes* out) override {
    *out = first_lane(f_.predict(query.x));
  }

  void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                  Record* records) override {
    if (!starts_) return Learner::start_from(points, coefficients, records);
    const Matrix<Lanes> gram = gram_matrix(spec_.kernels, points);
    f_.start_from(points, coefficients, gram);
    records[0].norms[0] = first_lane(expansion_norm(coefficients, gram)[0]);
  }

  bool may_fail() const override { return f_.may_fail(); }
  Lanes dropped(int) const override { return first_lane(dropped_); }

 protected:
  /// List what the method keeps beside the centres.
  virtual void visit_method(Archive& archive) = 0;
  /// How f learns a sample.
  virtual void step(Centres& f, Sample& sample) = 0;

  double number(const char* setting) const { return spec_.settings.number(setting); }

  LearnerSpec spec_;
  Centres f_;
  double dropped_ = 0.0;  // norm^2 of all terms that were removed; state of methods that remove some

 private:
  bool starts_;
};

}  // namespace kb
