// FourierRLS and LinearRLS: recursive least squares on random features, and on the inputs, a cycle
// of samples at a time: a Method of features.hpp.
//
// With P = I / ridge at first, weight w and error e of a sample (1 and y - f(x) for squares):
//
//     u = P phi,  s = 1 / w + phi'u,  weights <- weights + u e / s,  P <- P - u u' / s,
//
// then forgetting. The covariance P is symmetric, and half of it is kept. Memory traffic dominates
// the cost: a step needs P phi, and then changes P everywhere. So the change of a step is kept as a
// vector, and made for a whole cycle of samples at once. After k samples of a cycle
//
//     P = C^k P0 C^k + D_k + sum_i factors[i] vectors[i] vectors[i]',
//
// with P0 as it was at the start of the cycle, C the diagonal matrix by which a step forgets, and
// D_k a diagonal matrix: (I - C^2k) / ridge with forget = "prior", (1 - r) k I / ridge with
// "random_walk", else 0. A cycle is eight samples; four with exponential forgetting, which adds two
// vectors per sample.
//
// P0 is multiplied by the features of all samples that are known, of one for a single sample and of
// a cycle in a block. These are the same sums in the same order, and the vectors are part of the
// state: it does not matter how a stream is cut into blocks.
#include "features.hpp"

namespace kb {

namespace {

/// out = one * other, of each element. All of padded length.
void multiply_each(const double* first, const double* second, int length, double* out) {
  for (int m = 0; m < length; m += WIDTH) store(out + m, load(first + m) * load(second + m));
}

/// out += sum_i factors[i] vectors[i], one after the other as by `add_multiple`, in one loop.
/// vectors: rows of (count,), `stride` apart.
void add_multiples(double* out, const double* factors, const double* vectors,
                          std::ptrdiff_t stride, int number, int count) {
  const int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) {
    Lanes total = load(out + m);
    for (int i = 0; i < number; ++i)
      total = fma(factors[i], load(vectors + i * stride + m), total);
    store(out + m, total);
  }
  for (int m = even; m < count; ++m)
    for (int i = 0; i < number; ++i) out[m] += factors[i] * vectors[i * stride + m];
}

class RecursiveLeastSquares {
 public:
  RecursiveLeastSquares(const LearnerSpec& spec, const Features& features)
      : rule_(read_rule(spec.settings)),
        forgetting_(spec.settings.number("forgetting")),
        ridge_(spec.settings.number("ridge")),
        size_(features.size()),
        constant_(features.constant()),
        length_(padded_length(size_)),
        powers_(cycle() + 1, length_, 1.0),
        covariance_(packed::size(length_)),
        scaled_(scales() ? cycle() : 0, length_),
        products_(cycle(), length_) {
    const double constant_forgetting = spec.settings.number_or("constant_forgetting", forgetting_);
    double scale = 1.0, constant_scale = 1.0;
    if (rule_ == Forget::exponential) scale = constant_scale = 1.0 / sqrt(forgetting_);
    if (rule_ == Forget::prior) {
      scale = sqrt(forgetting_);
      constant_scale = sqrt(constant_forgetting);
    }
    for (int k = 0; k < cycle(); ++k)
      for (int m = 0; m < length_; ++m)
        powers_[k + 1][m] = powers_[k][m] * (m == constant_ ? constant_scale : scale);
    // P = C^k P0 C^k + D_k: P0 so that P is `first` at the first sample. A random walk begins
    // before it.
    const int k = int(spec.first_sample % cycle());
    double first = 1.0 / ridge_;
    if (rule_ == Forget::random_walk) first += added(1, 0);
    for (int m = 0; m < size_; ++m)
      covariance_[packed::place(m, m)] = (first - added(k, m)) / (powers_[k][m] * powers_[k][m]);
  }

  int cycle() const { return rule_ == Forget::exponential ? packed::RANK / 2 : packed::RANK; }

  /// For squares P follows from the inputs alone; otherwise the curvature of the loss takes part.
  static bool follows_inputs(const Loss& loss) {
    return loss.curvature_rule == CurvatureRule::constant;
  }

  /// Nothing but the weights belongs to an output.
  struct OutputState {
    void visit(Archive&) {}
  };

  void visit(Archive& archive) {
    archive("covariance", covariance_);
    archive("factors", factors_);
    archive("vectors", vectors_);
  }

  /// What a sample tells, with the curvature c of the loss: e = -l' / c for y - f(x), w = c / 2.
  struct Signal {
    double error, weight;
  };
  static Signal signal(const Loss& loss, double prediction, double target) {
    if (std::isnan(target)) return {0.0, 1.0};  // missing: P learns the input all the same
    if (loss.curvature_rule == CurvatureRule::constant) return {target - prediction, 1.0};
    const double slope = loss.derivative(prediction, target);
    const double curvature = step_curvature(loss, prediction, target, slope);
    return {-slope / curvature, 0.5 * curvature};
  }

  /// products[k] = P0 C^k phi of the samples first .. first + count - 1 of a cycle.
  void prepare(const Matrix<double>& features, int first, int count) {
    const double* rows = features[first];
    if (scales()) {
      for (int k = first; k < first + count; ++k)
        multiply_each(powers_[k], features[k], length_, scaled_[k]);
      rows = scaled_[first];
    }
    packed::multiply(covariance_.data(), length_, rows, count, products_[first], length_);
  }

  /// What all outputs have in common of a sample: u, s, and P without the end of a cycle.
  void advance(std::int64_t number, const double* phi, Signal signal) {
    const int k = int(number % cycle());
    int count = rule_ == Forget::exponential ? 2 * k : k;  // vectors of this cycle
    double* u = u_.data();
    multiply(k, count, phi, u);
    const double variance = dot(phi, u, size_);
    informed_ = variance > 0.0;  // otherwise rounding is all there is
    s_ = 1.0 / signal.weight + variance;

    // P <- C P C + D_1.
    const double* scale = powers_[1];
    if (scales())
      for (int i = 0; i < count; ++i) multiply_each(vectors_[i], scale, length_, vectors_[i]);
    multiply_each(u, scale, length_, vectors_[count]);
    factors_[count] = informed_ ? -1.0 / s_ : 0.0;
    if (rule_ == Forget::exponential) renew_ridge(int(number % size_), k, count + 1);
  }

  /// The weights of G outputs after the sample, C (weights + change vector), and their sums.
  template <int G>
  void step(std::int64_t number, double* const* weights, OutputState* const*,
            const Signal* signals, const double* phi, const double* next, Sums* sums) const {
    const double* vector = u_.data();
    Lanes changes[G];
    for (int g = 0; g < G; ++g) changes[g] = informed_ ? signals[g].error / s_ : 0.0;
    if (rule_ == Forget::exponential) {
      for (int g = 0; g < G; ++g) {
        add_multiple(weights[g], changes[g][0], vector, size_);
        changes[g] = -weights[g][number % size_] / dummy_s_;
      }
      vector = vectors_[2 * int(number % cycle()) + 1];
    }
    const auto change = [&](int g, int m, auto weight) {  // one element as by `add_multiple`
      if constexpr (std::is_same_v<decltype(weight), double>)
        return weight + changes[g][0] * vector[m];
      else
        return fma(changes[g], load(vector + m), weight);
    };
    if (rule_ != Forget::prior)
      return change_and_sum<G>(weights, phi, next, size_, change, sums);
    const auto change_and_scale = [&](int g, int m, auto weight) {
      const double* scale = powers_[1] + m;
      if constexpr (std::is_same_v<decltype(weight), double>)
        return change(g, m, weight) * *scale;
      else
        return change(g, m, weight) * load(scale);
    };
    change_and_sum<G>(weights, phi, next, size_, change_and_scale, sums);
  }

  /// After all outputs. P0 <- P at the end of a cycle: make the changes of all of its samples.
  void finish(std::int64_t number) {
    if ((number + 1) % cycle() != 0) return;
    packed::update(covariance_.data(), length_, powers_[cycle()], factors_.data(), vectors_[0],
                   length_);
    if (adds())
      for (int m = 0; m < size_; ++m) covariance_[packed::place(m, m)] += added(cycle(), m);
    std::fill(factors_.begin(), factors_.end(), 0.0);
    std::fill(vectors_.numbers.begin(), vectors_.numbers.end(), 0.0);
  }

  /// phi'P phi after `seen` samples, for the features in row seen % cycle: the variance of f,
  /// without the noise, in units of the noise's.
  double variance(std::int64_t seen, const Matrix<double>& features, int row) {
    prepare(features, row, 1);
    const int count = rule_ == Forget::exponential ? 2 * row : row;
    multiply(int(seen % cycle()), count, features[row], u_.data());
    const double variance = dot(features[row], u_.data(), size_);
    return variance < 0.0 ? 0.0 : variance;  // NaN stays NaN
  }

  /// Continue from one on fewer features; its feature m is now places[m].
  void continue_from(const RecursiveLeastSquares& narrower, const std::vector<int>& places) {
    const int before = narrower.size_;
    if (before != size_ && rule_ == Forget::random_walk)
      throw StateRefused("a random walk of the weights cannot take up new inputs");
    for (int i = 0; i < before; ++i)
      for (int j = 0; j < before; ++j)
        covariance_[packed::place(places[i], places[j])] =
            narrower.covariance_[packed::place(i, j)];
    for (int i = 0; i < packed::RANK; ++i)
      for (int m = 0; m < before; ++m) vectors_[i][places[m]] = narrower.vectors_[i][m];
    factors_ = narrower.factors_;
  }

 private:
  enum class Forget { never, exponential, prior, random_walk };

  static Forget read_rule(const Settings& settings) {
    if (!(settings.number("forgetting") < 1.0)) return Forget::never;
    const std::string& word = settings.word("forget");
    if (word == "exponential") return Forget::exponential;
    return word == "prior" ? Forget::prior : Forget::random_walk;
  }

  /// Whether C is not the unit matrix.
  bool scales() const { return rule_ == Forget::exponential || rule_ == Forget::prior; }
  /// Whether D_k is not 0.
  bool adds() const { return rule_ == Forget::prior || rule_ == Forget::random_walk; }

  /// Element m of the diagonal of D_k.
  double added(int k, int m) const {
    if (rule_ == Forget::prior) return (1.0 - powers_[k][m] * powers_[k][m]) / ridge_;
    return rule_ == Forget::random_walk ? (1.0 - forgetting_) / ridge_ * k : 0.0;
  }

  /// u = P phi after k samples of a cycle, of which there are `count` vectors.
  void multiply(int k, int count, const double* phi, double* u) const {
    const double *product = products_[k], *power = powers_[k];
    multiply_each(product, power, length_, u);
    if (adds()) {
      const double before = constant_ < size_ ? u[constant_] : 0.0;
      add_multiple(u, added(k, constant_ == 0 ? 1 : 0), phi, size_);
      if (constant_ < size_) u[constant_] = before + added(k, constant_) * phi[constant_];
    }
    double products[packed::RANK];
    dot_rows(phi, vectors_[0], length_, count, size_, products);
    for (int i = 0; i < count; ++i) products[i] = factors_[i] * products[i];
    add_multiples(u, products, vectors_[0], length_, count, size_);
  }

  /// A dummy observation that weight j is 0, each weight in turn. In `size` samples it adds as much
  /// as the prior loses, so that the ridge never fades.
  void renew_ridge(int j, int k, int count) {
    double* column = vectors_[count];  // column j of P
    packed::copy_column(covariance_.data(), length_, j, column);
    const double factor = powers_[k + 1][0] * powers_[k + 1][0];
    for (int m = 0; m < size_; ++m) column[m] *= factor;
    double products[packed::RANK];
    for (int i = 0; i < count; ++i) products[i] = factors_[i] * vectors_[i][j];
    add_multiples(column, products, vectors_[0], length_, count, size_);
    dummy_s_ = 1.0 / (size_ * (1.0 - forgetting_) * ridge_) + column[j];
    factors_[count] = -1.0 / dummy_s_;
  }

  // settings
  Forget rule_;
  double forgetting_, ridge_;
  int size_, constant_, length_;  // constant: the feature that may have a forgetting of its own, or
                                  // beyond the last; length: size, rounded up to a multiple of four
  Matrix<double> powers_;         // (cycle + 1, length): the diagonals of C^k
  // state
  Array<double> covariance_;  // P0, packed
  Array<double> factors_ = Array<double>(packed::RANK);
  Matrix<double> vectors_{packed::RANK, length_};  // zeros beyond those of this cycle
  // scratch
  Matrix<double> scaled_, products_;            // (cycle, length): C^k phi if C is not I, P0 C^k phi
  Array<double> u_ = Array<double>(length_);    // P phi of the sample
  double s_ = 1.0, dummy_s_ = 1.0;
  bool informed_ = false;
};

/// phi(x) = (x_c, sqrt(offset)), where x_c holds the kernel's coordinates of x: phi(x)'phi(t) is
/// the kernel Linear.
class LinearFeatures final : public Features {
 public:
  explicit LinearFeatures(const LearnerSpec& spec)
      : coordinates_(spec.kernels.at(0).statistic.coordinates),
        last_(sqrt(spec.kernels.at(0).constants.at(0))) {
    for (int k : coordinates_)
      if (k < 0 || k >= spec.dimension) throw std::invalid_argument("no such coordinate");
  }

  int size() const override { return int(coordinates_.size()) + 1; }
  int constant() const override { return int(coordinates_.size()); }
  void write(const double* x, double* phi) override {
    for (int k : coordinates_) *phi++ = x[k];
    *phi = last_;
  }
  /// The constant stays the last.
  std::vector<int> places(int before) const override {
    if (before > size()) throw StateRefused("there are fewer inputs than before");
    std::vector<int> places;
    for (int m = 0; m < before - 1; ++m) places.push_back(m);
    places.push_back(size() - 1);
    return places;
  }

 private:
  std::vector<int> coordinates_;
  double last_;
};

template <class Inputs>
Cloned<Learner> make_on(const LearnerSpec& spec) {
  return std::make_unique<FeatureLearner<RecursiveLeastSquares>>(spec,
                                                                 std::make_unique<Inputs>(spec));
}

}  // namespace

std::vector<NamedLearner> least_squares_on_features_family() {
  return {{"FourierRLS", make_on<FourierFeatures>, true},
          {"LinearRLS", make_on<LinearFeatures>, true}};
}

}  // namespace kb
