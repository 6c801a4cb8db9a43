// Equal weights, and all weight on the best slot so far.
#include "make.hpp"

namespace kb {

/// w_p = 1 / P over the P slots that have not failed.
class Uniform final : public Combiner {
 public:
  std::unique_ptr<Combiner> clone() const override { return std::make_unique<Uniform>(*this); }
  void visit(Archive&) override {}
  void choose(const Evidence& e, const double*, double* chosen) override {
    for (int t = 0; t < e.count; ++t, chosen += e.slots) {
      const double* losses = e.row(e.window_loss, t);
      int finite = 0;
      for (int p = 0; p < e.slots; ++p) finite += losses[p] < INF;
      for (int p = 0; p < e.slots; ++p) chosen[p] = losses[p] < INF ? 1.0 / finite : 0.0;
    }
  }
};

/// All weight on the slot with the least cumulative cost, the first of equals.
class Best final : public Combiner {
 public:
  explicit Best(int slots) : totals_(slots) {}
  std::unique_ptr<Combiner> clone() const override { return std::make_unique<Best>(*this); }
  void visit(Archive& archive) override { archive.by_slot("totals", totals_); }
  void choose(const Evidence& e, const double*, double* chosen) override {
    for (int t = 0; t < e.count; ++t, chosen += e.slots) {
      const double* costs = e.row(e.slot_cost, t);
      int best = 0;
      for (int p = 0; p < e.slots; ++p) {
        totals_[p] += costs[p];
        chosen[p] = 0.0;
        if (totals_[p] < totals_[best]) best = p;
      }
      if (totals_[best] < INF) chosen[best] = 1.0;
    }
  }

 private:
  Array<double> totals_;  // cumulative costs of the slots
};

std::unique_ptr<Combiner> make_uniform(const CombinerSpec&) { return std::make_unique<Uniform>(); }
std::unique_ptr<Combiner> make_best(const CombinerSpec& spec) {
  return std::make_unique<Best>(spec.slots);
}

}  // namespace kb
