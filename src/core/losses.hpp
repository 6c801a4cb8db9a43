// Losses: convex functions of a prediction f for a target y, in lanes.
//
// At a kink the derivative is the subgradient of least absolute value. `curvature` is a bound of
// the second derivative in f, if there is one: the largest stable step size depends on it. A loss
// that is infinite outside a domain, or has no bounded curvature, is replaced by its Moreau
// envelope, which is finite and has one (the Poisson losses).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"

namespace kb {

/// What a second-order step takes for the curvature of the loss.
enum class CurvatureRule {
  none,      // the loss has no bounded curvature: second-order methods refuse it
  constant,  // 2, exactly: the squared loss
  logistic,  // that of a parabola above the loss
  bounded,   // as the slope tells; methods of first order have no use for it
};

class Loss {
 public:
  /// curvature: 0 if there is no bound.
  explicit Loss(double curvature)
      : Loss(curvature, curvature > 0.0 ? CurvatureRule::bounded : CurvatureRule::none) {}
  Loss(double curvature, CurvatureRule rule) : curvature(curvature), curvature_rule(rule) {}
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  /// out[i] = the loss of f[i] for y[i], in each lane, for i < rows; `out` may be `f` or `y`.
  virtual void values(const Lanes* f, const Lanes* y, int rows, Lanes* out) const = 0;
  /// The same for its derivative in f.
  virtual void derivatives(const Lanes* f, const Lanes* y, int rows, Lanes* out) const = 0;
  /// The same for `count` numbers, in arrays that are filled up to rows of four.
  void values(const Array<double>& f, const Array<double>& y, int count, Array<double>& out) const {
    values((const Lanes*)f.data(), (const Lanes*)y.data(), (count + WIDTH - 1) / WIDTH,
           (Lanes*)out.data());
  }
  void derivatives(const Array<double>& f, const Array<double>& y, int count,
                   Array<double>& out) const {
    derivatives((const Lanes*)f.data(), (const Lanes*)y.data(), (count + WIDTH - 1) / WIDTH,
                (Lanes*)out.data());
  }
  /// Whether it calls Python, so that it needs the interpreter's lock.
  virtual bool in_python() const { return false; }

  double derivative(double f, double y) const {
    Lanes prediction = f, target = y, out;
    derivatives(&prediction, &target, 1, &out);
    return out[0];
  }

  const double curvature;
  const CurvatureRule curvature_rule;
};

/// A built-in loss by its name in `kb.losses` ("squared", "epsilon_insensitive" ...), with its
/// parameter if it has one.
std::shared_ptr<const Loss> make_loss(const std::string& name,
                                      const std::vector<double>& parameters);

/// A user's C function of a prediction and a target.
using LossFunction = double (*)(double, double);
/// A user's loss. curvature: 0 if there is no bound.
std::shared_ptr<const Loss> make_loss(LossFunction value, LossFunction derivative,
                                      double curvature);

/// The curvature by the rule of the loss, for second-order steps; 2 for `constant`, and for `none`,
/// where it is not used. slope : l'(prediction, target).
double step_curvature(const Loss& loss, double prediction, double target, double slope);

}  // namespace kb
