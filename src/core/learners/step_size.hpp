// Step sizes of first-order learners: constant, decaying, or adapted to the gradients.
//
// With g_t the gradient of the loss at sample t = 1, 2, ..., in the space of the functions:
//
//     constant        rate_t = learning_rate
//     inverse_sqrt    rate_t = learning_rate / sqrt(t)
//     adagrad         rate_t = learning_rate / sqrt(|g_1|^2 + ... + |g_t|^2), per slot
//
// With adagrad, rate * regularization is kept at 1/2 or below, so that the factor
// 1 - rate * regularization of f is never below 1/2 whatever the gradients are.
#pragma once
#include "../settings.hpp"

namespace kb {

enum class StepRule { constant, inverse_sqrt, adagrad };

struct StepSize {
  /// From the settings learning_rate and step_size. regularization : of a method whose f decays by
  /// 1 - rate * regularization, else 0.
  StepSize(const Settings& settings, double regularization)
      : rule(parse(settings.word("step_size"))),
        learning_rate(settings.number("learning_rate")),
        largest(adapts() && regularization > 0.0 ? 0.5 / regularization : INF) {}

  bool constant() const { return rule == StepRule::constant; }
  bool adapts() const { return rule == StepRule::adagrad; }

  /// The rate of sample t = `number` >= 1; squares = |g_1|^2 + ... + |g_t|^2, for adagrad.
  Lanes rate(std::int64_t number, Lanes squares) const {
    if (rule == StepRule::constant) return learning_rate;
    if (rule == StepRule::inverse_sqrt) return Lanes(learning_rate) / sqrt(Lanes(double(number)));
    Lanes rate = Lanes(learning_rate) / sqrt(squares);
    rate = where_less(rate, largest, rate, largest);
    return where_less(0.0, squares, rate, 0.0);  // no gradient so far: no step
  }

  StepRule rule;
  double learning_rate, largest;

 private:
  static StepRule parse(const std::string& word) {
    if (word == "constant") return StepRule::constant;
    return word == "adagrad" ? StepRule::adagrad : StepRule::inverse_sqrt;
  }
};

}  // namespace kb
