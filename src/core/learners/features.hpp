// Learners on features that follow from the input alone: f(x) = weights . phi(x). One loop for all;
// a learner is a pair of
//
//   Features   size(), constant(), write(x, phi)
//   Method     how weights learn: prepare(samples of a cycle), advance(a sample, for all outputs),
//              step(a sample, for some outputs), finish(a sample); Signal, what an output makes of
//              prediction and target; OutputState, what is kept for an output beside its
//              weights
//
// The state of a method follows from the inputs, and is kept once for all outputs, unless the loss
// takes part in it (`follows_inputs`): then an output has its own.
//
// The features of a sample are computed once for all outputs. Those of a cycle of samples are
// computed together where a block has them, so that a method can prepare their steps together, by
// the same sums as one by one.
//
// Lanes run over features, so a pack has one slot, in lane 0. Up to four outputs learn side by side:
// while a sum of one waits for its last addition, those of the others go on. Every sum has the bits of
// `dot`, however many are computed at once: neither cuts into blocks nor other outputs matter.
#pragma once
#include <cmath>

#include "../dense.hpp"
#include "../learner.hpp"
#include "../math.hpp"

namespace kb {

/// Features of an input, phi(x).
class Features {
 public:
  virtual ~Features() = default;
  virtual int size() const = 0;
  /// Which feature is the constant; `size` or more if there is none.
  virtual int constant() const = 0;
  virtual void write(const double* x, double* phi) = 0;
  /// Where the features of one on fewer inputs, with `before` features, are among these; none if its
  /// features are of the columns that it knows.
  virtual std::vector<int> places(int /*before*/) const { return {}; }
};

/// phi_m(x) = amplitude_m cos(angle_m) for m < trigonometric, amplitude_m angle_m for the rest,
/// with angle_m = frequency_m'x_c + phase_m, where x_c holds some coordinates of x. In blocks of
/// eight: four cosines, and the sines of the same angles. The linear features are the coordinates
/// and a constant. Both are padded, with features of amplitude 0.
class FourierFeatures final : public Features {
  /// What is drawn; equal ones, such as those of banks with equal settings, are one object.
  struct Draws {
    Array<double> frequencies, phases, amplitudes;
    bool operator==(const Draws&) const = default;
  };
  static std::shared_ptr<const Draws> shared(Draws draws);

 public:
  /// frequencies (coordinates, size), phases and amplitudes (size,), as Python has drawn them.
  FourierFeatures(int dimension, std::vector<int> coordinates, int trigonometric,
                  Array<double> frequencies, Array<double> phases, Array<double> amplitudes);
  explicit FourierFeatures(const LearnerSpec& spec)
      : FourierFeatures(spec.dimension, spec.settings.indices("coordinates", spec.dimension),
                        spec.settings.whole("trigonometric"), spec.settings.array("frequencies"),
                        spec.settings.array("phases"), spec.settings.array("amplitudes")) {}

  int size() const override { return int(draws_->phases.size()); }
  int constant() const override { return trigonometric_ + int(coordinates_.size()); }
  void write(const double* x, double* phi) override;

 private:
  Lanes angles(int m) const;

  int trigonometric_;
  std::vector<int> coordinates_;
  std::shared_ptr<const Draws> draws_;
  Array<double> point_;  // scratch: x_c
};

/// |weights|^2, and the products of the weights with phi and with the next features, of an output.
struct Sums {
  double norm, value, next;
};

/// weights[g][m] <- change(g, m, weights[g][m]) for lanes or one number from m on, and the sums of
/// the new weights, each as by `dot`, in one loop. weights[g], phi, next: (count,).
template <int G, class Change>
void change_and_sum(double* const* weights, const double* phi, const double* next, int count,
                    Change change, Sums* sums) {
  Lanes norms[G], values[G], ahead[G];
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) norms[g] = values[g] = ahead[g] = 0.0;
  const int even = whole_lanes(count);
  for (int m = 0; m < even; m += WIDTH) {
    const Lanes here = load(phi + m), coming = load(next + m);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      const Lanes w = change(g, m, load(weights[g] + m));
      store(weights[g] + m, w);
      norms[g] = fma(w, w, norms[g]);
      values[g] = fma(w, here, values[g]);
      ahead[g] = fma(w, coming, ahead[g]);
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < G; ++g) {
    const Lanes four = add_lanes(norms[g], values[g], ahead[g], 0.0);
    sums[g] = {four[0], four[1], four[2]};
    for (int m = even; m < count; ++m) {
      const double w = change(g, m, weights[g][m]);
      weights[g][m] = w;
      sums[g].norm += w * w;
      sums[g].value += w * phi[m];
      sums[g].next += w * next[m];
    }
  }
}

template <class Method>
class FeatureLearner final : public Learner {
 public:
  FeatureLearner(const LearnerSpec& spec, Cloned<Features> features)
      : window_(spec.objective.window), size_(features->size()), features_(std::move(features)) {
    const Method method(spec, *features_);
    cycle_ = method.cycle();
    ahead_ = Matrix<double>(cycle_, padded_length(size_));
    for (const auto& loss : spec.objective.losses) {
      const bool shares = Method::follows_inputs(*loss);
      const bool leads = !shares || shared_ < 0;
      if (leads) methods_.push_back(method);
      if (shares && leads) shared_ = int(methods_.size()) - 1;
      outputs_.emplace_back(loss, size_, shares ? shared_ : int(methods_.size()) - 1, leads);
    }
    predictions_.resize(outputs_.size());
    weights_.resize(outputs_.size());
  }

  void visit(Archive& archive) override {
    if (window_ > 1) archive("window_features", past_);
    if (shared_ >= 0) methods_[shared_].visit(archive);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const std::string name = "output" + std::to_string(k);
      archive.part(name, outputs_[k]);
      if (outputs_[k].method != shared_) archive.part(name, methods_[outputs_[k].method]);
    }
  }

  void learn(const Block& block, Record* records) override {
    for (int t = 0; t < block.count;) t += learn_cycle(block, t, records);
  }

  void predict(const Query& query, Lanes* out) override {
    features_->write(query.x, query_features_.data());
    evaluate(query_features_.data());
    for (double prediction : predictions_) *out++ = first_lane(prediction);
  }

  void variance(const Query& query, Lanes* out, int outputs) override {
    if constexpr (requires(Method& method) { method.variance(query.seen, ahead_, 0); }) {
      const int place = int(query.seen % cycle_);
      features_->write(query.x, ahead_[place]);
      for (Method& method : methods_) {
        const double variance = method.variance(query.seen, ahead_, place);
        for (int k = 0; k < outputs; ++k)
          if (&methods_[outputs_[k].method] == &method) out[k] = first_lane(variance);
      }
    } else {
      Learner::variance(query, out, outputs);
    }
  }

  /// weights = sum_j c_j phi(points_j). All sums are exact, rounded once.
  void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                  Record* records) override {
    Matrix<double> rows(points.rows(), size_);
    for (int j = 0; j < points.rows(); ++j) features_->write(points[j], rows[j]);
    Array<double> weights(size_);
    ExactSum norm;
    for (int m = 0; m < size_; ++m) {
      ExactSum sum;
      for (int j = 0; j < points.rows(); ++j) sum.add(coefficients[j][0] * rows[j][m]);
      weights[m] = sum.value();
      norm.add(weights[m] * weights[m]);
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      outputs_[k].weights = weights;
      records[k].norms[0] = first_lane(norm.value());
    }
  }

  /// The new inputs have new features, which were 0 so far and have the prior's variance.
  void continue_from(Learner& narrower) override {
    auto& other = dynamic_cast<FeatureLearner&>(narrower);
    const std::vector<int> places = features_->places(other.size_);
    if (places.empty()) return Learner::continue_from(other);
    auto scatter = [&](const double* from, double* to) {
      for (std::size_t m = 0; m < places.size(); ++m) to[places[m]] = from[m];
    };
    if (methods_.size() != other.methods_.size()) throw StateRefused("the outputs differ");
    for (std::size_t i = 0; i < methods_.size(); ++i)
      methods_[i].continue_from(other.methods_[i], places);
    for (int i = 0; i < past_.rows(); ++i) scatter(other.past_[i], past_[i]);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      scatter(other.outputs_[k].weights.data(), outputs_[k].weights.data());
      outputs_[k].state = other.outputs_[k].state;
    }
  }

 private:
  /// What belongs to one output.
  struct Output {
    Output(std::shared_ptr<const Loss> loss, int size, int method, bool leads)
        : loss(std::move(loss)), method(method), leads(leads), weights(size) {}
    void visit(Archive& archive) {
      archive("weights", weights);
      state.visit(archive);
    }
    std::shared_ptr<const Loss> loss;
    int method;                 // of which method it is, by number
    bool leads;                 // whether it is the first of that one
    Array<double> weights;      // (size,)
    typename Method::OutputState state;  // what the method keeps for an output
  };

  /// predictions[k] = f at features phi, of output k.
  void evaluate(const double* phi) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) weights_[k] = outputs_[k].weights.data();
    all_dots(&phi, 1, weights_.data(), int(weights_.size()), size_, predictions_.data());
  }

  /// Learn the samples from t on that are in the same cycle; returns how many these are.
  int learn_cycle(const Block& block, int t, Record* records) {
    const std::int64_t first = block.first + t;
    const int place = int(first % cycle_), count = std::min(cycle_ - place, block.count - t);
    for (int i = 0; i < count; ++i) {
      double* phi = ahead_[place + i];
      if (block.samples.uses_query)
        std::copy(query_features_.begin(), query_features_.end(), phi);
      else
        features_->write(block.x(t + i), phi);
    }
    for (Method& method : methods_) method.prepare(ahead_, place, count);
    evaluate(ahead_[place]);
    for (int i = 0; i < count; ++i) {
      const Sample sample{block, records, first + i, t + i, ahead_[place + i],
                          ahead_[place + std::min(i + 1, count - 1)],
                          find_window(first, place, i)};
      for (std::size_t k = 0; k < outputs_.size();) {
        std::size_t alike = 1;  // outputs of one method
        while (alike < 4 && k + alike < outputs_.size() &&
               outputs_[k + alike].method == outputs_[k].method)
          ++alike;
        k += alike == 4   ? learn_sample<4>(k, sample)
             : alike >= 2 ? learn_sample<2>(k, sample)
                          : learn_sample<1>(k, sample);
      }
      for (Method& method : methods_) method.finish(first + i);
    }
    for (int i = std::max(count - (window_ - 1), 0); i < count; ++i)
      std::copy_n(ahead_[place + i], size_, past_[int((first + i) % (window_ - 1))]);
    return count;
  }

  struct Sample {
    const Block& block;
    Record* records;
    std::int64_t number;
    int t;                     // its row in the block
    const double *phi, *next;  // its features, and those of the next sample if it is in the cycle
    int older;                 // samples on the window before it
  };

  /// Learn a sample, for outputs k .. k + G - 1, which have one method; returns G. The weights after it
  /// give norm^2, the values on the window and the next prediction.
  template <int G>
  int learn_sample(std::size_t k, const Sample& sample) {
    Output* outputs = &outputs_[k];
    Method& method = methods_[outputs->method];
    const int t = sample.t, older = sample.older, unseen = window_ - 1 - older;
    typename Method::Signal signals[G];
    typename Method::OutputState* states[G];
    double* weights[G];
    for (int g = 0; g < G; ++g) {
      Output& output = outputs[g];
      Record& record = sample.records[k + g];
      const double target = sample.block.targets[k + g][t][0];
      signals[g] = Method::signal(*output.loss, predictions_[k + g], target);
      states[g] = &output.state;
      weights[g] = output.weights.data();
      record.predictions[t] = first_lane(predictions_[k + g]);
      record.effects[t] = 0.0;
    }
    if (outputs->leads) method.advance(sample.number, sample.phi, signals[0]);
    Sums sums[G];
    method.template step<G>(sample.number, weights, states, signals, sample.phi, sample.next, sums);
    if (older > 0) all_dots(weights, G, older_rows_.data(), older, size_, older_values_.data());
    for (int g = 0; g < G; ++g) {
      Record& record = sample.records[k + g];
      record.norms[t + 1] = first_lane(sums[g].norm);
      Lanes* values = record.values[t + 1];  // before the first sample f is 0
      std::fill_n(values, unseen, Lanes(0.0));
      for (int j = 0; j < older; ++j)
        values[unseen + j] = first_lane(older_values_[g * older + j]);
      values[window_ - 1] = first_lane(sums[g].value);
      predictions_[k + g] = sums[g].next;
    }
    return G;
  }

  /// older_rows[j]: features of the samples on the window before sample first + i, oldest first.
  /// Returns how many there are. The cycle's sample first + i is in row place + i of ahead.
  int find_window(std::int64_t first, int place, int i) {
    const int older = int(std::min<std::int64_t>(first + i, window_ - 1));
    if (older == 0) return 0;
    const double** rows = older_rows_.data() + older;
    int age = 1;
    for (; age <= std::min(i, older); ++age) *--rows = ahead_[place + i - age];
    int ring = int((first + i - age + window_ - 1) % (window_ - 1));
    for (; age <= older; ++age) {
      *--rows = past_[ring];
      ring = ring == 0 ? window_ - 2 : ring - 1;
    }
    return older;
  }

  // settings
  int window_, size_, cycle_ = 0;
  Cloned<Features> features_;
  int shared_ = -1;  // the method that outputs share, by number; -1: none
  // state
  std::vector<Method> methods_;
  std::vector<Output> outputs_;
  Matrix<double> past_{window_ - 1, size_};  // features of the newest samples: n in row n % (window - 1)
  // scratch
  Matrix<double> ahead_;  // features of a cycle's samples: n in row n % cycle, padded with zeros
  Array<double> query_features_ = Array<double>(size_);
  Array<double> predictions_;           // f at the next sample, of each output
  std::vector<const double*> weights_;  // of each output
  std::vector<const double*> older_rows_ = std::vector<const double*>(window_);
  Array<double> older_values_ = Array<double>(4 * window_);
};

}  // namespace kb
