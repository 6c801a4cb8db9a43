// Stacking: the convex combination of least discounted squared error of the predictions, plain, and
// robust against bursts of errors.
#include <cmath>

#include "../combiner.hpp"
#include "stack_solver.hpp"

namespace kb {

/// One problem of stacking,
///
///     minimise  E(w) = w'M w + ridge L |w|^2  over the simplex,  L = min_p M_pp,
///
/// with M <- discount M + e e' after every sample, where e holds the errors of the slots. If targets come d
/// rows late, PRICE L d / (N + d) c'w is added, with N the discounted number of samples and c the prices of
/// the slots (`Lateness`).
class Stack {
 public:
  Stack(const Settings& settings, int slots)
      : errors(slots),
        slots_(slots),
        discount_(settings.number("discount")),
        ridge_(settings.number("ridge")),
        solver_(slots, settings.number("tolerance"), settings.whole("steps")) {}

  void visit(Archive& archive) {
    archive("certificate", solver_.certificate);
    archive("count", count_);
    archive.require(!archive.loaded || count_ >= 0.0, "counts are not negative");
    archive.by_slot("moments", solver_.moments, 3);
  }

  Array<double> errors;  // e of the present sample, for `update`

  /// Add the errors to the moments, and move the weights w to the minimiser. A slot with an infinite
  /// loss has failed.
  void update(const Evidence& e, double* w) {
    Matrix<double>& moments = solver_.moments;
    for (int p = 0; p < slots_; ++p) {
      active_[p] = e.window_loss[p] < INF ? 1.0 : 0.0;
      errors[p] = active_[p] > 0.0 ? StackSolver::bounded(errors[p]) : 0.0;
    }
    for (int p = 0; p < slots_; ++p) {
      double* row = moments[p];
      const double error = errors[p], discount = discount_;
      for (int q = 0; q < slots_; ++q) row[q] = discount * row[q] + error * errors[q];
    }
    double least = INF;
    for (int p = 0; p < slots_; ++p)
      if (active_[p] > 0.0) least = std::min(least, moments[p][p]);
    for (int p = 0; p < slots_; ++p)
      if (moments[p][p] > StackSolver::WORST_RATIO * least) active_[p] = 0.0;
    count_ = discount_ * count_ + 1.0;
    if (!(e.late.rows > 0.0)) return solver_.solve(active_.data(), ridge_ * least, w);
    const Matrix<double> unpriced = moments;
    const double price = 0.5 * PRICE * least * (e.late.rows / (count_ + e.late.rows));
    // As the weights have the sum 1, this is a linear price of 2 c'w.
    for (int p = 0; p < slots_; ++p)
      for (int q = 0; q < slots_; ++q)
        moments[p][q] += price * (e.late.prices[p] + e.late.prices[q]);
    solver_.solve(active_.data(), ridge_ * least, w);
    moments = unpriced;
  }

 private:
  static constexpr double PRICE = 4.0;

  int slots_;
  double discount_, ridge_, count_ = 0.0;  // N
  Array<double> active_ = errors;  // scratch: 1 if the slot may have weight
  StackSolver solver_;
};

class Stacking final : public Combiner {
 public:
  using Combiner::Combiner;
  void visit(Archive& archive) override { stack_.visit(archive); }

  void choose(const Evidence& e, const double* weights, double* chosen) override {
    for (int p = 0; p < e.slots; ++p) stack_.errors[p] = e.slot_predictions[p] - e.target();
    std::copy_n(weights, e.slots, chosen);
    stack_.update(e, chosen);
  }

 private:
  Stack stack_{spec_.settings, spec_.slots};
};

/// q v + (1 - q) w, with w those of Stacking and v those of a stack in which a sample with error r of
/// the mixture by v counts c = 1 / (s + r^2 / degrees_of_freedom), s the discounted mean of r^2, as in a
/// likelihood of Student's t. q = 1/2 + 5/2 (1 - R_v / R_w) within 0 and 1, where R_v and R_w are the
/// discounted sums of the squared errors of both.
class RobustStacking final : public Combiner {
 public:
  using Combiner::Combiner;

  void visit(Archive& archive) override {
    archive.part("robust", robust_);
    archive.by_slot("robust_weights", robust_weights_);
    archive.part("plain", plain_);
    archive.by_slot("plain_weights", plain_weights_);
    archive("mean_square", mean_square_);
    archive("squares", squares_);
  }

  void change_slots(Combiner& before, const SlotPlan& plan) override {
    Combiner::change_slots(before, plan);
    for (std::size_t p = 0; p < plan.continued.size(); ++p)
      if (plan.is_new(int(p)))  // the next sample makes their sum 1 again
        robust_weights_[p] = plain_weights_[p] = 0.0;
  }

  void choose(const Evidence& e, const double*, double* chosen) override {
    double *v = robust_weights_.data(), *w = plain_weights_.data();
    start(v, e.slots);
    const bool begins = start(w, e.slots);
    const auto [error, exists] = error_of(v, e);  // r
    squares_[0] = discount_ * squares_[0] + error * error;
    const double plain_error = error_of(w, e).error;
    squares_[1] = discount_ * squares_[1] + plain_error * plain_error;
    if (exists) {
      mean_square_[1] += 1.0;
      const double rate = std::max(1.0 / mean_square_[1], 1.0 - discount_);
      mean_square_[0] += (error * error - mean_square_[0]) * rate;
    }
    // 1 / sqrt(c) = sqrt(s + r^2 / degrees_of_freedom)
    const double size = std::sqrt(mean_square_[0] + error * error / degrees_of_freedom_);
    for (int p = 0; p < e.slots; ++p) {
      plain_.errors[p] = e.slot_predictions[p] - e.target();
      robust_.errors[p] = size > 0.0 ? plain_.errors[p] / size : 0.0;
    }
    if (begins) std::fill_n(w, e.slots, 0.0);  // equal ones again, over the slots that are active
    plain_.update(e, w);
    robust_.update(e, v);
    const double q = share();
    for (int p = 0; p < e.slots; ++p) chosen[p] = q * v[p] + (1.0 - q) * w[p];
  }

 private:
  /// Equal weights before the first sample, where all are 0; whether they were.
  static bool start(double* weights, int slots) {
    double total = 0.0;
    for (int p = 0; p < slots; ++p) total += weights[p];
    if (total == 0.0) std::fill_n(weights, slots, 1.0 / slots);
    return total == 0.0;
  }

  struct MixtureError {
    double error;
    bool exists;  // whether any slot made a prediction
  };

  /// w'f - y over the slots that have not failed, at most LARGEST_ERROR.
  static MixtureError error_of(const double* weights, const Evidence& e) {
    double combined = 0.0, share = 0.0;
    for (int p = 0; p < e.slots; ++p)
      if (weights[p] > 0.0 && e.window_loss[p] < INF) {
        combined += weights[p] * e.slot_predictions[p];
        share += weights[p];
      }
    if (!(share > 0.0)) return {0.0, false};
    const double error = combined / share - e.target(), largest = StackSolver::LARGEST_ERROR;
    return {std::fabs(error) <= largest ? error : largest, true};
  }

  /// q, from the sums of squares of both.
  double share() const {
    const double robust = squares_[0], plain = squares_[1];
    if (!(plain > 0.0)) return robust == 0.0 ? 0.5 : 0.0;
    return std::min(std::max(0.5 + 2.5 * (1.0 - robust / plain), 0.0), 1.0);
  }

  double discount_ = number("discount"), degrees_of_freedom_ = number("degrees_of_freedom");
  Stack robust_{spec_.settings, spec_.slots}, plain_ = robust_;
  Array<double> robust_weights_ = Array<double>(spec_.slots);       // v
  Array<double> plain_weights_ = robust_weights_;                   // w
  Array<double> mean_square_ = Array<double>(2);                    // s, and its number of samples
  Array<double> squares_ = Array<double>(2);                        // R_v, R_w
};

std::vector<NamedCombiner> stacking_family() {
  return {{"Stacking", make<Stacking>}, {"RobustStacking", make<RobustStacking>}};
}

}  // namespace kb
