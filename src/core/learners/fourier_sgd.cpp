// FourierSGD: gradient descent on random features.
#include "features.hpp"
#include "step_size.hpp"

namespace kb {

namespace {

/// A Method of features.hpp:
///
///     weights <- (1 - rate * regularization) weights - rate * l'(f(x), y) phi(x).
///
/// With `restart`, f = 0 again and t = 1 for the rate at samples number restart, 2 restart, ...,
/// counted from 1.
class GradientDescent {
 public:
  explicit GradientDescent(const LearnerSpec& spec, int size)
      : step_size_(spec.settings, spec.objective.regularization),
        regularization_(spec.objective.regularization),
        restart_(spec.settings.has("restart") ? spec.settings.whole("restart") : 0),
        size_(size) {}

  /// Nothing is prepared for a cycle, but its features are known ahead: so is the next prediction.
  int cycle() const { return 8; }
  static bool follows_inputs(const Loss&) { return true; }

  struct Own {
    void visit(Archive& archive) { archive("squares", squares); }
    double squares = 0.0;  // adagrad: the sum of |g|^2
  };
  void visit(Archive&) {}

  /// l'; 0 if the target is missing.
  static double signal(const Loss& loss, double prediction, double target) {
    return std::isnan(target) ? 0.0 : loss.derivative(prediction, target);
  }

  void prepare(const Matrix<double>&, int, int) {}
  void advance(std::int64_t, const double* phi, double) {
    if (step_size_.adapts()) self_kernel_ = dot(phi, phi, size_);
  }

  std::array<double, 3> step(std::int64_t number, double* weights, Own& own, double slope,
                             const double* phi, const double* next) const {
    std::int64_t t = number + 1;  // samples since the last restart, this one included
    if (restart_ > 0 && t >= restart_) t = t % restart_ + 1;
    if (step_size_.adapts()) own.squares += slope * slope * self_kernel_;
    const double rate = step_size_.rate(t, own.squares)[0];
    const double decay = 1.0 - rate * regularization_, change = rate * slope;
    for (int m = 0; m < size_; ++m) weights[m] = decay * weights[m] - change * phi[m];
    if (restart_ > 0 && (number + 2) % restart_ == 0) {  // the next sample finds f = 0
      own.squares = 0.0;
      std::fill_n(weights, size_, 0.0);
    }
    return dots<3>(weights, {weights, phi, next}, size_);
  }
  void finish(std::int64_t) {}

 private:
  StepSize step_size_;
  double regularization_;
  int restart_;  // 0: never
  int size_;
  double self_kernel_ = 0.0;  // scratch: phi'phi
};

}  // namespace

std::unique_ptr<Learner> make_fourier_sgd(const LearnerSpec& spec) {
  FourierFeatures features(spec);
  const GradientDescent method(spec, features.size());
  return std::make_unique<FeatureLearner<FourierFeatures, GradientDescent>>(
      spec, std::move(features), method);
}

}  // namespace kb
