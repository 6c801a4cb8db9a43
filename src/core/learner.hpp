// What a learner is: an object for the up to four slots of a pack, with state and methods.
//
// A learner never reads the weights, and never another learner. For every sample of a block it
// leaves behind a Record per output: the prediction, the values on the window and norm^2. All else
// (losses, costs, evidence, mixtures) is computed from these by code that knows no learner.
#pragma once
#include "exact_sum.hpp"
#include "losses.hpp"
#include "samples.hpp"
#include "settings.hpp"

namespace kb {

/// A number that is kept up to date by sums and differences is computed anew when the sizes of these
/// are so many times its own: 2^16 roundings of 2^-53 are 7e-12 of it. Where all targets are of one
/// size this is never reached.
inline constexpr double CANCELLED = 0x1p16;

/// By what the slots of a pack learn, and what they are judged by.
struct Objective {
  int window;
  double regularization;
  std::vector<std::shared_ptr<const Loss>> losses;  // of each output
  int outputs() const { return int(losses.size()); }
};

/// A block of consecutive samples in one slide period; one sample is a block of one.
struct Block {
  std::int64_t first;                  // the number of the first sample, counted from 0
  int count;
  const double* X;                     // (count, dimension)
  const Samples& samples;
  const Lanes* const* targets;         // targets[k][t]: of output k and sample t of the block, or
                                       // of an earlier sample for t < 0; NaN: missing
  const double* x(int t) const { return X + std::size_t(t) * samples.dimension; }
};

/// What a learner leaves behind for a block and an output. Row 0 of values and norms is the state
/// before the block, row t + 1 that after sample t.
struct Record {
  Record(int block, int window)
      : values(block + 1, window, Lanes(0.0)),
        norms(block + 1, Lanes(0.0)),
        predictions(block, Lanes(0.0)),
        effects(block, Lanes(0.0)) {}
  BlockRows<Lanes> values;   // f on the window, the newest sample last; missing ones come first
  Array<Lanes> norms;        // |f|^2
  Array<Lanes> predictions;  // f(x_t) before sample t is learned
  Array<Lanes> effects;      // how far dropped terms moved the window's values, relative to their size

  /// Have room for blocks of this length; only row 0 is kept.
  void reserve(int block) {
    Record other(block, values.columns());
    std::copy_n(values[0], values.columns(), other.values[0]);
    other.norms[0] = norms[0];
    *this = std::move(other);
  }
  /// Row 0 becomes the state after the block.
  void close(int count) {
    std::copy_n(values[count], values.columns(), values[0]);
    norms[0] = norms[count];
  }
  /// List row 0; `name` comes before the names.
  void visit(Archive& archive, const std::string& name) {
    archive.numbers((name + "values").c_str(), values[0], {std::size_t(values.columns())});
    archive((name + "norm").c_str(), norms[0]);
  }
  /// Lane `to` of row 0 becomes that in lane `from` of another record.
  void take_lane(int to, const Record& source, int from) {
    norms[0].set(to, source.norms[0][from]);
    for (int i = 0; i < values.columns(); ++i) values[0][i].set(to, source.values[0][i][from]);
  }
};

class Learner {
 public:
  virtual ~Learner() = default;
  /// List the state. What belongs to output k is in a part "output<k>".
  virtual void visit(Archive& archive) = 0;
  /// Learn a block: fill rows 1 .. count of values and norms, predictions and effects of the record
  /// of each output.
  virtual void learn(const Block& block, Record* records) = 0;
  /// out[k] = f at the query point, of each output. What it computes of the inputs alone may be
  /// kept for a block of this point (Samples::uses_query). Learns nothing.
  virtual void predict(const Query& query, Lanes* out) = 0;

  /// out[k] = variance of f at the query point over that of the noise; NaN: not known.
  virtual void variance(const Query&, Lanes* out, int outputs) {
    std::fill_n(out, outputs, Lanes(NOT_A_NUMBER));
  }
  /// norm^2 of all terms that were removed, of an output.
  virtual Lanes dropped(int) const { return 0.0; }
  /// Learning rate over the largest stable one on the windows seen so far, of an output.
  virtual Lanes step_ratio(int) const { return 0.0; }
  /// Continue from one that has learned inputs with fewer columns; the new ones were 0 so far: what
  /// it has is the leading part of each array.
  virtual void continue_from(Learner& narrower);
  /// Let the slot in lane `to` go on from that in lane `from` of a learner of its kind. Arrays
  /// without lanes belong to all slots of a pack: they are copied if `shared`.
  virtual void take_slot(int to, Learner& source, int from, bool shared);
  /// Whether what slots share is the same as in another learner of its kind.
  bool shares_with(Learner& other);
  /// Output k has the state of a learner that has learned the newest samples only, `alone`: fit it to
  /// what outputs share. past : the target of the samples before, NaN if it is not known.
  virtual void fit_output(int, Learner& /*alone*/, double /*past*/) {}
  /// Start at f = sum_j c_j k(points_j, .) instead of at 0: points (m, dimension), coefficients
  /// (m,) lanes. Sets norms[0] of the record of each output.
  virtual void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients, Record*);
  /// The targets of output k are in other units from now on, y' = factor y + offset: map f likewise if
  /// it is a target that was kept. A function of the inputs goes on as it is: they may have other units
  /// too, or be past targets. Whether f was mapped.
  virtual bool rescale(int /*output*/, double /*factor*/, double /*offset*/) { return false; }
  /// How many inputs before the present one it reads, if more than the window's. One that does
  /// depends on the bank that it was made for.
  virtual int history() const { return 0; }
  /// Whether it calls a function of the user's, which may fail.
  virtual bool may_fail() const { return false; }
};

// --- what several learners use -------------------------------------------------------------------

/// Step sizes of first-order learners: constant, decaying, or adapted to the gradients.
///
/// With g_t the gradient of the loss at sample t = 1, 2, ..., in the space of the functions:
///
///     constant        rate_t = learning_rate
///     inverse_sqrt    rate_t = learning_rate / sqrt(t)
///     adagrad         rate_t = learning_rate / sqrt(|g_1|^2 + ... + |g_t|^2), per slot
///
/// With adagrad, rate * regularization is kept at 1/2 or below, so that the factor
/// 1 - rate * regularization of f is never below 1/2 whatever the gradients are.
struct StepSize {
  enum class Rule { constant, inverse_sqrt, adagrad };

  /// From the settings learning_rate and step_size. regularization : of a method whose f decays by
  /// 1 - rate * regularization, else 0.
  StepSize(const Settings& settings, double regularization)
      : rule(parse(settings.word("step_size"))),
        learning_rate(settings.number("learning_rate")),
        largest(adapts() && regularization > 0.0 ? 0.5 / regularization : INF) {}

  bool constant() const { return rule == Rule::constant; }
  bool adapts() const { return rule == Rule::adagrad; }

  /// The rate of sample t = `number` >= 1; squares = |g_1|^2 + ... + |g_t|^2, for adagrad.
  Lanes rate(std::int64_t number, Lanes squares) const {
    if (rule == Rule::constant) return learning_rate;
    if (rule == Rule::inverse_sqrt) return Lanes(learning_rate) / sqrt(Lanes(double(number)));
    Lanes rate = Lanes(learning_rate) / sqrt(squares);
    rate = where_less(rate, largest, rate, largest);
    return where_less(0.0, squares, rate, 0.0);  // no gradient so far: no step
  }

  Rule rule;
  double learning_rate, largest;

 private:
  static Rule parse(const std::string& word) {
    if (word == "constant") return Rule::constant;
    return word == "adagrad" ? Rule::adagrad : Rule::inverse_sqrt;
  }
};

// Initial functions f = sum_j c_j k(points_j, .): what learners that start at one have in common.

/// (m, m): the kernel values of the points, for each slot.
Matrix<Lanes> gram_matrix(const std::vector<KernelSpec>& kernels, const Matrix<double>& points);
/// norm^2 = c' K c, at least 0.
Lanes expansion_norm(const Array<Lanes>& coefficients, const Matrix<Lanes>& gram);

/// Sums in each lane, rounded once.
struct ExactLanes {
  ExactSum lanes[WIDTH];
  void add(Lanes x) {
    for (int i = 0; i < WIDTH; ++i) lanes[i].add(x[i]);
  }
  Lanes value() const {
    return Lanes(lanes[0].value(), lanes[1].value(), lanes[2].value(), lanes[3].value());
  }
};

// --- how learners are made, by their names in Python ----------------------------------------------

/// What the learner of a pack is made for.
struct LearnerSpec {
  Settings settings;
  std::vector<KernelSpec> kernels;  // of its slots, up to four, of equal structure
  Objective objective;              // by which the slots learn; a loss for each output
  int dimension;                    // columns of the inputs
  std::int64_t first_sample;        // number of the first sample that is learned
  Statistics* statistics;           // of the bank's samples: numbers those of kernels on them

  /// The same for one of the outputs.
  LearnerSpec of_output(int k) const {
    LearnerSpec spec = *this;
    spec.objective.losses = {objective.losses[k]};
    return spec;
  }
};

/// A learner of one slot and output whose f is computed anew at every point. A sample without a
/// target changes nothing.
class PointLearner : public Learner {
 public:
  PointLearner(const LearnerSpec& spec) : window_(spec.objective.window), point_(spec.dimension) {}
  void learn(const Block& block, Record* records) override;
  void predict(const Query& query, Lanes* out) override {
    value_ = value_at(query.x);
    out[0] = first_lane(value_);
  }

 protected:
  /// f(x).
  virtual double value_at(const double* x) = 0;
  /// Learn sample `number`, at the point x that f was last computed at, where it is `value`; returns
  /// f(x) afterwards.
  virtual double learn_target(std::int64_t number, const double* x, double value,
                              double target) = 0;
  /// norm^2; 0 if f is not in the space of a kernel.
  virtual double norm() const { return 0.0; }

 private:
  int window_;
  double value_ = 0.0;         // f at the last query
  std::vector<double> point_;  // scratch: an older sample of the window
};

/// A learner for one output as one for several: a copy for each, since nothing can be shared.
class Separate final : public Learner {
 public:
  explicit Separate(std::vector<Cloned<Learner>> parts) : parts_(std::move(parts)) {}
  void visit(Archive& archive) override {
    for (std::size_t k = 0; k < parts_.size(); ++k)
      archive.part("output" + std::to_string(k), *parts_[k]);
  }
  void learn(const Block& block, Record* records) override {
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      Block part = block;
      part.targets += k;
      parts_[k]->learn(part, records + k);
    }
  }
  void predict(const Query& query, Lanes* out) override {
    for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k]->predict(query, out + k);
  }
  void variance(const Query& query, Lanes* out, int) override {
    for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k]->variance(query, out + k, 1);
  }
  Lanes dropped(int k) const override { return parts_[k]->dropped(0); }
  Lanes step_ratio(int k) const override { return parts_[k]->step_ratio(0); }
  void take_slot(int to, Learner& source, int from, bool shared) override {
    auto& others = static_cast<Separate&>(source);
    for (std::size_t k = 0; k < parts_.size(); ++k)
      parts_[k]->take_slot(to, *others.parts_[k], from, shared);
  }
  void continue_from(Learner& narrower) override {
    auto& others = static_cast<Separate&>(narrower);
    for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k]->continue_from(*others.parts_[k]);
  }
  bool rescale(int k, double factor, double offset) override {
    return parts_[k]->rescale(0, factor, offset);
  }
  void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                  Record* records) override {
    for (std::size_t k = 0; k < parts_.size(); ++k)
      parts_[k]->start_from(points, coefficients, records + k);
  }
  int history() const override { return parts_[0]->history(); }
  bool may_fail() const override { return parts_[0]->may_fail(); }
  const std::vector<Cloned<Learner>>& parts() const { return parts_; }

 private:
  std::vector<Cloned<Learner>> parts_;
};

/// A learner whose slots run in another process: it has no state, and its bank is told what they
/// leave behind.
class Remote final : public Learner {
 public:
  explicit Remote(const LearnerSpec&) {}
  void visit(Archive&) override {}
  void learn(const Block&, Record*) override {
    throw std::logic_error("the records of a block were not handed over");
  }
  void predict(const Query&, Lanes*) override {
    throw std::logic_error("slots of another process are asked there");
  }
};

/// What a learner is called in Python, and how it is made.
struct NamedLearner {
  const char* name;
  Cloned<Learner> (*make)(const LearnerSpec&);
  bool shares = false;  // whether one object has all outputs, and computes once what they share
};

template <class Part>
Cloned<Learner> make(const LearnerSpec& spec) {
  return std::make_unique<Part>(spec);
}

/// A learner by its name; for one that shares nothing between outputs, a copy for each.
Cloned<Learner> make_learner(const std::string& name, const LearnerSpec& spec);

// One line for each file of learners.
std::vector<NamedLearner> feature_family(), gradients_on_centres_family();
std::vector<NamedLearner> least_squares_on_centres_family(), least_squares_on_features_family();
std::vector<NamedLearner> last_value_family(), nearest_neighbors_family(), norma_family();
std::vector<NamedLearner> boosted_trees_family(), partition_tree_family();

}  // namespace kb
