// Learners of first order on centres: KLMS, KNLMS, QKLMS, POLK, NystromSGD, and for labels the
// perceptrons Projectron and Forgetron.
#include "centres.hpp"

namespace kb {

namespace {

/// The rate of a method, with the sum that adagrad needs.
class Rate {
 public:
  explicit Rate(const LearnerSpec& spec, double regularization = 0.0)
      : step_size_(spec.settings, regularization) {}
  void visit(Archive& archive) { archive("squares", squares_); }
  /// Of a sample whose gradient has this |g|^2.
  double next(const Sample& sample, double squared_gradient) {
    if (step_size_.adapts()) squares_ += squared_gradient;
    return step_size_.rate(sample.number + 1, squares_)[0];
  }

 private:
  StepSize step_size_;
  double squares_ = 0.0;  // state
};

/// |f|^2 by recursion: for methods that keep no Gram matrix. Sums and differences of large terms may
/// leave nothing but rounding. So it is computed again once in a slide period, and when the
/// sizes of what was added and subtracted since then, which bound the rounding, are far above it.
class RecursiveNorm {
 public:
  void visit(Archive& archive) { archive("norm_changes", changes_); }
  /// A number is added to |f|^2, or subtracted from it.
  void add(Sample& sample, double change) {
    changes_ += absolute(change);
    sample.norm += change;
  }
  /// After all of a sample's changes.
  void close(Centres& f, Sample& sample) {
    changes_ += absolute(sample.norm);
    if ((sample.number + 1) % SLIDE_PERIOD == 0 || changes_ > CANCELLED * sample.norm) {
      sample.norm = f.compute_norm();
      changes_ = 0.0;
    }
    sample.norm = std::max(sample.norm, 0.0);
  }

 private:
  double changes_ = 0.0;
};

/// f <- f - rate l' k(x, .); beyond `budget` terms the oldest is dropped. |f|^2 follows by
/// recursion.
class KLMS final : public CentreLearner {
 public:
  explicit KLMS(const LearnerSpec& spec) : CentreLearner(spec, false, true) {}
  void visit_method(Archive& archive) override {
    rate_.visit(archive);
    norm_.visit(archive);
    archive("dropped", dropped_);
  }
  void step(Centres& f, Sample& sample) override {
    const double slope = sample.slope, self = f.self_kernel;
    const double added = -rate_.next(sample, slope * slope * self) * slope;
    // |f + added k(x, .)|^2 = |f|^2 + 2 added f(x) + added^2 k(x, x)
    norm_.add(sample, 2.0 * added * sample.prediction);
    norm_.add(sample, added * added * self);
    f.append(sample, added);
    if (f.size() == f.capacity) {
      // |f - old k(c, .)|^2 = |f|^2 - 2 old f(c) + old^2 k(c, c)
      const double old = f.alpha[0];
      const double* row = f.row(0);
      const double lost = old * old * row[0];
      norm_.add(sample, lost - 2.0 * old * dot(f.alpha.data(), row, f.size()));
      dropped_ += lost;
      sample.effect = f.effect_of_oldest(sample.number);
      f.remove(0);
    }
    norm_.close(f, sample);
  }

 private:
  Rate rate_{spec_};
  RecursiveNorm norm_;
};

/// KLMS on quantised inputs. With c the centre nearest to x: its coefficient moves by -rate l' if
/// |x - c| <= quantization, or if there are `budget` centres; else x becomes a centre.
class QKLMS final : public CentreLearner {
 public:
  explicit QKLMS(const LearnerSpec& spec) : CentreLearner(spec, false, true) {}
  void visit_method(Archive& archive) override {
    rate_.visit(archive);
    norm_.visit(archive);
  }
  void step(Centres& f, Sample& sample) override {
    const double slope = sample.slope;
    const double change = -rate_.next(sample, slope * slope * f.self_kernel) * slope;
    double value = sample.prediction, self = f.self_kernel;  // f(c), k(c, c)
    const int nearest = f.size() > 0 ? nearest_centre(f, sample.x) : -1;
    if (nearest >= 0 &&
        (distances_[nearest] <= squared_quantization_ || f.size() == f.capacity - 1)) {
      const double* row = f.row(nearest);
      value = dot(f.alpha.data(), row, f.size());
      self = row[nearest];
      f.alpha[nearest] += change;
    } else {
      f.append(sample, change);
    }
    // |f + change k(c, .)|^2 = |f|^2 + 2 change f(c) + change^2 k(c, c)
    norm_.add(sample, 2.0 * change * value);
    norm_.add(sample, change * change * self);
    norm_.close(f, sample);
  }

 private:
  /// distances[j] = |x - c_j|^2. Returns the j of the least, the first of equals.
  int nearest_centre(const Centres& f, const double* x) {
    double* distances = distances_.data();
    std::fill_n(distances, f.size(), 0.0);
    for (int i = 0; i < spec_.dimension; ++i) {
      const double* c = f.coordinates(i);
      for (int j = 0; j < f.size(); ++j) distances[j] += (c[j] - x[i]) * (c[j] - x[i]);
    }
    return argmin(distances, f.size());
  }

  Rate rate_{spec_};
  RecursiveNorm norm_;
  double squared_quantization_ = number("quantization") * number("quantization");
  Array<double> distances_ = Array<double>(f_.capacity);  // scratch
};

/// x becomes a centre if max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j)) <= coherence and there are
/// fewer than `budget`. Then, with h_j = k(x, c_j), alpha <- alpha - rate l' h / (epsilon + h'h).
class KNLMS final : public CentreLearner {
 public:
  explicit KNLMS(const LearnerSpec& spec) : CentreLearner(spec, true, true) {}
  void visit_method(Archive& archive) override { rate_.visit(archive); }

  void step(Centres& f, Sample& sample) override {
    if (f.size() == 0 || (coherence(f) <= coherence_ && f.size() < f.capacity - 1))
      f.append(sample, 0.0);
    const int size = f.size();
    const double* h = f.k.data();
    double* alpha = f.alpha.data();
    const double slope = sample.slope, h_h = dot(h, h, size);
    const double normalised = slope / (epsilon_ + h_h);
    double change = rate_.next(sample, normalised * normalised * h_h) * slope;
    change /= epsilon_ + h_h;
    for (int m = 0; m < size; ++m) alpha[m] -= change * h[m];
    sample.norm = f.compute_norm();
  }

 private:
  double coherence(const Centres& f) const {
    if (!(f.self_kernel > 0.0)) return 1.0;  // k(x, .) = 0: there is nothing to admit
    double largest = 0.0;
    for (int m = 0; m < f.size(); ++m) {
      const double product = f.self_kernel * f.gram[m][m];
      if (product > 0.0) largest = std::max(largest, absolute(f.k[m]) / sqrt(product));
    }
    return largest;
  }

  Rate rate_{spec_};
  double coherence_ = number("coherence"), epsilon_ = number("epsilon");
};

/// A gradient step, then compression by kernel orthogonal matching pursuit:
///
///     g <- (1 - rate * regularization) f - rate l' k(x, .)
///     f <- the projection of g on as few of its centres as keep |f - g| <= compression.
///
/// Removing centre j and projecting on the others costs alpha_j^2 / (K^-1)_jj of norm^2. The
/// cheapest goes first; beyond `budget` centres whatever it costs.
class POLK final : public CentreLearner {
 public:
  explicit POLK(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override {
    rate_.visit(archive);
    inverse_.visit(archive);
    archive("dropped", dropped_);
  }

  void step(Centres& f, Sample& sample) override {
    const double slope = sample.slope;
    const double rate = rate_.next(sample, slope * slope * f.self_kernel);
    const double decay = 1.0 - rate * regularization_, change = -rate * slope;
    const double rest = inverse_.project(f);
    // g, with k(x, .) projected if it is not new.
    double* alpha = f.alpha.data();
    const double* solved = inverse_.solved.data();
    const int size = f.size();
    for (int m = 0; m < size; ++m) alpha[m] *= decay;
    if (rest > DEPENDENT * f.self_kernel) {
      inverse_.append(f, sample, change, rest);
    } else {
      for (int m = 0; m < size; ++m) alpha[m] += change * solved[m];
    }
    dropped_ += compress(f);
    inverse_.refresh(f, sample.number);
    sample.norm = f.compute_norm();
  }

 private:
  /// Returns the norm^2 that it has cost.
  double compress(Centres& f) {
    double *alpha = f.alpha.data(), *errors = errors_.data();
    double spent = 0.0;
    while (f.size() > 0) {
      const int size = f.size();
      for (int m = 0; m < size; ++m) errors[m] = alpha[m] * alpha[m] / inverse_[m][m];
      const int j = argmin(errors, size);
      const bool within = spent + errors[j] <= max_error_;
      if (size < f.capacity && !(size > 1 && within)) break;
      spent += errors[j];
      const double share = alpha[j] / inverse_[j][j];
      for (int m = 0; m < size; ++m) alpha[m] -= share * inverse_[m][j];
      inverse_.remove(f, j);
    }
    return spent;
  }

  double regularization_ = spec_.objective.regularization;
  double max_error_ = number("compression") * number("compression");
  Rate rate_{spec_, regularization_};
  GramInverse inverse_{f_, JITTER};
  Array<double> errors_ = Array<double>(f_.capacity);  // scratch: what removing each centre costs
};

/// Gradient descent on the features that the centres c, the first inputs that are new enough, span.
/// With K = L L' their Gram matrix, the features z(x) = L^-1 k(x, c) have
/// z(x)'z(t) = k(x, c) K^-1 k(c, t), and
///
///     weights <- (1 - rate * regularization) weights - rate * l'(f(x), y) z(x).
///
/// f(x) = weights'z(x) = alpha'k(x, c) with alpha = L'^-1 weights.
class NystromSGD final : public CentreLearner {
 public:
  explicit NystromSGD(const LearnerSpec& spec) : CentreLearner(spec, false, false) {}
  void visit_method(Archive& archive) override {
    rate_.visit(archive);
    archive("factor", factor_);
    archive("weights", weights_);
  }

  void step(Centres& f, Sample& sample) override {
    double *z = z_.data(), *weights = weights_.data(), *alpha = f.alpha.data();
    int size = f.size();
    for (int i = 0; i < size; ++i)  // z = L^-1 k
      z[i] = (f.k[i] - dot(factor_[i], z, i)) / factor_[i][i];
    const double rest = f.self_kernel - dot(z, z, size);
    if (size < f.capacity - 1 && rest > novelty_ * f.self_kernel) {
      double* row = factor_[size];
      std::copy_n(z, size, row);
      row[size] = sqrt(rest + JITTER * f.self_kernel);
      z[size] = rest / row[size];
      weights[size] = 0.0;
      f.append(sample, 0.0);
      ++size;
    }
    const double slope = sample.slope;
    const double rate = rate_.next(sample, slope * slope * dot(z, z, size));
    const double decay = 1.0 - rate * regularization_, change = rate * slope;
    for (int i = 0; i < size; ++i) weights[i] = decay * weights[i] - change * z[i];
    std::copy_n(weights, size, alpha);
    for (int i = size - 1; i >= 0; --i) {  // alpha = L'^-1 weights, a row of L at a time
      const double* row = factor_[i];
      alpha[i] /= row[i];
      for (int j = 0; j < i; ++j) alpha[j] -= alpha[i] * row[j];
    }
    sample.norm = dot(weights, weights, size);
  }

 private:
  double regularization_ = spec_.objective.regularization, novelty_ = number("novelty");
  Rate rate_{spec_, regularization_};
  Matrix<double> factor_{f_.capacity, f_.capacity};  // L
  Array<double> weights_ = Array<double>(f_.capacity);
  Array<double> z_ = weights_;  // scratch
};

Cloned<Learner> make_nystrom(const LearnerSpec& description) {
  LearnerSpec spec = description;
  spec.settings.numbers["budget"] = spec.settings.number("landmarks");
  return make<NystromSGD>(spec);
}

/// A kernel perceptron for labels -1 and +1. On a mistake, y f(x) <= 0, with d = K^-1 k(x, centres)
/// and delta^2 = k(x, x) - k' d the part of x that is new:
///
///     alpha <- alpha + y d      if delta <= tolerance, or the budget is full,
///     f <- f + y k(x, .)        otherwise.
class Projectron final : public CentreLearner {
 public:
  explicit Projectron(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override { inverse_.visit(archive); }

  void step(Centres& f, Sample& sample) override {
    const double y = sample.target;
    if (y * sample.prediction <= 0.0) {
      const int size = f.size();
      const double rest = inverse_.project(f);
      const bool is_near = sqrt(rest) <= tolerance_ && size > 0;
      if (is_near || rest <= DEPENDENT * f.self_kernel || size == f.capacity - 1) {
        double* alpha = f.alpha.data();
        const double* d = inverse_.solved.data();
        for (int m = 0; m < size; ++m) alpha[m] += y * d[m];
      } else {
        inverse_.append(f, sample, y, rest);
      }
      sample.norm = f.compute_norm();
    }
    inverse_.refresh(f, sample.number);
  }

 private:
  double tolerance_ = number("tolerance");
  GramInverse inverse_{f_, JITTER};
};

/// The self-tuned Forgetron: a kernel perceptron for labels -1 and +1. On a mistake, y f(x) <= 0,
/// the term y k(x, .) is added. Beyond `budget` terms all coefficients are multiplied by the
/// largest phi <= 1 for which the total deviation stays below 15/32 of the mistakes, and the oldest
/// term is dropped.
class Forgetron final : public CentreLearner {
 public:
  explicit Forgetron(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override {
    archive("mistakes", mistakes_);
    archive("deviation", deviation_);
    archive("dropped", dropped_);
  }

  void step(Centres& f, Sample& sample) override {
    if (sample.target * sample.prediction > 0.0) return;
    mistakes_ += 1.0;
    f.append(sample, sample.target);
    if (f.size() == f.capacity) forget_oldest(f);
    sample.norm = f.compute_norm();
  }

 private:
  void forget_oldest(Centres& f) {
    constexpr double allowed = 15.0 / 32.0;  // largest total deviation per mistake
    double* alpha = f.alpha.data();
    const int size = f.size();
    const double oldest = absolute(alpha[0]);
    const double value = dot(alpha, f.gram[0], size);  // f at the oldest centre
    const double aligned = alpha[0] > 0.0 ? value : -value;
    // The deviation grows by square phi^2 + slope phi.
    const double square = oldest * oldest - 2.0 * oldest * aligned, slope = 2.0 * oldest;
    const double rest = deviation_ - allowed * mistakes_;
    double phi = 1.0;
    if (square + slope + rest > 0.0) {
      // The quadratic is negative at 0 and positive at 1: its root in between.
      const double root = sqrt(std::max(slope * slope - 4.0 * square * rest, 0.0));
      phi = -2.0 * rest / (slope + root);
    }
    deviation_ += square * phi * phi + slope * phi;
    for (int m = 0; m < size; ++m) alpha[m] *= phi;
    dropped_ += alpha[0] * alpha[0] * f.gram[0][0];
    f.remove(0);
  }

  double mistakes_ = 0.0, deviation_ = 0.0;
};

}  // namespace

std::vector<NamedLearner> gradients_on_centres_family() {
  return {{"KLMS", make<KLMS>},
          {"KNLMS", make<KNLMS>},
          {"QKLMS", make<QKLMS>},
          {"POLK", make<POLK>},
          {"NystromSGD", make_nystrom},
          {"Projectron", make<Projectron>},
          {"Forgetron", make<Forgetron>}};
}

}  // namespace kb
