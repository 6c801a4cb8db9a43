// Learners of second order on centres: KRLS, SlidingWindowKRLS, FixedBudgetKRLS and KRLSTracker.
//
// For losses other than the squared one a step is that of the parabola in the loss's place: the
// response is f - l' / c and the weight c / 2, with c the loss's curvature (`step_curvature`).
#include "centres.hpp"

namespace kb {

namespace {

/// Least squares of all samples on a sparse dictionary. With d = K^-1 k(x, centres),
/// delta = k(x, x) - k' d and the error e: if delta > novelty * k(x, x), x becomes a centre and
///
///     alpha <- (alpha - d e / delta, e / delta),    P <- diag(P, 1 / weight);
///
/// otherwise, or if there are `budget` centres, with s = 1 / weight + d' P d,
///
///     alpha <- alpha + K^-1 P d e / s,    P <- P - P d d' P / s.
class KRLS final : public CentreLearner {
 public:
  explicit KRLS(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override {
    inverse_.visit(archive);
    archive("covariance", covariance_);
  }

  void step(Centres& f, Sample& sample) override {
    const Sample::Parabola fit = sample.parabola();
    double *alpha = f.alpha.data(), *p_d = p_d_.data(), *gain = gain_.data();
    const double delta = inverse_.project(f), *d = inverse_.solved.data();
    const int size = f.size();
    if (delta > novelty_ * f.self_kernel && size < f.capacity - 1) {
      const double change = fit.error / (delta + jitter_ * f.self_kernel);
      for (int m = 0; m < size; ++m) alpha[m] -= d[m] * change;
      std::fill_n(p_d, size, 0.0);
      append_row_column(covariance_, size, p_d, 1.0 / fit.weight);
      inverse_.append(f, sample, change, delta);
    } else {
      symmetric_matvec(covariance_, d, size, p_d);
      const double s = 1.0 / fit.weight + dot(d, p_d, size);
      add_outer(covariance_, p_d, size, -1.0 / s);
      inverse_.multiply(p_d, size, gain);
      const double share = fit.error / s;
      for (int m = 0; m < size; ++m) alpha[m] += gain[m] * share;
    }
    inverse_.refresh(f, sample.number);
    sample.norm = f.compute_norm();
  }

 private:
  double novelty_ = number("novelty"), jitter_ = number("jitter");
  GramInverse inverse_{f_, jitter_};
  Matrix<double> covariance_{f_.capacity, f_.capacity};               // state: P
  Array<double> p_d_ = Array<double>(f_.capacity), gain_ = p_d_;  // scratch: P d, K^-1 P d
};

/// Kernel ridge regression on kept samples: alpha = A^-1 z, with A = K + diag(noises), z the
/// responses, and noise = ridge / weight.
class KernelRidge {
 public:
  KernelRidge(const LearnerSpec& spec, int capacity)
      : responses(capacity),
        inverse(capacity),
        ridge_(spec.settings.number("ridge")),
        matrix_(capacity, capacity) {}
  void visit(Archive& archive) {
    inverse.visit(archive);
    archive("responses", responses);
    archive("noises", noises_);
  }

  /// Keep the present sample.
  void append(Centres& f, const Sample& sample, const Sample::Parabola& fit) {
    const int size = f.size();
    const double noise = std::max(ridge_ / fit.weight, JITTER * f.self_kernel);
    inverse.multiply(f.k.data(), size, inverse.solved.data());
    const double rest = f.self_kernel + noise - dot(f.k.data(), inverse.solved.data(), size);
    inverse.append(size, std::max(rest, noise));  // it is never less, but for rounding
    responses[size] = fit.response;
    noises_[size] = noise;
    f.append(sample, 0.0);
  }
  /// Remove kept sample j.
  void remove(Centres& f, int j) {
    inverse.remove(f.size(), j);
    delete_element(responses.data(), f.size(), j);
    delete_element(noises_.data(), f.size(), j);
    f.remove(j);
  }
  void solve(Centres& f) const { inverse.multiply(responses.data(), f.size(), f.alpha.data()); }
  /// alpha and norm^2 after a step. The inverse is computed again once in `capacity` samples, and
  /// whenever it solves badly.
  void finish(Centres& f, Sample& sample) {
    constexpr double tolerance = 1e-6;  // largest residual, relative to the responses
    if ((sample.number + 1) % f.capacity == 0) refresh(f);
    solve(f);
    if (!(refine(f) <= tolerance)) {
      refresh(f);
      solve(f);
      refine(f);
    }
    sample.norm = f.compute_norm();
  }

  Array<double> responses;  // state: z
  Inverse inverse;          // A^-1

 private:
  /// A^-1 from K, by Cholesky.
  void refresh(const Centres& f) {
    for (int i = 0; i < f.size(); ++i) {
      std::copy_n(f.gram[i], f.size(), matrix_[i]);
      matrix_[i][i] += noises_[i];
    }
    inverse.refresh(matrix_, f.size(), 0.0);
  }

  /// alpha += A^-1 (z - A alpha); returns the largest |z - A alpha| before it, over |z|.
  double refine(Centres& f) {
    double *alpha = f.alpha.data(), *residual = residual_.data(), *change = change_.data();
    const int size = f.size();
    symmetric_matvec(f.gram, alpha, size, residual);
    double worst = 0.0, largest = 0.0;
    for (int m = 0; m < size; ++m) {
      residual[m] = responses[m] - (residual[m] + noises_[m] * alpha[m]);
      worst = std::max(worst, absolute(residual[m]));
      largest = std::max(largest, absolute(responses[m]));
    }
    inverse.multiply(residual, size, change);
    for (int m = 0; m < size; ++m) alpha[m] += change[m];
    return worst > 0.0 ? worst / largest : 0.0;
  }

  double ridge_;
  Array<double> noises_ = responses;  // state
  Matrix<double> matrix_;            // scratch: A
  Array<double> residual_ = responses, change_ = responses;  // scratch
};

/// Kernel ridge regression on the last `budget` samples.
class SlidingWindowKRLS final : public CentreLearner {
 public:
  explicit SlidingWindowKRLS(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override { fit_.visit(archive); }

  void step(Centres& f, Sample& sample) override {
    fit_.append(f, sample, sample.parabola());
    if (f.size() == f.capacity) fit_.remove(f, 0);
    fit_.finish(f, sample);
  }

 private:
  KernelRidge fit_{spec_, f_.capacity};
};

/// Kernel ridge regression on `budget` samples: beyond it the one with the least leave-one-out
/// error, |alpha_j| / (A^-1)_jj, is removed. First the kept responses move towards the new one,
///
///     z_j <- z_j - label_rate * k(c_j, x) (z_j - z).
class FixedBudgetKRLS final : public CentreLearner {
 public:
  explicit FixedBudgetKRLS(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override { fit_.visit(archive); }

  void step(Centres& f, Sample& sample) override {
    const Sample::Parabola fit = sample.parabola();
    double* z = fit_.responses.data();
    const double* k = f.k.data();
    for (int m = 0, size = f.size(); m < size; ++m)
      z[m] -= label_rate_ * k[m] * (z[m] - fit.response);
    fit_.append(f, sample, fit);
    const int size = f.size();
    if (size == f.capacity) {
      fit_.solve(f);
      for (int m = 0; m < size; ++m) errors_[m] = absolute(f.alpha[m]) / fit_.inverse[m][m];
      fit_.remove(f, argmin(errors_.data(), size));
    }
    fit_.finish(f, sample);
  }

 private:
  double label_rate_ = number("label_rate");
  KernelRidge fit_{spec_, f_.capacity};
  Array<double> errors_ = Array<double>(f_.capacity);  // scratch: leave-one-out errors
};

/// A Gaussian process on `budget` centres: the posterior mean m and covariance S of f at them. With
/// q = K^-1 k(x, centres), gamma = k(x, x) - k' q, h = S q and s = noise / weight + gamma + q' h, a
/// sample with response z changes them by
///
///     m <- (m, q'm) + p (z - q'm) / s,    p = (h, gamma + q'h),
///     S <- (S h; h' gamma + q'h) - p p' / s;
///
/// beyond the budget the centre whose removal moves the mean least is removed. Before or after that
/// it forgets towards the prior, with r = forgetting: S <- r S + (1 - r) K, m <- sqrt(r) m.
class KRLSTracker final : public CentreLearner {
 public:
  explicit KRLSTracker(const LearnerSpec& spec) : CentreLearner(spec, true, false) {}
  void visit_method(Archive& archive) override {
    inverse_.visit(archive);
    archive("covariance", covariance_);
    archive("mean", mean_);
  }

  void step(Centres& f, Sample& sample) override {
    const Sample::Parabola fit = sample.parabola();
    double *mean = mean_.data(), *p = p_.data();
    int size = f.size();
    // The prior of f(x): mean q'm, variance gamma + q'h.
    const double gamma = inverse_.project(f), *q = inverse_.solved.data();
    if (forgets_first_) forget(size);
    symmetric_matvec(covariance_, q, size, p);
    const double predicted = dot(q, mean, size);
    const double variance = gamma + jitter_ * f.self_kernel + dot(q, p, size);
    const double s = variance + noise_ / fit.weight;
    const double gain = (fit.response - predicted) / s;
    if (gamma > std::max(DEPENDENT, 2.0 * jitter_) * f.self_kernel) {
      append_row_column(covariance_, size, p, variance);
      p[size] = variance;
      mean[size] = predicted;
      inverse_.append(f, sample, 0.0, gamma);
      ++size;
    }
    add_outer(covariance_, p, size, -1.0 / s);
    for (int m = 0; m < size; ++m) mean[m] += gain * p[m];
    if (size == f.capacity) remove_least(f), --size;
    if (!forgets_first_) forget(size);
    inverse_.refresh(f, sample.number);
    inverse_.multiply(mean, size, f.alpha.data());  // alpha = K^-1 m
    sample.norm = f.compute_norm();
  }

  /// Of f at the query point, in units of the noise's: (gamma + q' S q) / noise.
  void variance(const Query& query, Lanes* out, int) override {
    Centres& f = f_;
    f.predict(query.x);
    double *q = p_.data(), *h = errors_.data();
    const int size = f.size();
    inverse_.multiply(f.query_k(), size, q);
    symmetric_matvec(covariance_, q, size, h);
    const double gamma = f.query_self() - dot(f.query_k(), q, size);
    *out = first_lane(std::max(gamma + dot(q, h, size), 0.0) / noise_);
  }

 private:
  void forget(int size) {
    const double r = forgetting_;
    if (!(r < 1.0)) return;
    for (int i = 0; i < size; ++i) {
      double* row = covariance_[i];
      const double* prior = f_.gram[i];
      for (int m = 0; m < size; ++m) row[m] = r * row[m] + (1.0 - r) * prior[m];
      row[i] += (1.0 - r) * jitter_ * prior[i];
    }
    for (int m = 0; m < size; ++m) mean_[m] *= sqrt(r);
  }

  /// Remove the centre whose removal moves the mean least.
  void remove_least(Centres& f) {
    const int size = f.size();
    double* errors = errors_.data();
    inverse_.multiply(mean_.data(), size, errors);
    for (int m = 0; m < size; ++m) errors[m] = absolute(errors[m] / inverse_[m][m]);
    const int j = argmin(errors, size);
    delete_element(mean_.data(), size, j);
    delete_row_column(covariance_, size, j);
    inverse_.remove(f, j);
  }

  double forgetting_ = number("forgetting"), noise_ = number("noise"), jitter_ = number("jitter");
  bool forgets_first_ = spec_.settings.word("forget_when") == "before";
  GramInverse inverse_{f_, jitter_};
  Matrix<double> covariance_{f_.capacity, f_.capacity};  // state: S
  Array<double> mean_ = Array<double>(f_.capacity);      // state: m
  Array<double> p_ = mean_, errors_ = mean_;  // scratch
};

}  // namespace

std::vector<NamedLearner> least_squares_on_centres_family() {
  return {{"KRLS", make<KRLS>},
          {"SlidingWindowKRLS", make<SlidingWindowKRLS>},
          {"FixedBudgetKRLS", make<FixedBudgetKRLS>},
          {"KRLSTracker", make<KRLSTracker>}};
}

}  // namespace kb
