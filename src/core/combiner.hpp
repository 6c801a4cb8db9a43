// What a combiner is: it chooses the weights of the slots after each sample, from their evidence.
#pragma once
#include "losses.hpp"
#include "settings.hpp"

namespace kb {

/// How late the targets of a block are. Errors that come in late are alike, and by chance alone some slot is
/// better than others by about rows / samples of its loss; the price (P,) of a slot, 0 to 1, says how much
/// that is held against it.
struct Lateness {
  double rows = 0.0;
  const double* prices = nullptr;
};

/// What a combiner gets from the P slots for a sample: arrays (P,). A slot that has become non-finite
/// has infinite losses and costs from then on, and curvature 0.
struct Evidence {
  std::int64_t number;             // of the sample, counted from 0
  int slots, seen;                 // seen: how many samples the window has, with this one
  const double* targets;           // (seen,): those of the window, the newest last
  const double* values;            // (seen, P): f_p on the window after the sample, or null
  const double* curvature;         // a_p: regularization / 2 |f_p|^2 after the sample
  const double* window_loss;       // b_p: loss on the window after the sample is learned
  const double* slot_cost;         // cost of the slot alone, before it learns the sample
  const double* slot_loss;         // loss of the slot's prediction of the sample
  const double* slot_predictions;  // f_p(x) before the sample is learned
  const Loss* loss;
  Lateness late;
  double target() const { return targets[seen - 1]; }
};

/// The same for a block of samples.
struct EvidenceBlock {
  static constexpr int ROWS = 5;
  static constexpr const char* NAMES[ROWS] = {"curvature", "window_loss", "slot_cost", "slot_loss",
                                              "slot_predictions"};
  std::int64_t first;              // number of the block's first sample
  int count, slots, window;
  const double* targets;           // (window - 1 + count,): the window's before, the block's
  const double* values;            // (count, window, P), or null
  const double* rows[ROWS];        // (count, P), by name
  const Loss* loss;
  Lateness late;

  Evidence sample(int t) const {
    const int seen = int(std::min<std::int64_t>(first + t + 1, window)), unseen = window - seen;
    const std::size_t row = std::size_t(t) * slots;
    return {first + t, slots, seen, targets + t + unseen,
            values ? values + row * window + std::size_t(unseen) * slots : nullptr,
            rows[0] + row, rows[1] + row, rows[2] + row, rows[3] + row, rows[4] + row, loss, late};
  }
};

/// How the slots of a bank follow from those of the bank before it.
struct SlotPlan {
  std::vector<int> continued;  // the slot that slot i goes on from; -1: slot i is new
  std::vector<int> previous;   // a slot by which slot i, if it is new, is judged at first
  bool is_new(int i) const { return continued[i] < 0; }
  int source(int i) const { return is_new(i) ? previous[i] : continued[i]; }
};

/// What a combiner is made for: one output of a bank.
struct CombinerSpec {
  Settings settings;
  int slots, window;
  double regularization;
  std::shared_ptr<const Loss> loss;
};

class Combiner {
 public:
  explicit Combiner(const CombinerSpec& spec) : spec_(spec) {}
  virtual ~Combiner() = default;
  virtual void visit(Archive& archive) = 0;
  /// chosen (P,): the weights after a sample; `weights` are those before it.
  virtual void choose(const Evidence& evidence, const double* weights, double* chosen) = 0;
  /// The same for a block: chosen (count, P).
  virtual void choose_block(const EvidenceBlock& block, const double* weights, double* chosen) {
    for (int t = 0; t < block.count; ++t, weights = chosen, chosen += block.slots)
      choose(block.sample(t), weights, chosen);
  }
  /// Go on from the state of a bank with other slots: arrays `by_slot` are indexed accordingly.
  virtual void change_slots(Combiner& before, const SlotPlan& plan);
  /// Whether it calls a function of the user's, which may fail.
  virtual bool may_fail() const { return false; }

 protected:
  double number(const char* setting) const { return spec_.settings.number(setting); }
  bool is_word(const char* setting, const char* word) const {
    return spec_.settings.word(setting) == word;
  }
  CombinerSpec spec_;
};

// --- how combiners are made, by their names in Python ---------------------------------------------

/// What a combiner is called in Python, and how it is made.
struct NamedCombiner {
  const char* name;
  Cloned<Combiner> (*make)(const CombinerSpec&);
};

template <class Part>
Cloned<Combiner> make(const CombinerSpec& spec) {
  return std::make_unique<Part>(spec);
}

Cloned<Combiner> make_combiner(const std::string& name, const CombinerSpec& spec);

// One line for each file of combiners.
std::vector<NamedCombiner> experts_family(), joint_family(), omkr_family();
std::vector<NamedCombiner> simplex_family(), stacking_family();

}  // namespace kb
