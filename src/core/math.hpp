// Elementary functions with the same bits on every machine.
//
// A C library rounds exp or sin as it likes, so a result would depend on where it was computed.
// These functions use `+ - * /`, fma, sqrt, integers and bits only, in the order written: all of
// them are rounded in one way by every processor. Special values (NaN, infinities, signed zeros,
// overflow, results below the normal range) are those of C.
//
// | function     | method                                                           | error |
// |--------------|------------------------------------------------------------------|-------|
// | exp          | x = (128 k + i) ln2/128 + r; a table of 2^(i/128), a series of r | 0.51  |
// | expm1        | the same, less 1, as a sum of two; below 1/16 a series           | 0.58  |
// | log          | x = 2^k z; c near 1/z from a table, a series of r = c z - 1      | 0.50  |
// | log1p        | log of 1 + x, kept as a sum of two                               | 0.51  |
// | tanh         | -E / (E + 2), E = expm1(-2 x) as a sum of two, for x > 0         | 0.56  |
// | asinh        | log of x + sqrt(x^2 + 1), kept as a sum of two, for x > 0        | 0.51  |
// | power        | exp of y log x, with the logarithm as a sum of two               | 0.53  |
// | sine, cosine | as many digits of 2/pi as the angle needs, then a series         | 0.61  |
// | of lanes     | pi/2 in three parts, then a polynomial; large angles as above    | 2     |
//
// The error is the largest that was seen, in units of the last place (the last line: a bound).
// Rounding the exact value would give 0.5. Results too small for a normal float are denormal and
// rounded as well.
//
// But for the lanes nothing is fitted: the polynomials are Taylor series on intervals so short that
// the terms left out do not count, and the tables and the parts of ln 2 and pi are rounded from 60
// digits or more.
//
// References: P. T. P. Tang, Table-driven implementation of the exponential function (and: of the
// logarithm function) in IEEE floating-point arithmetic, ACM TOMS 15 (1989) and 16 (1990). T. J.
// Dekker, A floating-point technique for extending the available precision, Numer. Math. 18 (1971),
// for sums of two numbers. M. Payne, R. Hanek, Radian reduction for trigonometric functions, SIGNUM
// Newsletter 18 (1983). The tables of S. Nagy, Arm Optimized Routines (2018), are alike.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "lanes.hpp"
#include "math_tables.hpp"

namespace kb {

/// A number as the sum of two: the nearest float, and the rest.
struct TwoParts {
  double high, low;
};

inline std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
inline double float_of(std::int64_t bits) { return std::bit_cast<double>(bits); }

// --- exp -----------------------------------------------------------------------------------------

// In two parts; the first ones have so few digits that their products with exponents are exact.
inline constexpr TwoParts LN2 = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
inline constexpr TwoParts LN2_STEP = {0x1.62e42fefap-8, 0x1.cf79abc9e3b3ap-47};  // ln2 / 128
inline constexpr double STEPS_PER_ONE = 0x1.71547652b82fep7;                     // 128 / ln2

/// 2^k (s + s t), with 1 <= s < 2 and |t| < 0.003.
struct ExpParts {
  std::int64_t k;
  double s, t;
};

/// exp(x + rest) for |x| < 750.
inline ExpParts exp_parts(double x, double rest) {
  double steps = (x * STEPS_PER_ONE + ROUND) - ROUND;
  double r = fma(steps, -LN2_STEP.low, fma(steps, -LN2_STEP.high, x)) + rest;
  auto count = std::int64_t(steps);
  const double(&entry)[2] = tables::POWERS[count & 127];
  double r2 = r * r;
  // The series of exp(r) - 1; the next term is below 2^-60.
  double high = fma(r, 1.0 / 120, 1.0 / 24);
  double low = fma(r, 1.0 / 6, 0.5);
  double t = r + fma(r2, fma(r2, high, low), entry[1]);
  return {count >> 7, entry[0], t};
}

/// s 2^k for 1 <= s < 2, where the result is normal.
inline double times_power(double s, std::int64_t k) {
  return float_of(bits_of(s) + k * (1LL << 52));
}

/// 2^k (s + s t), rounded once, also above and below the normal range.
inline double scaled(ExpParts parts) {
  auto [k, s, t] = parts;
  if (-1022 < k && k < 1023) {
    double scale = times_power(s, k);
    return fma(scale, t, scale);
  }
  if (k > 0) {
    double scale = times_power(s, k - 1);
    return 2.0 * fma(scale, t, scale);
  }
  // Times 2^1022. Below 1 a sum with 1 rounds to the places that a denormal has.
  double scale = times_power(s, k + 1022);
  double y = fma(scale, t, scale);
  if (y < 1.0) {
    double rest = fma(scale, t, scale - y);
    double high = 1.0 + y;
    y = (high + ((1.0 - high + y) + rest)) - 1.0;
  }
  return 0x1p-1022 * y;
}

/// e^x.
inline double exp(double x) {
  if (!(-746.0 < x && x < 710.0)) return std::isnan(x) ? x : (x > 0.0 ? INF : 0.0);
  return scaled(exp_parts(x, 0.0));
}

// --- expm1 ---------------------------------------------------------------------------------------

/// e^x - 1 for -45 < x < 45.
inline TwoParts expm1_parts(double x) {
  if (absolute(x) < 0.0625) {
    // The series without its first term, to x^10; the next is below 2^-64 x.
    double x2 = x * x;
    double low = fma(x2, fma(x, 1.0 / 120, 1.0 / 24), fma(x, 1.0 / 6, 0.5));
    double high = fma(x2, fma(x, 1.0 / 362880, 1.0 / 40320), fma(x, 1.0 / 5040, 1.0 / 720));
    high = fma(x2 * x2, 1.0 / 3628800, high);
    double p = x2 * fma(x2 * x2, high, low);
    double sum = x + p;
    return {sum, (x - sum) + p};
  }
  auto [k, s, t] = exp_parts(x, 0.0);
  double scale = times_power(s, k);
  double less = scale - 1.0;
  double back = less - scale;
  double rest = fma(scale, t, (scale - (less - back)) - (1.0 + back));
  double sum = less + rest;
  return {sum, (less - sum) + rest};
}

/// e^x - 1, with all digits also for small x.
inline double expm1(double x) {
  if (absolute(x) < 0x1p-54 || std::isnan(x)) return x;
  if (x <= -45.0) return -1.0;
  if (x >= 45.0) return exp(x);
  return expm1_parts(x).high;
}

// --- log -----------------------------------------------------------------------------------------

/// The logarithm of a positive finite number, right to 2^-67 of it.
inline TwoParts log_parts(double x) {
  constexpr std::int64_t lowest = 0x3FE6ALL << 44;  // of 0.70703125: z is from here to twice this
  constexpr std::int64_t one = 1LL << 52;           // one more exponent
  std::int64_t bits = bits_of(x);
  bool denormal = bits < one;
  if (denormal) bits = bits_of(x * 0x1p54);
  std::int64_t distance = bits - lowest;
  std::int64_t exponent = distance >> 52;
  const double(&entry)[3] = tables::LOGARITHMS[(distance >> 45) & 127];
  double z = float_of(bits - exponent * one);
  auto k = double(denormal ? exponent - 54 : exponent);
  double r = fma(z, entry[0], -1.0);         // exact
  double base = fma(k, LN2.high, entry[1]);  // exact
  // base + r - r^2 / 2, with what each sum loses.
  double first = base + r;
  double half = -0.5 * r;
  double square = half * r;
  double high = first + square;
  double lost = fma(half, r, -square) + ((first - high) + square);
  lost += fma(k, LN2.low, entry[2]) + ((base - first) + r);
  // The series from r^3 to r^10; the next term is below 2^-73 r.
  double r2 = r * r;
  double low = fma(r2, fma(r, -1.0 / 6, 1.0 / 5), fma(r, -1.0 / 4, 1.0 / 3));
  double tail = fma(r2, fma(r, -1.0 / 10, 1.0 / 9), fma(r, -1.0 / 8, 1.0 / 7));
  lost = fma(r2 * r, fma(r2 * r2, tail, low), lost);
  double sum = high + lost;
  return {sum, (high - sum) + lost};
}

/// log(x + rest) as one number, for rest within an ulp of x.
inline double log_of_sum(double x, double rest) {
  auto [high, low] = log_parts(x);
  return high + (low + rest / x);
}

/// The natural logarithm.
inline double log(double x) {
  if (!(0.0 < x && x < INF)) return x == 0.0 ? -INF : (x < 0.0 ? NOT_A_NUMBER : x);
  return log_parts(x).high;
}

/// log(1 + x), with all digits also for small x.
inline double log1p(double x) {
  if (!(-1.0 < x && x < INF)) return x == -1.0 ? -INF : (x < -1.0 ? NOT_A_NUMBER : x);
  if (absolute(x) < 0x1p-20) return fma(x * x, fma(x, 1.0 / 3, -0.5), x);
  double sum = 1.0 + x;
  double back = sum - x;
  return log_of_sum(sum, (1.0 - back) + (x - (sum - back)));
}

// --- tanh and asinh ------------------------------------------------------------------------------

/// The hyperbolic tangent.
inline double tanh(double x) {
  double size = absolute(x);
  if (size < 0x1p-28 || std::isnan(x)) return x;
  if (size >= 20.0) return std::copysign(1.0, x);
  auto [high, low] = expm1_parts(-2.0 * size);
  double below = 2.0 + high;
  double below_rest = ((2.0 - below) + high) + low;
  double q = high / below;
  return std::copysign(q + (fma(-q, below, high) + fma(-q, below_rest, low)) / below, x);
}

/// The inverse of the hyperbolic sine.
inline double asinh(double x) {
  double size = absolute(x);
  if (!(size < INF)) return x;
  if (size < 0x1p-14) return std::copysign(fma(size * size * size, -1.0 / 6, size), x);
  if (size > 0x1p28) {  // log(2 x); the rest is below x^-2
    auto [high, low] = log_parts(size);
    double sum = LN2.high + high;
    return std::copysign(sum + (((high - sum) + LN2.high) + (low + LN2.low)), x);
  }
  // root + root_rest = sqrt(x^2 + 1)
  double square = size * size;
  double inside = square + 1.0;
  double back = inside - square;
  double inside_rest = (square - (inside - back)) + (1.0 - back) + fma(size, size, -square);
  double root = sqrt(inside);
  double root_rest = (fma(-root, root, inside) + inside_rest) / (2.0 * root);
  // root is above x, so that the sum of both loses (root - sum) + size.
  double sum = root + size;
  return std::copysign(log_of_sum(sum, ((root - sum) + size) + root_rest), x);
}

// --- power ---------------------------------------------------------------------------------------

/// x^y. Of a negative x it is NaN unless y is an integer, as in C.
inline double power(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  double size = absolute(x), exponent = absolute(y);
  bool odd = exponent < 0x1p53 && double(std::int64_t(exponent)) == exponent &&
             (std::int64_t(exponent) & 1) == 1;
  double sign = odd ? std::copysign(1.0, x) : 1.0;
  if (size == 0.0 || size == INF || exponent == INF) {
    double limit = (size > 1.0) == (y > 0.0) ? INF : 0.0;
    return std::copysign(size == 1.0 ? 1.0 : limit, sign);
  }
  bool integer = exponent >= 0x1p52 || double(std::int64_t(exponent)) == exponent;
  if (x < 0.0 && !integer) return NOT_A_NUMBER;
  auto [high, low] = log_parts(size);
  double product = y * high;
  if (!(-746.0 < product && product < 710.0))
    return std::copysign(product > 0.0 ? INF : 0.0, sign);
  ExpParts parts = exp_parts(product, fma(y, low, fma(y, high, -product)));
  return std::copysign(scaled(parts), sign);
}

inline Lanes power(Lanes x, Lanes y) {
  return Lanes(power(x[0], y[0]), power(x[1], y[1]), power(x[2], y[2]), power(x[3], y[3]));
}

// --- sine and cosine of one angle, of any size ---------------------------------------------------

// An angle is n quarter turns plus a remainder: x 2/pi is computed in integers, with as many digits
// of 2/pi as the angle needs (Payne and Hanek). The remainder, a sum of two floats, goes into a
// Taylor series.

inline constexpr TwoParts QUARTER = {1.5707963267948966, 6.123233995736766e-17};  // pi/2
inline constexpr TwoParts MINUS_SIXTH = {-1.0 / 6, -9.25185853854297e-18};

/// n modulo 4, and r + rest, with angle = n pi/2 + r + rest and |r| <= pi/4.
struct ReducedAngle {
  std::int64_t n;
  double r, rest;
};

/// 64 bits of 2/pi that start `shift` bits into word number `place`.
inline std::uint64_t turn_bits(std::int64_t place, int shift) {
  return tables::TURN[place] << shift | tables::TURN[place + 1] >> 1 >> (63 - shift);
}

/// The upper 64 of the 128 bits of a product.
inline std::uint64_t high_product(std::uint64_t x, std::uint64_t y) {
  __extension__ typedef unsigned __int128 Wide;
  return std::uint64_t(Wide(x) * y >> 64);
}

/// For 1/2 < size < infinity.
///
/// With size = m 2^e, m an integer, m 2^e 2/pi is wanted modulo 4. Bits of 2/pi whose weight with
/// 2^e is 4 or more are left out; the next 192 give a product of which 2 bits are n and at least
/// 128 of the fraction are right. The fraction of a float is at least 2^-62.
inline ReducedAngle reduced_by_bits(double size) {
  std::int64_t bits = bits_of(size);
  auto m = std::uint64_t((bits & ((1LL << 52) - 1)) | (1LL << 52));
  std::int64_t start = (bits >> 52) - 1075 + 62;
  std::int64_t place = start >> 6;
  int shift = int(start & 63);
  std::uint64_t a = turn_bits(place, shift), b = turn_bits(place + 1, shift),
                c = turn_bits(place + 2, shift);
  std::uint64_t low = m * b;
  std::uint64_t middle = low + high_product(m, c);
  std::uint64_t carry = middle < low ? 1 : 0;
  std::uint64_t top = m * a + high_product(m, b) + carry;
  auto n = std::int64_t(top >> 62);
  std::uint64_t high = top << 2 | middle >> 62;
  low = middle << 2 | (m * c) >> 62;
  bool negative = std::int64_t(high) < 0;
  if (negative) {  // nearer to the next quarter: n + 1, and the fraction less 1
    n += 1;
    high = ~high, low = ~low;  // the negative, up to 2^-128
  }
  // The fraction is the sum of three, each exact.
  double first = double(std::int64_t(high >> 11)) * 0x1p-53;
  double second = double(std::int64_t((high & 2047) << 42 | low >> 22)) * 0x1p-106;
  double third = double(std::int64_t(low & ((1 << 22) - 1))) * 0x1p-128;
  double fraction = first + second;
  double rest = ((first - fraction) + second) + third;
  double r = fraction * QUARTER.high;
  double r_rest = fma(fraction, QUARTER.low, fma(fraction, QUARTER.high, -r));
  r_rest = fma(rest, QUARTER.high, r_rest);
  if (negative) return {n, -r, -r_rest};
  return {n, r, r_rest};
}

/// For 0 <= size < infinity.
inline ReducedAngle reduced(double size) {
  if (size <= 0.7853981633974483) return {0, size, 0.0};
  return reduced_by_bits(size);
}

/// sin(r + rest) for |r| <= pi/4: the series to r^17; the next term is below 2^-62 r.
inline double near_sine(double r, double rest) {
  double z = r * r;
  double z2 = z * z;
  double low = fma(z2, fma(z, -1.0 / 39916800, 1.0 / 362880), fma(z, -1.0 / 5040, 1.0 / 120));
  double high = fma(z, -1.0 / 1307674368000, 1.0 / 6227020800);
  high = fma(z2, 1.0 / 355687428096000, high);
  double sum = fma(z2 * z2, high, low);
  // r - r^3 / 6, with what each step loses.
  double cube = r * z;
  double cube_rest = fma(r, z, -cube) + r * fma(r, r, -z);
  double sixth = cube * MINUS_SIXTH.high;
  double sixth_rest = fma(cube, MINUS_SIXTH.high, -sixth);
  sixth_rest = fma(cube_rest, MINUS_SIXTH.high, fma(cube, MINUS_SIXTH.low, sixth_rest));
  double main = r + sixth;
  double lost = ((r - main) + sixth) + (sixth_rest + fma(-0.5 * z, rest, rest));
  return main + fma(r * z2, sum, lost);
}

/// cos(r + rest) for |r| <= pi/4: the series to r^16; the next term is below 2^-58.
inline double near_cosine(double r, double rest) {
  double z = r * r;
  double z_rest = fma(r, r, -z);
  double z2 = z * z;
  double low = fma(z2, fma(z, -1.0 / 3628800, 1.0 / 40320), fma(z, -1.0 / 720, 1.0 / 24));
  double high = fma(z2, 1.0 / 20922789888000, fma(z, -1.0 / 87178291200, 1.0 / 479001600));
  double sum = fma(z2 * z2, high, low);
  double half = 0.5 * z;
  double main = 1.0 - half;
  return main + (((1.0 - main) - half) + fma(z2, sum, fma(-0.5, z_rest, -r * rest)));
}

/// The sine of any angle; NaN if it is infinite.
inline double sine(double x) {
  double size = absolute(x);
  if (!(size < INF)) return NOT_A_NUMBER;
  auto [n, r, rest] = reduced(size);
  double value = n & 1 ? near_cosine(r, rest) : near_sine(r, rest);
  return std::copysign(1.0, x) * (n & 2 ? -value : value);
}

/// The cosine of any angle; NaN if it is infinite.
inline double cosine(double x) {
  double size = absolute(x);
  if (!(size < INF)) return NOT_A_NUMBER;
  auto [n, r, rest] = reduced(size);
  double value = n & 1 ? near_sine(r, rest) : near_cosine(r, rest);
  return (n + 1) & 2 ? -value : value;
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
  auto rotate = [n = shifted.bits()](Lanes one, Lanes other) {
    Lanes chosen = (n & 1) != 0 ? other.v : one.v;
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
