// Transforms of the target: a slot with one learns T(y), and predicts the inverse of T.
//
// Where effects multiply, or errors grow with the level (counts, concentrations, prices), a
// function of the logarithm is simpler than a function of the target itself. The bank still judges
// the slot by its predictions of y.
#pragma once
#include <algorithm>
#include <memory>

#include "lanes.hpp"
#include "math.hpp"

namespace kb {

/// A strictly increasing function T of the target, defined for all numbers, and its inverse. NaN
/// stays NaN. It has no state: slots share one object.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual Lanes forward(Lanes y) const = 0;
  /// The y with T(y) = u.
  virtual Lanes inverse(Lanes u) const = 0;
  virtual bool equals(const Transform& other) const = 0;
};

/// The largest slope of a ShiftedLog; the least is one divided by it.
inline constexpr double STEEPEST = 8.0;

/// T(y) = shift log(1 + y / shift), with slopes between 1/8 and 8; the identity for a shift of 0.
///
/// T(0) = 0 and T'(0) = 1. With r = 1 + y / shift the slope is 1 / r: beyond r = 1/8 and r = 8, T
/// goes on as a straight line, so it is defined for all numbers, and no prediction explodes.
inline double shifted_log(double y, double shift) {
  if (y == 0.0 || shift == 0.0) return y;  // y is 0 in an empty lane
  double r = 1.0 + y / shift;
  double c = std::min(std::max(r, 1.0 / STEEPEST), STEEPEST);
  return shift * (log(c) + (r - c) / c);
}

/// The y with T(y) = u.
inline double shifted_exp(double u, double shift) {
  constexpr double longest = 2.0794415416798357;  // log(STEEPEST)
  if (u == 0.0 || shift == 0.0) return u;
  double v = u / shift;
  double c = std::min(std::max(v, -longest), longest);
  return shift * (exp(c) * (1.0 + v - c) - 1.0);
}

class ShiftedLog final : public Transform {
 public:
  explicit ShiftedLog(double shift) : shift_(shift) {}

  Lanes forward(Lanes y) const override {
    // The lanes are targets of one sample, mostly of one output: one logarithm serves equal ones.
    double first = shifted_log(y[0], shift_);
    Lanes result = first;
    for (int i = 1; i < WIDTH; ++i)
      if (y[i] != y[0]) result.set(i, shifted_log(y[i], shift_));
    return result;
  }

  Lanes inverse(Lanes u) const override {
    return Lanes(shifted_exp(u[0], shift_), shifted_exp(u[1], shift_), shifted_exp(u[2], shift_),
                 shifted_exp(u[3], shift_));
  }

  bool equals(const Transform& other) const override {
    auto same = dynamic_cast<const ShiftedLog*>(&other);
    return same && same->shift_ == shift_;
  }

 private:
  double shift_;
};

}  // namespace kb
