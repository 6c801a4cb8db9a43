// FourierRLS and LinearRLS: recursive least squares on random features, and on the inputs.
#include "recursive.hpp"

namespace kb {

namespace {

/// phi(x) = (x_c, sqrt(offset)), where x_c holds the kernel's coordinates of x: phi(x)'phi(t) is
/// the kernel Linear.
class LinearFeatures {
 public:
  explicit LinearFeatures(const LearnerSpec& spec)
      : coordinates_(spec.kernels.at(0).statistic.coordinates),
        last_(sqrt(spec.kernels.at(0).constants.at(0))) {
    for (int k : coordinates_)
      if (k < 0 || k >= spec.dimension) throw std::invalid_argument("no such coordinate");
  }

  int size() const { return int(coordinates_.size()) + 1; }
  int constant() const { return int(coordinates_.size()); }
  void write(const double* x, double* phi) const {
    for (int k : coordinates_) *phi++ = x[k];
    *phi = last_;
  }
  /// Where the features of one on fewer inputs are: the constant stays the last.
  static std::vector<int> places(int before, int after) {
    if (before > after) throw StateRefused("there are fewer inputs than before");
    std::vector<int> places;
    for (int m = 0; m < before - 1; ++m) places.push_back(m);
    places.push_back(after - 1);
    return places;
  }

 private:
  std::vector<int> coordinates_;
  double last_;
};

template <class Features>
std::unique_ptr<Learner> make_least_squares(const LearnerSpec& spec) {
  Features features(spec);
  const RecursiveLeastSquares method(spec, features.size(), features.constant());
  return std::make_unique<FeatureLearner<Features, RecursiveLeastSquares>>(
      spec, std::move(features), method);
}

}  // namespace

std::unique_ptr<Learner> make_fourier_rls(const LearnerSpec& spec) {
  return make_least_squares<FourierFeatures>(spec);
}

std::unique_ptr<Learner> make_linear_rls(const LearnerSpec& spec) {
  return make_least_squares<LinearFeatures>(spec);
}

}  // namespace kb
