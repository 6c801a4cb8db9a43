// Random features, and gradient descent on them: FourierSGD.
#include "features.hpp"

#include <mutex>

namespace kb {

std::shared_ptr<const FourierFeatures::Draws> FourierFeatures::shared(Draws draws) {
  static std::mutex guard;
  static std::vector<std::weak_ptr<const Draws>> all;
  const std::lock_guard<std::mutex> lock(guard);
  std::erase_if(all, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : all)
    if (const auto equal = entry.lock(); equal && *equal == draws) return equal;
  const auto added = std::make_shared<const Draws>(std::move(draws));
  all.push_back(added);
  return added;
}

FourierFeatures::FourierFeatures(int dimension, std::vector<int> coordinates,
                                 int trigonometric, Array<double> frequencies,
                                 Array<double> phases, Array<double> amplitudes)
    : trigonometric_(trigonometric),
      coordinates_(std::move(coordinates)),
      draws_(shared({std::move(frequencies), std::move(phases), std::move(amplitudes)})) {
  const std::size_t size = draws_->phases.size();
  bool fits = size % WIDTH == 0 && draws_->amplitudes.size() == size &&
              draws_->frequencies.size() == coordinates_.size() * size && trigonometric_ >= 0 &&
              trigonometric_ <= int(size) && trigonometric_ % (2 * WIDTH) == 0;
  for (int k : coordinates_) fits = fits && k >= 0 && k < dimension;
  if (!fits) throw std::invalid_argument("features do not fit together");
  point_.resize(coordinates_.size());
}

void FourierFeatures::write(const double* x, double* phi) {
  for (std::size_t k = 0; k < point_.size(); ++k) point_[k] = x[coordinates_[k]];
  const double* amplitudes = draws_->amplitudes.data();
  for (int m = 0; m < trigonometric_; m += 2 * WIDTH) {
    const auto [cosine, sine] = cosine_and_sine(angles(m));
    store(phi + m, load(amplitudes + m) * cosine);
    store(phi + m + WIDTH, load(amplitudes + m + WIDTH) * sine);
  }
  for (int m = trigonometric_; m < size(); m += WIDTH)
    store(phi + m, load(amplitudes + m) * angles(m));
}

Lanes FourierFeatures::angles(int m) const {
  Lanes angle = load(draws_->phases.data() + m);
  const double* frequencies = draws_->frequencies.data() + m;
  for (double x : point_) {
    angle = fma(x, load(frequencies), angle);
    frequencies += draws_->phases.size();
  }
  return angle;
}

namespace {

/// A Method of features.hpp:
///
///     weights <- (1 - rate * regularization) weights - rate * l'(f(x), y) phi(x).
///
/// With `restart`, f = 0 again and t = 1 for the rate at samples number restart, 2 restart, ...,
/// counted from 1.
class GradientDescent {
 public:
  GradientDescent(const LearnerSpec& spec, const Features& features)
      : step_size_(spec.settings, spec.objective.regularization),
        regularization_(spec.objective.regularization),
        restart_(spec.settings.has("restart") ? spec.settings.whole("restart") : 0),
        size_(features.size()) {}

  /// Nothing is prepared for a cycle, but its features are known ahead: so is the next prediction.
  int cycle() const { return 8; }
  static bool follows_inputs(const Loss&) { return true; }

  struct OutputState {
    void visit(Archive& archive) { archive("squares", squares); }
    double squares = 0.0;  // adagrad: the sum of |g|^2
  };
  void visit(Archive&) {}

  using Signal = double;  // l'; 0 if the target is missing
  static Signal signal(const Loss& loss, double prediction, double target) {
    return std::isnan(target) ? 0.0 : loss.derivative(prediction, target);
  }

  void prepare(const Matrix<double>&, int, int) {}
  void advance(std::int64_t, const double* phi, double) {
    if (step_size_.adapts()) self_kernel_ = dot(phi, phi, size_);
  }

  template <int G>
  void step(std::int64_t number, double* const* weights, OutputState* const* states,
            const double* slopes, const double* phi, const double* next, Sums* sums) const {
    std::int64_t t = number + 1;  // samples since the last restart, this one included
    if (restart_ > 0 && t >= restart_) t = t % restart_ + 1;
    Lanes decays[G], changes[G];
    for (int g = 0; g < G; ++g) {
      if (step_size_.adapts()) states[g]->squares += slopes[g] * slopes[g] * self_kernel_;
      const double rate = step_size_.rate(t, states[g]->squares)[0];
      decays[g] = 1.0 - rate * regularization_;
      changes[g] = rate * slopes[g];
    }
    change_and_sum<G>(
        weights, phi, next, size_,
        [&](int g, int m, auto weight) {
          if constexpr (std::is_same_v<decltype(weight), double>)
            return decays[g][0] * weight - changes[g][0] * phi[m];
          else
            return decays[g] * weight - changes[g] * load(phi + m);
        },
        sums);
    if (restart_ == 0 || (number + 2) % restart_ != 0) return;
    for (int g = 0; g < G; ++g) {  // the next sample finds f = 0
      states[g]->squares = 0.0;
      std::fill_n(weights[g], size_, 0.0);
      sums[g] = {};
    }
  }
  void finish(std::int64_t) {}
  void continue_from(const GradientDescent&, const std::vector<int>&) {}

 private:
  StepSize step_size_;
  double regularization_;
  int restart_;  // 0: never
  int size_;
  double self_kernel_ = 0.0;  // scratch: phi'phi
};

}  // namespace

std::vector<NamedLearner> feature_family() {
  const auto make = [](const LearnerSpec& spec) -> Cloned<Learner> {
    return std::make_unique<FeatureLearner<GradientDescent>>(
        spec, std::make_unique<FourierFeatures>(spec));
  };
  return {{"FourierSGD", make, true}};
}

}  // namespace kb
