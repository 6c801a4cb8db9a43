// What a combiner is: it chooses the weights of the slots after each sample, from their evidence.
#pragma once
#include "losses.hpp"
#include "settings.hpp"

namespace kb {

/// What a combiner gets from the P slots for a block of samples: arrays (count, P) by rows. A slot
/// that has become non-finite has infinite losses and costs from then on, and curvature 0.
struct Evidence {
  std::int64_t first;              // number of the block's first sample, counted from 0
  int count, slots, window, dimension;
  const double* inputs;            // (count, dimension)
  const double* targets;           // (window - 1 + count,): the window's before the block, the block's
  const double* curvature;         // a_p: regularization / 2 |f_p|^2 after each sample
  const double* window_loss;       // b_p: loss on the window after each sample is learned
  const double* slot_cost;         // cost of the slot alone, before it learns the sample
  const double* slot_loss;         // loss of the slot's prediction of the sample
  const double* slot_predictions;  // f_p(x) before the sample is learned
  const double* values;            // (count, window, P): f_p on the window after each sample, or null
  const Loss* loss;
  double regularization;

  double target(int t) const { return targets[window - 1 + t]; }
  const double* row(const double* array, int t) const { return array + std::size_t(t) * slots; }
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
  virtual std::unique_ptr<Combiner> clone() const = 0;
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

using MakeCombiner = std::unique_ptr<Combiner>(const CombinerSpec&);

std::unique_ptr<Combiner> make_combiner(const std::string& name, const CombinerSpec& spec);

MakeCombiner make_best, make_fixed_share, make_hedge, make_joint, make_omkr, make_robust_stacking;
MakeCombiner make_simplex, make_stacking, make_uniform;

}  // namespace kb
