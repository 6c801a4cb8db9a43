// Rules that weight slots by exp(-rate * their losses).
//
// Only differences of losses matter: every sum is kept relative to the sum of the best slot. So it does
// not grow with the stream, and its rounding is that of the differences. A slot with infinite loss has
// failed: its sum is infinite and its weight is 0.
#include <algorithm>
#include <cmath>

#include "../combiner.hpp"
#include "../math.hpp"

namespace kb {

/// A slot this far behind has weight 0; adding to the sum must not overflow.
static constexpr double LARGEST_SUM = 1e300;

/// The least number among slots that have not failed; inf if all have.
static double least_finite(const double* numbers, const double* losses, int slots) {
  double least = INF;
  for (int p = 0; p < slots; ++p)
    if (losses[p] < INF && numbers[p] < least) least = numbers[p];
  return least;
}

/// w_p proportional to exp(-rate * sum of its losses); the rate is given, or that of AdaHedge.
class Hedge final : public Combiner {
 public:
  using Combiner::Combiner;

  void visit(Archive& archive) override {
    archive.by_slot("totals", totals_);
    archive("rate_and_gap", rate_and_gap_);
  }

  void choose(const Evidence& e, const double*, double* chosen) override {
    double &present_rate = rate_and_gap_[0], &gaps = rate_and_gap_[1];
    const double* losses = by_cost_ ? e.slot_cost : e.slot_loss;
    const double least = least_finite(losses, losses, slots_);
    for (int p = 0; p < slots_; ++p) {
      const double behind = losses[p] - least;
      excess_[p] = LARGEST_SUM < behind ? LARGEST_SUM : behind;
    }
    if (rate_ > 0.0) {
      add_losses(losses);
      present_rate = rate_;
    } else if (least < INF) {  // AdaHedge: rate = log(P) / sum of the mixability gaps
      const double size = log(double(std::max(slots_, 2)));
      const double rate = gaps > 0.0 ? size / gaps : INF;
      exponential_weights(rate, losses, weights_.data());
      const double lowest = least_finite(totals_.data(), losses, slots_);
      double after = INF;
      for (int p = 0; p < slots_; ++p)
        if (losses[p] < INF) after = std::min(after, totals_[p] - lowest + excess_[p]);
      gaps = std::min(gaps + mixability_gap(rate, lowest, after, losses), LARGEST_SUM);
      present_rate = gaps > 0.0 ? size / gaps : INF;
      add_losses(losses);
    }
    exponential_weights(present_rate, losses, chosen);
  }

 private:
  /// out_p = exp(-rate totals_p) / sum_q exp(-rate totals_q), over slots that have not failed. With
  /// infinite rate the best slots share the weight.
  void exponential_weights(double rate, const double* losses, double* out) const {
    const double least = least_finite(totals_.data(), losses, slots_);
    double size = 0.0;
    for (int p = 0; p < slots_; ++p) {
      out[p] = 0.0;
      if (!(losses[p] < INF)) continue;
      const double behind = totals_[p] - least;
      if (behind == 0.0)
        out[p] = 1.0;
      else if (rate < INF)
        out[p] = exp(-rate * behind);
      size += out[p];
    }
    if (size > 0.0)
      for (int p = 0; p < slots_; ++p) out[p] /= size;
  }

  /// totals += excess, then totals -= min totals.
  void add_losses(const double* losses) {
    for (int p = 0; p < slots_; ++p)
      totals_[p] = losses[p] < INF ? std::min(totals_[p] + excess_[p], LARGEST_SUM) : INF;
    const double least = least_finite(totals_.data(), losses, slots_);
    for (int p = 0; p < slots_; ++p)
      if (losses[p] < INF) totals_[p] -= least;
  }

  /// w'l + log(w'exp(-rate l)) / rate >= 0, for l = excess; `after` is the least of totals + excess,
  /// relative to the least of totals.
  double mixability_gap(double rate, double lowest, double after, const double* losses) const {
    double mean = 0.0, shrunk = 0.0;  // w'l, w'exp(-rate l) - 1
    for (int p = 0; p < slots_; ++p)
      if (losses[p] < INF) mean += weights_[p] * excess_[p];
    if (rate == INF) return std::max(0.0, mean - after);
    for (int p = 0; p < slots_; ++p)
      if (losses[p] < INF) shrunk += weights_[p] * expm1(-rate * excess_[p]);
    if (shrunk > -0.5)  // the usual case: small losses, where the difference would cancel
      return std::max(0.0, mean + log1p(shrunk) / rate);
    double before = 0.0, later = 0.0;
    for (int p = 0; p < slots_; ++p)
      if (losses[p] < INF) {
        before += exp(-rate * (totals_[p] - lowest));
        later += exp(-rate * (totals_[p] - lowest + excess_[p] - after));
      }
    return std::max(0.0, mean - (after + (log(before) - log(later)) / rate));
  }

  int slots_ = spec_.slots;
  double rate_ = spec_.settings.number_or("learning_rate", 0.0);  // 0: AdaHedge
  bool by_cost_ = is_word("evidence", "cost");
  Array<double> totals_ = Array<double>(slots_);   // sums of losses, relative to the least
  Array<double> rate_and_gap_ = Array<double>(2);  // the present rate; AdaHedge's sum of gaps
  Array<double> excess_ = totals_, weights_ = totals_;  // scratch: losses minus the least one; w
};

/// v_p proportional to w_p exp(-rate * loss), w_p = (1 - share) v_p + share / P.
class FixedShare final : public Combiner {
 public:
  using Combiner::Combiner;

  void visit(Archive& archive) override { archive.by_slot("posterior", posterior_); }

  void choose(const Evidence& e, const double* weights, double* chosen) override {
    const double least = least_finite(e.slot_loss, e.slot_loss, e.slots);
    int finite = 0;
    double size = 0.0;
    for (int p = 0; p < e.slots; ++p) {  // v, times a constant
      posterior_[p] = 0.0;
      if (!(e.slot_loss[p] < INF)) continue;
      ++finite;
      posterior_[p] = weights[p] * exp(-rate_ * (e.slot_loss[p] - least));
      size += posterior_[p];
    }
    for (int p = 0; p < e.slots; ++p) {
      posterior_[p] = size > 0.0 ? posterior_[p] / size : 0.0;
      chosen[p] = e.slot_loss[p] < INF ? (1.0 - share_) * posterior_[p] + share_ / finite : 0.0;
    }
  }

 private:
  double rate_ = number("learning_rate"), share_ = number("share");
  Array<double> posterior_ = Array<double>(spec_.slots);  // v
};

/// w_p = 1 / P over the P slots that have not failed.
class Uniform final : public Combiner {
 public:
  using Combiner::Combiner;
  void visit(Archive&) override {}
  void choose(const Evidence& e, const double*, double* chosen) override {
    int finite = 0;
    for (int p = 0; p < e.slots; ++p) finite += e.window_loss[p] < INF;
    for (int p = 0; p < e.slots; ++p) chosen[p] = e.window_loss[p] < INF ? 1.0 / finite : 0.0;
  }
};

/// All weight on the slot with the least cumulative cost, the first of equals.
class Best final : public Combiner {
 public:
  using Combiner::Combiner;
  void visit(Archive& archive) override { archive.by_slot("totals", totals_); }
  void choose(const Evidence& e, const double*, double* chosen) override {
    int best = 0;
    for (int p = 0; p < e.slots; ++p) {
      totals_[p] += e.slot_cost[p];
      chosen[p] = 0.0;
      if (totals_[p] < totals_[best]) best = p;
    }
    if (totals_[best] < INF) chosen[best] = 1.0;
  }

 private:
  Array<double> totals_ = Array<double>(spec_.slots);  // cumulative costs of the slots
};

std::vector<NamedCombiner> experts_family() {
  return {{"Hedge", make<Hedge>},
          {"FixedShare", make<FixedShare>},
          {"Uniform", make<Uniform>},
          {"Best", make<Best>}};
}

}  // namespace kb
