// A bank: packs of slots that learn a stream on their own, and for each output a combiner that
// weighs them and a ledger.
#pragma once
#include <functional>
#include <optional>

#include "combiner.hpp"
#include "learner.hpp"
#include "transforms.hpp"

namespace kb {

/// What a thread's call is inside of, innermost first. Threads that help are inside of what the thread
/// that calls them is inside of.
struct Inside {
  const void* object;
  const Inside* outer;
};
inline thread_local const Inside* inside = nullptr;

/// Slots whose learner has another target than y: a residual, or a transform of the target.
///
/// With T the transform and b the function of the base, the learner is trained on T(y) - T(b(x)),
/// and the slot's function is f = T^-1(T(b) + g), with g what the learner has learned. Without a
/// transform T is the identity; without a base T(b) is 0. b is taken as it was before the base
/// learned the sample. norm^2 is |b|^2 + |g|^2, without a transform an upper bound of that in the
/// sum space.
struct TargetChange {
  int base_pack = -1, base_lane = 0;  // -1: no base
  std::optional<ShiftedLog> transform;

  bool is_used() const { return base_pack >= 0 || transform; }
  Lanes forward(Lanes y) const { return transform ? transform->forward(y) : y; }
  Lanes inverse(Lanes v) const { return transform ? transform->inverse(v) : v; }
};

/// What the slots tell the combiner of an output: see EvidenceBlock. (block, P); values
/// (block * window, P), if the combiner needs them.
struct Scores {
  BlockRows<double> curvature, window_loss, slot_cost, slot_loss, slot_predictions, values;
};

/// What a bank writes for n samples, for each output; null where nobody asks.
struct Trace {
  enum Column {
    PREDICTION, COST, LOSS, GAP, CUMULATIVE_COST, REGRET,                          // (n, K)
    WEIGHTS, SLOT_COST, SLOT_LOSS, SLOT_PREDICTIONS, CURVATURE, WINDOW_LOSS,       // (n, K, P)
    VALUES,          // (n, K, window, P): those of the slots' records, after each sample
    NORMS, EFFECTS,  // (n, K, P), likewise
    COLUMNS
  };
  static constexpr const char* NAMES[COLUMNS] = {
      "predictions", "cost", "loss", "bound_gap", "cumulative_cost", "regret", "weights", "slot_cost",
      "slot_loss", "slot_predictions", "curvature", "window_loss", "values", "norms", "effects"};
  double* columns[COLUMNS] = {};
};

/// Up to four slots that run side by side: their learner, and their part of the bank's work.
class Pack {
 public:
  Pack(std::vector<int> slots, Cloned<Learner> learner, TargetChange change, int outputs, int block,
       int window);

  /// Learn a block, after the base if there is one.
  void learn(const Block& block, const std::vector<Pack>& packs);
  /// Take over what the slots have left behind elsewhere: records of a bank with so many slots, from
  /// sample `first` on.
  void receive(const Block& block, const Trace& records, std::int64_t first, int slot_count);
  /// Write the slots' evidence of each sample of a block for an output.
  void score(int output, const Block& block, const Objective& objective, Scores& scores);
  /// totals (count, window + EXTRA_SUMS) += the slots' weighted part of the bank's function.
  void mix(int output, std::int64_t first, int count, const double* weights, int slots,
           double* totals) const;
  /// Row 0 of the records becomes the state after the block.
  void close(int count) {
    for (Record& record : records) record.close(count);
  }
  /// query_values[k] = f at the query point, after the base if there is one.
  void predict(const Query& query, const std::vector<Pack>& packs);
  /// out[k] = variance at the query point over that of the noise, likewise.
  void variance(const Query& query, const std::vector<Pack>& packs);
  void visit(Archive& archive);
  /// Let the slot in lane `to` go on from the one in lane `from` of another pack, without its learner.
  void take_slot(int to, const Pack& source, int from);
  /// Have room for blocks of this length.
  void reserve(int block) {
    for (Record& record : records) record.reserve(block);
    for (Record& record : learned_) record.reserve(block);
    for (Output& output : outputs) output.losses_before = Array<Lanes>(block, Lanes(0.0));
  }
  /// Go on with other units of output k; whether the functions do. See `Learner::rescale`.
  bool rescale(int k, double factor, double offset);
  void follow_base(int k, const Array<Lanes>& before, const std::vector<Pack>& packs);
  void rescale_targets(int k, double factor, double offset, const Samples& samples);
  /// Continue from a pack on inputs with fewer columns.
  void continue_from(Pack& narrower) {
    learner->continue_from(*narrower.learner);
    records = narrower.records;
    outputs = narrower.outputs;
    learned_ = narrower.learned_;
  }
  /// A new slot on the residual of one that goes on: f = T^-1(T(b) + g), g being the state so far.
  void start_on_base(int lane, const std::vector<Pack>& packs);

  std::vector<int> slots;  // their indices in the bank
  ClonedLater<Learner> learner;
  TargetChange change;

  std::vector<Record> records;  // of the slots' functions, by output
  /// What else the pack has for an output.
  struct Output {
    Output(int block, int window, bool changes_target);
    Array<Lanes> losses_before;    // (block,): losses on the window before each sample is learned
    Lanes alive = 1.0;             // 0 for good when a value is not finite
    Lanes query = 0.0, variance = 0.0;
    Array<Lanes> targets;          // (window + SLIDE_PERIOD,): of the learner, if it has its own
  };
  std::vector<Output> outputs;

 private:
  /// T(b), for a value of the base; 0 without a base.
  Lanes of_base(const Lanes* value) const {
    return value ? change.forward((*value)[change.base_lane]) : Lanes(0.0);
  }
  /// The base's record of an output; null without a base.
  const Record* base(const std::vector<Pack>& packs, int output) const {
    return change.base_pack < 0 ? nullptr : &packs[change.base_pack].records[output];
  }
  void set_targets(const Block& block, const std::vector<Pack>& packs);
  void set_functions(int count, const std::vector<Pack>& packs);

  int window_;
  Array<Lanes> losses_;                      // scratch of `score`
  // Of each output, if the learner has other targets: these, and what it has learned, g.
  std::vector<const Lanes*> changed_targets_;
  std::vector<Record> learned_;
  Array<Lanes> answers_;                     // scratch: what the learner says of a query
};

/// Costs and losses of the bank and of every slot, summed since the first sample.
struct Ledger {
  explicit Ledger(int slots) : slot_cost(slots), slot_loss(slots) {}
  double cost = 0.0, loss = 0.0, gap = 0.0;
  double effect = 0.0;             // the first effect of truncation that is visible, until then the largest
  std::int64_t quarantined = 0;    // slots that are out
  std::int64_t missing = 0;        // samples whose target was missing
  Array<double> slot_cost, slot_loss;
  void visit(Archive& archive) {
    archive("cost", cost);
    archive("loss", loss);
    archive("gap", gap);
    archive("effect", effect);
    archive.count("quarantined", quarantined);
    archive.count("missing", missing);
    archive("slot_cost", slot_cost);
    archive("slot_loss", slot_loss);
  }
};

/// What a bank is made of; Python lays the slots out.
struct BankSpec {
  Objective objective;             // by which the bank and its slots are judged
  int dimension, slots, threads;
  int block;                       // the longest block
  bool on_simplex = true, needs_values = false, sums_weights = false;
  std::int64_t first_sample = 0;   // the number of the first sample that is learned
  std::vector<double> late_prices; // (slots,): see `Lateness`
};

class Bank {
 public:
  Bank(const BankSpec& spec, Samples samples, std::vector<Pack> packs,
       std::vector<Cloned<Combiner>> combiners, std::vector<double> first_weights);

  /// Learn samples X (n, d), y (n, K); past (n, K, P): what the slots predicted earlier, for delayed
  /// targets, or null. delay : of these targets, in rows, if the weights shall allow for it. elsewhere :
  /// the records of slots that are `Remote`, or null.
  void learn(const double* X, const double* y, std::size_t n, const double* past,
             const Trace& trace, double delay = 0.0, const Trace* elsewhere = nullptr);
  /// predictions (K,) at x, and slots (K, P).
  void predict(const double* x, double* predictions, double* slots);
  /// predictions (n, K) at the rows of X. Learns nothing.
  void predict_rows(const double* X, std::size_t n, double* predictions);
  /// predictions (n, K) from the slots' values (n, K, P).
  void combine_rows(const double* slots, std::size_t n, double* predictions);
  /// (n, K, P): the slots' values, or their variances, at the rows of X.
  void predict_slots(const double* X, std::size_t n, double* slots);
  void variance_slots(const double* X, std::size_t n, double* variances);
  /// The targets of an output are in other units from now on, y' = factor y + offset; see
  /// `Learner::rescale`.
  void rescale(int output, double factor, double offset);
  void visit(Archive& archive);
  /// Let the terms before the first sample be x; the points (count, d) of an initial function are
  /// the newest of them.
  void begin(const double* x, const double* points = nullptr, int count = 0) {
    newest.fill(x, points, count);
    started_ = 1;
  }
  /// Start at f_p = sum_j coefficients[j, p] k_p(points[j], .): points (m, d), coefficients (m, P).
  void start_from(const double* points, int count, const double* coefficients);
  /// New slots, by their indices in this bank, that have learned the newest samples in another one.
  struct NewSlots {
    Bank* bank;
    std::vector<int> indices;  // slot i of that bank is slot indices[i] here
    bool on_base;              // they learn residuals of slots that go on, and were alone there
  };
  /// Continue from a bank with other slots. Those that are kept go on bit for bit.
  void continue_with(Bank& before, const SlotPlan& plan, const std::vector<NewSlots>& added);
  /// Continue from a bank with the same slots and one output less, and from one that has learned the
  /// newest samples of this output alone. past : its target before them, NaN if it is not known.
  void continue_with_output(Bank& before, Bank& alone, int output, double past);
  /// Continue from a bank with the same slots on inputs with fewer columns; the new ones were 0.
  void continue_from(Bank& narrower);

  /// The state of one output: its weights, combiner and ledger.
  struct Output {
    Output(Cloned<Combiner> combiner, std::vector<double> first_weights, const BankSpec& spec);
    void visit(Archive& archive) {
      archive("weights", weights);
      if (!weight_sums.empty()) archive("weight_sums", weight_sums);
      archive("recent", recent);
      archive.part("ledger", ledger);
      archive.part("combiner", *combiner);
    }
    void reserve(int block, const BankSpec& spec);
    void continue_with(Output& before, const SlotPlan& plan, const BankSpec& spec);
    Cloned<Combiner> combiner;
    Array<double> weights;       // of the next prediction
    Array<double> weight_sums;   // sums of |weight|, for a bank whose slots are revised
    Array<double> recent;        // (window - 1,): targets of the window before the next sample
    Ledger ledger;
    Array<double> block_targets;  // scratch, (window - 1 + block,): `recent`, then those of the block
    Scores scores;                   // scratch
    BlockRows<double> chosen, proposed; // scratch, (block, P): the weights after each sample, and those
                                     // that the prediction used
    BlockRows<double> totals;       // (block, window + 3): see Pack::mix
    Array<double> best;          // (block,): least cumulative cost of a slot
    BlockRows<double> metrics;      // (block, WEIGHTS): what each sample has cost, as in a trace
  };

  const BankSpec& spec() const { return spec_; }
  std::int64_t samples() const { return seen_; }
  std::vector<Output> outputs;
  std::vector<Pack> packs;
  Samples newest;
  bool may_fail() const;

 private:
  void check(std::size_t combiners, std::size_t weights) const;
  void learn_block(const double* X, const double* y, int count, const double* past, double delay,
                   const Trace* elsewhere, std::int64_t first);
  void score(Pack& pack, const Block& block);
  void ask(const double* X, std::size_t n, double* out, Lanes Pack::Output::*member,
           void (Pack::*question)(const Query&, const std::vector<Pack>&));
  void use_past_predictions(int output, const Block& block, const double* past);
  void choose_weights(int output, const Block& block, double delay);
  void mix(int output, const Block& block);
  void charge(int output, const Block& block);
  void skip_sample(int output);
  void write(int output, std::size_t row, int count, const Trace& trace) const;
  double combine(double* weights, const double* values) const;
  void gather(int output, Lanes Pack::Output::*member, double* values) const;
  void run_tasks(int samples, const std::function<void(int)>& pack);
  std::pair<int, int> place(int slot) const;  // pack and lane
  void reserve(int block);
  void continue_targets(Bank& before, const SlotPlan& plan);

  BankSpec spec_;
  int room_ = 1;                              // the longest block that the arrays have room for
  std::int64_t seen_;
  std::int64_t started_ = 0;                    // whether the terms before the first sample are set
  std::vector<std::vector<int>> tasks_;       // packs that depend on each other, bases first
  std::vector<const Lanes*> targets_;         // of the block
  Array<double> window_f_, window_y_, window_loss_;  // scratch: the bank's function on the window
  Array<double> query_weights_, query_values_;
};

}  // namespace kb
