// Transforms of the target: a slot with one learns T(y), and predicts the inverse of T.
//
// Where effects multiply, or errors grow with the level (counts, concentrations, prices), a
// function of the logarithm is simpler than a function of the target itself. The bank still judges
// the slot by its predictions of y.
#pragma once
#include <algorithm>

#include "math.hpp"

namespace kb {

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

/// A transform of the target. NaN stays NaN.
struct ShiftedLog {
  double shift;
  bool operator==(const ShiftedLog&) const = default;

  Lanes forward(Lanes y) const {
    // The lanes are targets of one sample, mostly of one output: one logarithm serves equal ones.
    const double first = shifted_log(y[0], shift);
    return each_lane([&](double z) { return z == y[0] ? first : shifted_log(z, shift); }, y);
  }
  Lanes inverse(Lanes u) const {
    return each_lane([&](double z) { return shifted_exp(z, shift); }, u);
  }
};

}  // namespace kb
