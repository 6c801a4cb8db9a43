// OMKR, the paper's comparator: weights by gradient steps on the cost of the window.
#include <algorithm>
#include <cmath>

#include "../combiner.hpp"
#include "../dense.hpp"
#include "../math.hpp"

namespace kb {

/// w <- w - rate (ridge a w + sum_i l'(w'f(x_i), y_i) f(x_i)), rate = max(rate_1 2^-halvings, least).
/// With ridge = 2 that is the gradient of the cost; the paper prints ridge = regularization.
class Omkr final : public Combiner {
 public:
  using Combiner::Combiner;

  void visit(Archive& archive) override {
    archive.by_slot("gradient", gradient_);
    archive("rate", rate_);
  }

  void choose(const Evidence& e, const double* weights, double* chosen) override {
    for (int i = 0; i < e.seen; ++i) {  // w'f(x_i)
      const double* values = e.values + std::size_t(i) * e.slots;
      double total = 0.0;
      for (int p = 0; p < e.slots; ++p) total += weights[p] * values[p];
      f_[i] = total;
      y_[i] = e.targets[i];
    }
    e.loss->derivatives(f_, y_, e.seen, slopes_);
    // The step after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    const double halvings = double((e.number + 1) / halve_every_);
    rate_ = std::max(first_rate_ * power(2.0, -halvings), least_rate_);
    for (int p = 0; p < e.slots; ++p) {
      double gradient = ridge_ * e.curvature[p] * weights[p];
      for (int i = 0; i < e.seen; ++i) gradient += slopes_[i] * e.values[std::size_t(i) * e.slots + p];
      gradient_[p] = gradient;
      // A slot that has failed has weight 0; a weight that overflows starts again from 0.
      const double moved = weights[p] - rate_ * gradient;
      chosen[p] = e.window_loss[p] == INF || !std::isfinite(moved) ? 0.0 : moved;
    }
  }

 private:
  double first_rate_ = number("learning_rate"), least_rate_ = number("least_rate");
  std::int64_t halve_every_ = spec_.settings.count("halve_every");
  double ridge_ = is_word("gradient", "exact") ? 2.0 : spec_.regularization;
  Array<double> gradient_ = Array<double>(spec_.slots);  // of the cost, before the last step
  double rate_ = 0.0;       // of that step
  // scratch, on the window: w'f, targets and the slopes of the loss
  Array<double> f_ = Array<double>(padded_length(spec_.window), 1.0), y_ = f_, slopes_ = f_;
};

std::vector<NamedCombiner> omkr_family() { return {{"OMKR", make<Omkr>}}; }

}  // namespace kb
