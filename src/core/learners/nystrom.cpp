// NystromSGD: gradient descent on the features that some landmarks span, one kernel per pack.
//
// The first inputs that are new enough become landmarks c. With K = L L' their Gram matrix, the
// features z(x) = L^-1 k(x, c) have z(x)'z(t) = k(x, c) K^-1 k(c, t), and
//
//     weights <- (1 - rate * regularization) weights - rate * l'(f(x), y) z(x).
//
// f(x) = weights'z(x) = alpha'k(x, c) with alpha = L'^-1 weights: a value needs the kernel row
// alone. The rows of the window's samples are kept.
#include <cmath>

#include "../dense.hpp"
#include "../learner.hpp"
#include "step_size.hpp"

namespace kb {

namespace {

constexpr double JITTER = 1e-8;  // part of itself by which the diagonal of K is raised

class NystromSGD final : public Learner {
 public:
  explicit NystromSGD(const LearnerSpec& spec)
      : step_size_(spec.settings, spec.objective.regularization),
        regularization_(spec.objective.regularization),
        novelty_(spec.settings.number("novelty")),
        most_(spec.settings.count("landmarks")),
        window_(spec.objective.window),
        dimension_(spec.dimension),
        loss_(spec.objective.losses.at(0)),
        kernel_(spec.kernels),
        landmarks_(dimension_, most_),
        factor_(most_, most_),
        weights_(most_),
        alpha_(most_),
        window_rows_(window_, most_),
        row_(most_),
        query_row_(most_),
        z_(most_),
        window_values_(window_),
        lanes_(std::max(most_, window_)) {}

  std::unique_ptr<Learner> clone() const override { return std::make_unique<NystromSGD>(*this); }

  void visit(Archive& archive) override {
    archive("count", count_);
    archive.require(count_ >= 0 && count_ <= most_, "count is not one of landmarks");
    archive("landmarks", landmarks_);
    archive("factor", factor_);
    archive("weights", weights_);
    archive("alpha", alpha_);
    archive("window_rows", window_rows_);
    archive("squares", squares_);
  }

  void learn(const Block& block, Record* records) override {
    Record& record = records[0];
    for (int t = 0; t < block.count; ++t) {
      const std::int64_t number = block.first + t;
      const double* x = block.x(t);
      if (block.samples.uses_query)
        std::copy_n(query_row_.begin(), count_, row_.begin());
      else
        write_kernels(x, landmarks_[0], most_, int(count_), row_.data());
      const double prediction = dot(alpha_.data(), row_.data(), int(count_));
      const double target = block.targets[0][t][0];
      const double slope = std::isnan(target) ? 0.0 : loss_->derivative(prediction, target);
      record.predictions[t] = Lanes(prediction, 0.0, 0.0, 0.0);
      record.effects[t] = 0.0;
      record.norms[t + 1] = Lanes(step(number, x, slope, block.samples), 0.0, 0.0, 0.0);

      // f on the window, oldest first.
      std::copy_n(row_.begin(), count_, window_rows_[int(number % window_)]);
      Lanes* values = record.values[t + 1];
      const int seen = int(std::min<std::int64_t>(number + 1, window_));
      std::fill_n(values, window_ - seen, Lanes(0.0));
      dot_rows(alpha_.data(), window_rows_[0], most_, seen, int(count_), window_values_.data());
      for (int age = 0; age < seen; ++age)
        values[window_ - 1 - age] =
            Lanes(window_values_[std::size_t((number - age) % window_)], 0.0, 0.0, 0.0);
    }
  }

  void predict(const Query& query, Lanes* out) override {
    write_kernels(query.x, landmarks_[0], most_, int(count_), query_row_.data());
    *out = Lanes(dot(alpha_.data(), query_row_.data(), int(count_)), 0.0, 0.0, 0.0);
  }

  bool may_fail() const override { return kernel_.may_fail(); }

  /// The new coordinates of the landmarks were 0.
  void continue_from(Learner& narrower) override {
    auto& other = dynamic_cast<NystromSGD&>(narrower);
    if (other.dimension_ > dimension_ || other.most_ != most_ || other.window_ != window_)
      throw StateRefused("the learners differ");
    std::copy(other.landmarks_.numbers.begin(), other.landmarks_.numbers.end(),
              landmarks_.numbers.begin());
    count_ = other.count_;
    factor_ = other.factor_;
    weights_ = other.weights_;
    alpha_ = other.alpha_;
    window_rows_ = other.window_rows_;
    squares_ = other.squares_;
  }

 private:
  /// out[m] = k(x, t_m) for m < count; coordinate k of t_m is at terms[k * stride + m].
  void write_kernels(const double* x, const double* terms, std::size_t stride, int count,
                     double* out) {
    if (count == 0) return;
    kernel_.write(x, terms, stride, count, lanes_.data());
    for (int m = 0; m < count; ++m) out[m] = lanes_[m][0];
  }

  /// Perhaps a new landmark; a gradient step on the weights of z; alpha from the weights. Returns
  /// |f|^2 = |weights|^2.
  double step(std::int64_t number, const double* x, double slope, const Samples& samples) {
    double *z = z_.data(), *weights = weights_.data(), *alpha = alpha_.data();
    double self_kernel;
    write_kernels(x, x, 1, 1, &self_kernel);
    for (int i = 0; i < count_; ++i)  // z = L^-1 k
      z[i] = (row_[i] - dot(factor_[i], z, i)) / factor_[i][i];
    const double rest = self_kernel - dot(z, z, int(count_));
    if (count_ < most_ && rest > novelty_ * self_kernel) {
      double* row = factor_[int(count_)];
      std::copy_n(z, count_, row);
      row[count_] = sqrt(rest + JITTER * self_kernel);
      z[count_] = rest / row[count_];
      weights[count_] = 0.0;
      append_landmark(number, x, self_kernel, samples);
    }
    const int count = int(count_);
    if (step_size_.adapts()) squares_ += slope * slope * dot(z, z, count);
    const double rate = step_size_.rate(number + 1, squares_)[0];
    const double decay = 1.0 - rate * regularization_, change = rate * slope;
    for (int i = 0; i < count; ++i) weights[i] = decay * weights[i] - change * z[i];
    std::copy_n(weights, count, alpha);
    for (int i = count - 1; i >= 0; --i) {  // alpha = L'^-1 weights, a row of L at a time
      const double* row = factor_[i];
      const double own = alpha[i] / row[i];
      alpha[i] = own;
      const int even = whole_lanes(i);
      for (int j = 0; j < even; j += WIDTH)
        store(alpha + j, load(alpha + j) - own * load(row + j));
      for (int j = even; j < i; ++j) alpha[j] -= own * row[j];
    }
    return dot(weights, weights, count);
  }

  /// x becomes the newest landmark, and the rows of the window's samples get its kernel values.
  void append_landmark(std::int64_t number, const double* x, double self_kernel,
                       const Samples& samples) {
    for (int k = 0; k < dimension_; ++k) landmarks_[k][count_] = x[k];
    row_[count_] = self_kernel;
    const int older = int(std::min<std::int64_t>(number, window_ - 1));
    if (older > 0) {
      const double* inputs = samples.inputs(0) + samples.place(number) - older;
      kernel_.write(x, inputs, std::size_t(samples.length + SLIDE_PERIOD), older, lanes_.data());
      for (int age = 1; age <= older; ++age)
        window_rows_[int((number - age) % window_)][count_] = lanes_[older - age][0];
    }
    ++count_;
  }

  // settings
  StepSize step_size_;
  double regularization_, novelty_;
  int most_, window_, dimension_;
  std::shared_ptr<const Loss> loss_;
  TermKernel kernel_;
  // state
  std::int64_t count_ = 0;      // of landmarks
  Matrix<double> landmarks_;    // (dimension, most), one per column
  Matrix<double> factor_;       // L, (most, most)
  Array<double> weights_, alpha_;
  Matrix<double> window_rows_;  // (window, most): k(x_n, c) in row n % window
  double squares_ = 0.0;        // adagrad: the sum of |g|^2
  // scratch
  Array<double> row_, query_row_, z_, window_values_;
  Array<Lanes> lanes_;
};

}  // namespace

std::unique_ptr<Learner> make_nystrom_sgd(const LearnerSpec& spec) {
  return std::make_unique<NystromSGD>(spec);
}

}  // namespace kb
