// What a combiner is: it chooses the weights of the slots after each sample, from their evidence.
#pragma once
#include "losses.hpp"
#include "settings.hpp"

namespace kb {

/// What a combiner gets from the P slots for a block of samples: arrays (count, P) by rows. A slot
/// that has become non-finite has infinite losses and costs from then on, and curvature 0.
struct Evidence {
  std::int64_t first;              // number of the block's first sample, counted from 0
  int count, slots, window;
  const double* targets = nullptr;           // (window - 1 + count,): the window's before, the block's
  const double* curvature = nullptr;         // a_p: regularization / 2 |f_p|^2 after each sample
  const double* window_loss = nullptr;       // b_p: loss on the window after each sample is learned
  const double* slot_cost = nullptr;         // cost of the slot alone, before it learns the sample
  const double* slot_loss = nullptr;         // loss of the slot's prediction of the sample
  const double* slot_predictions = nullptr;  // f_p(x) before the sample is learned
  const double* values = nullptr;  // (count, window, P): f_p on the window after each sample, or null
  const Loss* loss = nullptr;
  double regularization = 0.0;

  struct BySlot {
    const char* name;
    const double* Evidence::*rows;
  };
  static const BySlot BY_SLOT[5];  // the arrays (count, P), for those who pass them on by name

  double target(int t) const { return targets[window - 1 + t]; }
  const double* row(const double* array, int t) const { return array + std::size_t(t) * slots; }
};

inline constexpr Evidence::BySlot Evidence::BY_SLOT[5] = {
    {"curvature", &Evidence::curvature},
    {"window_loss", &Evidence::window_loss},
    {"slot_cost", &Evidence::slot_cost},
    {"slot_loss", &Evidence::slot_loss},
    {"slot_predictions", &Evidence::slot_predictions},
};

/// How the slots of a bank follow from those of the bank before it.
struct SlotPlan {
  std::vector<int> kept;      // the slot that slot i goes on from; -1: slot i is new
  std::vector<int> previous;  // a slot by which slot i, if it is new, is judged at first
  bool is_new(int i) const { return kept[i] < 0; }
  int source(int i) const { return is_new(i) ? previous[i] : kept[i]; }
};

class Combiner {
 public:
  virtual ~Combiner() = default;
  virtual void visit(Archive& archive) = 0;
  /// chosen (count, P): the weights after each sample; `weights` are those before the block.
  virtual void choose(const Evidence& evidence, const double* weights, double* chosen) = 0;
  /// For rules by gradient steps: the largest rate over the largest stable one so far, and that rate.
  virtual std::pair<double, double> step_ratio() const { return {0.0, 0.0}; }
  /// Go on from the state of a bank with other slots: arrays `by_slot` are indexed accordingly.
  virtual void change_slots(Combiner& before, const SlotPlan& plan);
  /// Whether it calls a function of the user's, which may fail.
  virtual bool may_fail() const { return false; }
};

// --- how combiners are made, by their names in Python ---------------------------------------------

/// What a combiner is made for: one output of a bank.
struct CombinerSpec {
  Settings settings;
  int slots, window;
  double regularization;
  std::shared_ptr<const Loss> loss;
};

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
