// A learner whose slots run in another process: it has no state, and leaves behind what that process
// has handed over.
#pragma once
#include "../learner.hpp"

namespace kb {

/// What the slots of a shard, S of them, have left behind for samples: predictions, norms and effects
/// (n, K, S), values (n, K, window, S). Norms and values are those after each sample.
struct HandedOver {
  std::int64_t first = 0;  // the number of the first sample
  int count = 0, slots = 0;
  const double *predictions = nullptr, *values = nullptr, *norms = nullptr, *effects = nullptr;
};

class Remote final : public Learner {
 public:
  /// column, width : which of the shard's slots are those of this pack.
  Remote(int column, int width, const Objective& objective)
      : column_(column), width_(width), outputs_(objective.outputs()), window_(objective.window) {}

  std::unique_ptr<Learner> clone() const override { return std::make_unique<Remote>(*this); }
  void visit(Archive&) override {}
  void learn(const Block& block, Record* records) override;
  void predict(const Query&, Lanes*) override;  // not possible: only the other process knows

  /// Take the records of the samples that are learned next; they must stay until then.
  void take(const HandedOver& handed);
  bool is_ready() const { return handed_.count > 0; }
  void forget() { handed_ = {}; }

 private:
  int column_, width_, outputs_, window_;
  HandedOver handed_;
};

}  // namespace kb
