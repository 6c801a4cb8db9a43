#include "losses.hpp"

#include <stdexcept>

#include "math.hpp"

namespace kb {
namespace {

/// exp(-|y f|), which does not overflow.
Lanes margin_exponential(Lanes f, Lanes y) { return exp2_of_product(absolute(y * f), -LOG2_E); }

Lanes positive_part(Lanes x) { return where_less(x, 0.0, 0.0, x); }

// --- counts --------------------------------------------------------------------------------------

// The Poisson losses have no bounded curvature, and one of them is infinite outside f > 0. A
// gradient step on such a loss may be of any length, and a slot would be out at its first infinite
// loss. So a bank works with the *Moreau envelope* of the loss l, with m = smoothing:
//
//     e(f, y) = min over u of  l(u, y) + (u - f)^2 / 2 m.
//
// It is finite and convex for all f, has the same minimisers and the same least value as l, lies
// below l by at most m l'(f)^2 / 2, and its curvature is at most 1 / m. With u the minimiser above
// (the *proximal point* of f), its derivative is l'(u) = (f - u) / m.
//
// Reference: Moreau, Proximite et dualite dans un espace hilbertien, Bulletin de la Societe
// Mathematique de France 93 (1965).

Lanes exp_of_lanes(Lanes x) { return each_lane(exp, x); }

/// log x for x > 0, else 0: for x log x, which is 0 at 0.
Lanes log_or_zero(Lanes x) {
  return each_lane([](double z) { return z > 0.0 ? log(z) : 0.0; }, x);
}

/// The envelope of l(f, y) = e^f - y f - (y - y log y), half the deviance, for counts y with f the
/// logarithm of their rate. With smoothing 0 it is l itself, which has no bounded curvature.
struct Poisson {
  double smoothing;

  /// The u with e^u - y + (u - f) / smoothing = 0; f for smoothing 0.
  ///
  /// Newton's method for u + m e^u = s, s = f + m y, from a point above the solution: the left side
  /// grows and is convex, so all steps go down. If m e^s > e, that is log(z / m), z = s + log m.
  double proximal_log_rate(double f, double y) const {
    constexpr int steps = 8;  // six reach the last digit from the worst start
    double s = f + smoothing * y;
    double u = s;
    if (smoothing > 0.0) {
      double z = s + log(smoothing);
      if (z > 1.0) u = log(z) - log(smoothing);
      for (int i = 0; i < steps; ++i) {
        double w = smoothing * exp(u);
        u -= (u + w - s) / (1.0 + w);
      }
    }
    return u;
  }
  Lanes log_rates(Lanes f, Lanes y) const {
    return each_lane([this](double z, double w) { return proximal_log_rate(z, w); }, f, y);
  }
  Lanes value(Lanes f, Lanes y) const {
    Lanes u = log_rates(f, y);
    Lanes slope = exp_of_lanes(u) - y;
    return (slope - y * (u - log_or_zero(y))) + 0.5 * smoothing * slope * slope;
  }
  Lanes derivative(Lanes f, Lanes y) const { return exp_of_lanes(log_rates(f, y)) - y; }
};

// --- from formulas to losses ---------------------------------------------------------------------

template <class Value, class Derivative>
class LossOf final : public Loss {
 public:
  template <class... Curvature>
  LossOf(Value value, Derivative derivative, Curvature... curvature)
      : Loss(curvature...), value_(value), derivative_(derivative) {}
  void values(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    for (int i = 0; i < rows; ++i) out[i] = value_(f[i], y[i]);
  }
  void derivatives(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    for (int i = 0; i < rows; ++i) out[i] = derivative_(f[i], y[i]);
  }

 private:
  Value value_;
  Derivative derivative_;
};

/// Of two functions of a prediction f and a target y.
template <class Value, class Derivative, class... Curvature>
std::shared_ptr<const Loss> loss(Value value, Derivative derivative, Curvature... curvature) {
  return std::make_shared<LossOf<Value, Derivative>>(value, derivative, curvature...);
}

/// Of formulas with a parameter.
template <class Formulas>
std::shared_ptr<const Loss> loss(Formulas formulas, double curvature) {
  return loss([=](Lanes f, Lanes y) { return formulas.value(f, y); },
              [=](Lanes f, Lanes y) { return formulas.derivative(f, y); }, curvature);
}

}  // namespace

/// A new loss: its value, its derivative and its curvature here.
std::shared_ptr<const Loss> make_loss(const std::string& name,
                                      const std::vector<double>& parameters) {
  const bool has_one = parameters.size() == 1;
  const double p = has_one ? parameters[0] : 0.0;
  if (parameters.empty()) {
    if (name == "squared")  // (f - y)^2
      return loss([](Lanes f, Lanes y) { return (f - y) * (f - y); },
                  [](Lanes f, Lanes y) { return 2.0 * (f - y); }, 2.0, CurvatureRule::constant);
    if (name == "absolute")  // |f - y|; derivative 0 at f = y
      return loss(
          [](Lanes f, Lanes y) { return absolute(f - y); },
          [](Lanes f, Lanes y) { return where_less(f, y, -1.0, where_less(y, f, 1.0, 0.0)); }, 0.0);
    // The others are for labels y of -1 and +1.
    if (name == "logistic")  // log(1 + exp(-y f))
      return loss(
          [](Lanes f, Lanes y) {
            const Lanes margin = y * f;
            // 0 * margin, so that NaN stays NaN
            const Lanes straight = where_less(margin, 0.0, -margin, 0.0 * margin);
            return straight + log1p_of_fraction(margin_exponential(f, y));
          },
          [](Lanes f, Lanes y) {
            const Lanes small = margin_exponential(f, y);
            return -y * where_less(y * f, 0.0, 1.0, small) / (1.0 + small);
          },
          0.25, CurvatureRule::logistic);
    if (name == "hinge")  // max(0, 1 - y f); derivative 0 at margin 1
      return loss([](Lanes f, Lanes y) { return positive_part(1.0 - y * f); },
                  [](Lanes f, Lanes y) { return where_less(y * f, 1.0, -y, 0.0); }, 0.0);
    if (name == "squared_hinge")  // max(0, 1 - y f)^2
      return loss(
          [](Lanes f, Lanes y) {
            const Lanes missing = 1.0 - y * f;
            return where_less(missing, 0.0, 0.0, missing * missing);
          },
          [](Lanes f, Lanes y) {
            const Lanes missing = 1.0 - y * f;
            return where_less(0.0, missing, -2.0 * y * missing, 0.0);
          },
          2.0);
  }
  if (has_one) {
    if (name == "huber")  // with r = f - y: r^2 / 2 where |r| <= p, p (|r| - p / 2) beyond
      return loss(
          [p](Lanes f, Lanes y) {
            const Lanes r = absolute(f - y);
            return where_less(p, r, p * (r - 0.5 * p), 0.5 * r * r);
          },
          [p](Lanes f, Lanes y) {
            const Lanes r = f - y;
            return where_less(p, r, p, where_less(r, -p, -p, r));
          },
          1.0);
    if (name == "epsilon_insensitive")  // max(0, |f - y| - p); derivative 0 in the tube, on its edge
      return loss([p](Lanes f, Lanes y) { return positive_part(absolute(f - y) - p); },
                  [p](Lanes f, Lanes y) {
                    const Lanes r = f - y;
                    return where_less(p, r, 1.0, where_less(r, -p, -1.0, 0.0));
                  },
                  0.0);
    if (name == "pinball")  // with r = y - f: max(p r, (p - 1) r); derivative 0 at f = y
      return loss(
          [p](Lanes f, Lanes y) {
            const Lanes r = y - f;
            return where_less(r, 0.0, (p - 1.0) * r, p * r);
          },
          [p](Lanes f, Lanes y) {
            return where_less(f, y, -p, where_less(y, f, 1.0 - p, 0.0));
          },
          0.0);
    if (name == "poisson") return loss(Poisson{p}, p > 0.0 ? 1.0 / p : 0.0);
  }
  throw std::invalid_argument("no loss " + name + " of " + std::to_string(parameters.size()) +
                              " parameters");
}

std::shared_ptr<const Loss> make_loss(LossFunction value, LossFunction derivative,
                                      double curvature) {
  return loss([=](Lanes f, Lanes y) { return each_lane(value, f, y); },
              [=](Lanes f, Lanes y) { return each_lane(derivative, f, y); }, curvature);
}

// --- curvature -----------------------------------------------------------------------------------

/// tanh(f / 2) / 2 f: the curvature of the tightest parabola above the logistic loss at f (Jaakkola
/// and Jordan). Unlike l'' it bounds the loss, so a confident mistake makes no huge step.
static double curvature_above(double prediction) {
  constexpr double small = 1e-4;  // below, tanh(f / 2) / 2 f is 1/4 to the last digit but one
  double size = absolute(prediction);
  return size > small ? tanh(0.5 * size) / (2.0 * size) : 0.25;
}

/// bound / 4^k, with the largest k <= 8 at which the step -l' 4^k / bound leaves half of l';
/// `bound` is loss.curvature, and slope = l'(prediction, target).
///
/// So the step never passes the minimum, and where the loss is flatter than its bound the step is
/// longer.
static double curvature_along(const Loss& loss, double prediction, double target, double slope) {
  double longest = -slope / loss.curvature;
  double curvature = loss.curvature;
  Lanes y = target;
  for (int round = 0; round < 2; ++round) {  // k = 1 .. 4, then 5 .. 8
    Lanes f = prediction + longest * Lanes(4.0, 16.0, 64.0, 256.0), slopes;
    loss.derivatives(&f, &y, 1, &slopes);
    Lanes left = slopes / slope;
    for (int i = 0; i < WIDTH; ++i) {
      if (!(left[i] >= 0.5)) return curvature;
      curvature *= 0.25;
    }
    longest *= 256.0;
  }
  return curvature;
}

double step_curvature(const Loss& loss, double prediction, double target, double slope) {
  if (loss.curvature_rule == CurvatureRule::logistic) return curvature_above(prediction);
  if (loss.curvature_rule == CurvatureRule::bounded)
    return curvature_along(loss, prediction, target, slope);
  return 2.0;
}

}  // namespace kb
