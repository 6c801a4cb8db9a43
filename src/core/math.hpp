// Elementary functions with the same bits on every machine.
//
// A C library rounds exp or sin as it likes, so a result would depend on where it was computed.
// These functions use `+ - * /`, fma, sqrt, integers and bits only, in the order written: all of
// them are rounded in one way by every processor. Special values (NaN, infinities, signed zeros,
// overflow, results below the normal range) are those of C.
#pragma once
#include "lanes.hpp"

namespace kb {

/// A number as the sum of two: the nearest float, and the rest.
struct TwoParts {
  double high, low;
};

inline constexpr TwoParts QUARTER = {1.5707963267948966, 6.123233995736766e-17};  // pi/2

double exp(double x);
double expm1(double x);
double log(double x);
double log1p(double x);
double tanh(double x);
double asinh(double x);
/// x^y. Of a negative x it is NaN unless y is an integer, as in C.
double power(double x, double y);
/// Of any angle; NaN if it is infinite.
double sine(double x);
double cosine(double x);

inline Lanes power(Lanes x, Lanes y) {
  return each_lane([](double a, double b) { return power(a, b); }, x, y);
}

// --- cosine and sine of four angles at once, from one reduction ----------------------------------

/// Larger angles are computed one by one with more digits of pi.
inline constexpr double FAR_ANGLE = 0x1p30;

struct CosineSine {
  Lanes cosine, sine;
};

/// Within 2 ulp.
///
/// An angle is n quarter turns plus a remainder r in [-pi/4, pi/4]. Adding a large number gives n;
/// subtracting n pi/2 in three parts (Cody and Waite) gives r. The first part is the float nearest
/// to pi/2; angle - n * part is then a multiple of 2^-53 below 1, so it is exact inside an fma, and
/// r is right to half an ulp even next to a zero. Two polynomials give sin r and cos r; n decides
/// which of them is the cosine, and the signs.
inline CosineSine cosine_and_sine(Lanes angle) {
  Lanes shifted = fma(angle, 0.6366197723675814, ROUND);  // n is in its low bits
  Lanes turns = shifted - ROUND;
  Lanes r = fma(turns, -QUARTER.high, angle);
  r = fma(turns, -QUARTER.low, r);
  r = fma(turns, 1.4973849048591698e-33, r);
  // Interpolated at Chebyshev nodes of z = r^2 on [0, (pi/4)^2], in Estrin's order: short chains.
  // sin r = r + r z S(z), error 1.8e-17 r;  cos r = 1 - z / 2 + z^2 C(z), error 9.1e-19.
  Lanes z = r * r, z2 = z * z, z4 = z2 * z2;
  Lanes s = fma(z4, fma(z, 1.5918115263265974e-10, -2.505113165023518e-08),
                fma(z2, fma(z, 2.7557316101617874e-06, -0.00019841269836756774),
                    fma(z, 0.008333333333330948, -0.16666666666666666)));
  s = fma(r * z, s, r);
  Lanes c = fma(z4, fma(z, -1.1382623647474604e-11, 2.087614614655861e-09),
                fma(z2, fma(z, -2.7557317271145144e-07, 2.480158729876456e-05),
                    fma(z, -0.0013888888888887398, 0.041666666666666664)));
  c = fma(z2, c, fma(z, -0.5, 1.0));
  // In the lanes with n = 0, 1, 2, 3 (mod 4) quarter turns: one, -other, -one, other.
  auto rotate = [n = shifted.bits()](Lanes a, Lanes b) {
    Lanes chosen = (n & 1) != 0 ? b.v : a.v;
    return Lanes(chosen.bits() ^ (((n + 1) & 2) << 62));
  };
  CosineSine result = {rotate(c, s), rotate(s, -c)};
  if (!all_less(absolute(angle), FAR_ANGLE)) {
    for (int i = 0; i < WIDTH; ++i) {
      if (absolute(angle[i]) < FAR_ANGLE) continue;
      result.cosine.set(i, cosine(angle[i]));
      result.sine.set(i, sine(angle[i]));
    }
  }
  return result;
}

// --- random numbers that are a hash of their keys: there is no generator state to store ----------

/// A new 64-bit key from a key and a word: the increment and the finaliser of SplitMix64 (Steele,
/// Lea and Flood, 2014).
inline std::uint64_t mix_key(std::uint64_t key, std::uint64_t word) {
  std::uint64_t bits = key + 0x9E3779B97F4A7C15 * (word + 1);
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

/// A number in [0, 1) from the upper 53 bits of a key.
inline double unit_interval(std::uint64_t key) { return double(key >> 11) * 0x1p-53; }

}  // namespace kb
