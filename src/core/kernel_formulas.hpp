// The kernels of the field, one formula each.
//
// A *statistic* of two inputs is a sum (or product) over coordinates. A *formula* makes the kernel
// values of four slots from the statistic s and up to three constants per slot. The kernels
// themselves, with units and references, are in Python (kernelbank/kernels/elementary.py), which
// also computes the constants.
#pragma once
#include <algorithm>
#include <array>

#include "lanes.hpp"
#include "math.hpp"

namespace kb {

// --- statistics: total <- step(total, x_k, t_k, parameter) for each coordinate k in turn ---------

/// |x - t|^2, of the Euclidean distance.
struct SquaredDistance {
  static constexpr double start = 0.0;
  static double step(double total, double x, double t, double) { return total + (x - t) * (x - t); }
};

/// |x - t|_1, the sum of absolute differences.
struct Distance {
  static constexpr double start = 0.0;
  static double step(double total, double x, double t, double) { return total + absolute(x - t); }
};

/// x't.
struct DotProduct {
  static constexpr double start = 0.0;
  static double step(double total, double x, double t, double) { return total + x * t; }
};

/// sum_k sin^2(pi (x_k - t_k) / period).
struct SquaredSines {
  static constexpr double start = 0.0;
  static double step(double total, double x, double t, double period) {
    double value = sine(3.141592653589793 * (x - t) / period);
    return total + value * value;
  }
};

/// prod_k (1 + x_k t_k + m^2 (3 M - m) / 6), m and M the smaller and the larger of x_k and t_k.
struct SplineProduct {
  static constexpr double start = 1.0;
  static double step(double total, double x, double t, double) {
    double low = std::min(x, t), high = std::max(x, t);
    return total * (1.0 + x * t + low * low * (3.0 * high - low) / 6.0);
  }
};

// --- formulas: the kernel values from the statistic s and the constants c ------------------------

using Constants = std::array<Lanes, 3>;

/// 2^(c0 s), c0 <= 0: Gaussian, Laplacian, Periodic.
struct Exponential {
  static Lanes value(Lanes s, const Constants& c) { return exp2_of_product(s, c[0]); }
};

/// The statistic is the kernel value: Spline, and users' own functions.
struct Identity {
  static Lanes value(Lanes s, const Constants&) { return s; }
};

/// Matern of nu = 1/2, exp(-r) with r = |x - t| / width: s = |x - t|^2, c0 = -log2(e) / width.
struct Matern1 {
  static Lanes value(Lanes s, const Constants& c) { return exp2_of_product(sqrt(s), c[0]); }
};

/// Matern of nu = 3/2, (1 + u) exp(-u) with u = sqrt(3) r: s = |x - t|^2, c0 = sqrt(3) / width.
struct Matern3 {
  static Lanes value(Lanes s, const Constants& c) {
    Lanes u = sqrt(s) * c[0];
    return (1.0 + u) * exp2_of_product(u, -LOG2_E);
  }
};

/// Matern of nu = 5/2, (1 + u + u^2 / 3) exp(-u) with u = sqrt(5) r: s = |x - t|^2, c0 = sqrt(5) /
/// width.
struct Matern5 {
  static Lanes value(Lanes s, const Constants& c) {
    Lanes u = sqrt(s) * c[0];
    Lanes value = (1.0 + u + u * u / 3.0) * exp2_of_product(u, -LOG2_E);
    return where_less(u, 1000.0, value, 0.0);  // u * u may overflow where the exponential is 0
  }
};

/// (1 + c0 s)^c1: s = |x - t|^2, c0 = 1 / (2 alpha width^2), c1 = -alpha.
struct RationalQuadratic {
  static Lanes value(Lanes s, const Constants& c) { return power(1.0 + c[0] * s, c[1]); }
};

/// s + c0: s = x't, c0 = offset.
struct LinearKernel {
  static Lanes value(Lanes s, const Constants& c) { return c[0] + s; }
};

/// (c0 s + c1)^c2: s = x't, scale, offset and degree, an integer from 1 to 64.
struct Polynomial {
  static Lanes value(Lanes s, const Constants& c) {
    const Lanes& degree = c[2];
    Lanes base = c[0] * s + c[1], result = base;
    double most = std::max({degree[0], degree[1], degree[2], degree[3]});
    for (double k = 1.0; k < most; ++k) result = where_less(k, degree, result * base, result);
    return result;
  }
};

}  // namespace kb
