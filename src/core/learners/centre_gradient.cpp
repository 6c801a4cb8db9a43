// Learners of first order on centres: KLMS, KNLMS and QKLMS.
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

}  // namespace

std::vector<NamedLearner> gradients_on_centres_family() {
  return {{"KLMS", make<KLMS>}, {"KNLMS", make<KNLMS>}, {"QKLMS", make<QKLMS>}};
}

}  // namespace kb
