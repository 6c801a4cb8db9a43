// The methods of math.hpp, and their tables.
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
#include "math.hpp"

#include <array>
#include <bit>

namespace kb {

// --- tables, computed by the compiler ------------------------------------------------------------

// In fixed point, 124 bits after the point: enough for each entry to be the nearest float.
__extension__ typedef unsigned __int128 Fixed;
__extension__ typedef __int128 Signed;
constexpr Fixed ONE = Fixed(1) << 124;

/// x y but for the last places, for x, y < 2.
constexpr Fixed times(Fixed x, Fixed y) {
  const Fixed high_x = x >> 64, low_x = std::uint64_t(x), high_y = y >> 64, low_y = std::uint64_t(y);
  return (high_x * high_y << 4) + (high_x * low_y >> 60) + (low_x * high_y >> 60);
}

/// Row i: s = 2^(i/128) rounded, and t with s (1 + t) = 2^(i/128).
constexpr auto POWERS = [] {
  std::array<TwoParts, 128> table{};
  for (int i = 0; i < 128; ++i) {
    // x = sum_k r^k / k!, r = i log(2) / 128
    const Fixed r = (Fixed(0xb17217f7d1cf79ab) * i << 53) + (Fixed(0xc9e3b39803f2f6af) * i >> 11);
    Fixed x = ONE, term = ONE;
    for (int k = 1; k < 40; ++k) x += term = times(term, r) / k;
    const double s = double(x) * 0x1p-124;
    const Signed rest = Signed(x - Fixed(double(x))) * (1LL << 52);
    table[i] = {s, double(rest / Signed(s * 0x1p52)) * 0x1p-124};
  }
  return table;
}();

/// For the z of interval i (of 128 equal ranges of bits from 0.70703125 to twice that): 256 c, with
/// c near 1/z. c is a multiple of 2^-7 for z < 1 and of 2^-8 for z > 1, so that c z - 1 is exact
/// and below 2^-7; c = 1 next to 1, so that the logarithm there has all its digits.
constexpr int inverse_of(int i) {
  const int above = i - 75;  // intervals above 1
  if (above == 0) return 256;
  return above < 0 ? 2 * int(65536.0 / (363 + 2 * i) + 0.5) : int(65536.0 / (257 + 2 * above) + 0.5);
}

/// c, and -log c in two parts, the first of which is a multiple of 2^-42.
struct Logarithm {
  double inverse, high, low;
};
constexpr auto LOGARITHMS = [] {
  std::array<Logarithm, 128> table{};
  for (int i = 0; i < 128; ++i) {
    const int n = inverse_of(i), sign = n > 256 ? -1 : 1;
    // |log(n / 256)| = 2 artanh z = 2 sum_k z^(2k + 1) / (2k + 1), z = |n - 256| / (n + 256)
    const Fixed z = ((ONE >> 4) * (sign * (256 - n)) / (n + 256)) << 4, square = times(z, z);
    Fixed power = z, sum = 0;
    for (int k = 1; k < 60; k += 2, power = times(power, square)) sum += 2 * power / k;
    const Fixed high = (sum + (ONE >> 43)) >> 82;
    const double low = double(Signed(sum) - Signed(high << 82)) * 0x1p-124;
    table[i] = {n / 256.0, sign * (double(high) * 0x1p-42), sign * low};
  }
  return table;
}();

/// 2/pi in words of 64 bits, the first of which is its integer part, 0.
constexpr std::uint64_t TURN[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

static std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
static double float_of(std::int64_t bits) { return std::bit_cast<double>(bits); }

// --- exp -----------------------------------------------------------------------------------------

// In two parts; the first ones have so few digits that their products with exponents are exact.
constexpr TwoParts LN2 = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
constexpr TwoParts LN2_STEP = {0x1.62e42fefap-8, 0x1.cf79abc9e3b3ap-47};  // ln2 / 128
constexpr double STEPS_PER_ONE = 0x1.71547652b82fep7;                     // 128 / ln2

/// 2^k (s + s t), with 1 <= s < 2 and |t| < 0.003.
struct ExpParts {
  std::int64_t k;
  double s, t;
};

/// exp(x + rest) for |x| < 750.
static ExpParts exp_parts(double x, double rest) {
  double steps = (x * STEPS_PER_ONE + ROUND) - ROUND;
  double r = fma(steps, -LN2_STEP.low, fma(steps, -LN2_STEP.high, x)) + rest;
  auto count = std::int64_t(steps);
  const auto [power, error] = POWERS[count & 127];
  double r2 = r * r;
  // The series of exp(r) - 1; the next term is below 2^-60.
  double high = fma(r, 1.0 / 120, 1.0 / 24);
  double low = fma(r, 1.0 / 6, 0.5);
  double t = r + fma(r2, fma(r2, high, low), error);
  return {count >> 7, power, t};
}

/// s 2^k for 1 <= s < 2, where the result is normal.
static double times_power(double s, std::int64_t k) {
  return float_of(bits_of(s) + k * (1LL << 52));
}

/// 2^k (s + s t), rounded once, also above and below the normal range.
static double scaled(ExpParts parts) {
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
double exp(double x) {
  if (!(-746.0 < x && x < 710.0)) return std::isnan(x) ? x : (x > 0.0 ? INF : 0.0);
  return scaled(exp_parts(x, 0.0));
}

// --- expm1 ---------------------------------------------------------------------------------------

/// e^x - 1 for -45 < x < 45.
static TwoParts expm1_parts(double x) {
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
double expm1(double x) {
  if (absolute(x) < 0x1p-54 || std::isnan(x)) return x;
  if (x <= -45.0) return -1.0;
  if (x >= 45.0) return exp(x);
  return expm1_parts(x).high;
}

// --- log -----------------------------------------------------------------------------------------

/// The logarithm of a positive finite number, right to 2^-67 of it.
static TwoParts log_parts(double x) {
  constexpr std::int64_t lowest = 0x3FE6ALL << 44;  // of 0.70703125: z is from here to twice this
  constexpr std::int64_t step = 1LL << 52;           // one more exponent
  std::int64_t bits = bits_of(x);
  bool denormal = bits < step;
  if (denormal) bits = bits_of(x * 0x1p54);
  std::int64_t distance = bits - lowest;
  std::int64_t exponent = distance >> 52;
  const auto interval = (distance >> 45) & 127;
  const auto [inverse, log_high, log_low] = LOGARITHMS[interval];
  double z = float_of(bits - exponent * step);
  auto k = double(denormal ? exponent - 54 : exponent);
  double r = fma(z, inverse, -1.0);          // exact
  double base = fma(k, LN2.high, log_high);  // exact
  // base + r - r^2 / 2, with what each sum loses.
  double first = base + r;
  double half = -0.5 * r;
  double square = half * r;
  double high = first + square;
  double lost = fma(half, r, -square) + ((first - high) + square);
  lost += fma(k, LN2.low, log_low) + ((base - first) + r);
  // The series from r^3 to r^10; the next term is below 2^-73 r.
  double r2 = r * r;
  double low = fma(r2, fma(r, -1.0 / 6, 1.0 / 5), fma(r, -1.0 / 4, 1.0 / 3));
  double tail = fma(r2, fma(r, -1.0 / 10, 1.0 / 9), fma(r, -1.0 / 8, 1.0 / 7));
  lost = fma(r2 * r, fma(r2 * r2, tail, low), lost);
  double sum = high + lost;
  return {sum, (high - sum) + lost};
}

/// log(x + rest) as one number, for rest within an ulp of x.
static double log_of_sum(double x, double rest) {
  auto [high, low] = log_parts(x);
  return high + (low + rest / x);
}

/// The natural logarithm.
double log(double x) {
  if (!(0.0 < x && x < INF)) return x == 0.0 ? -INF : (x < 0.0 ? NOT_A_NUMBER : x);
  return log_parts(x).high;
}

/// log(1 + x), with all digits also for small x.
double log1p(double x) {
  if (!(-1.0 < x && x < INF)) return x == -1.0 ? -INF : (x < -1.0 ? NOT_A_NUMBER : x);
  if (absolute(x) < 0x1p-20) return fma(x * x, fma(x, 1.0 / 3, -0.5), x);
  double sum = 1.0 + x;
  double back = sum - x;
  return log_of_sum(sum, (1.0 - back) + (x - (sum - back)));
}

// --- tanh and asinh ------------------------------------------------------------------------------

/// The hyperbolic tangent.
double tanh(double x) {
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
double asinh(double x) {
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
double power(double x, double y) {
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

// --- sine and cosine of one angle, of any size ---------------------------------------------------

// An angle is n quarter turns plus a remainder: x 2/pi is computed in integers, with as many digits
// of 2/pi as the angle needs (Payne and Hanek). The remainder, a sum of two floats, goes into a
// Taylor series.

constexpr TwoParts MINUS_SIXTH = {-1.0 / 6, -9.25185853854297e-18};

/// n modulo 4, and r + rest, with angle = n pi/2 + r + rest and |r| <= pi/4.
struct ReducedAngle {
  std::int64_t n;
  double r, rest;
};

/// 64 bits of 2/pi that start `shift` bits into word number `place`.
static std::uint64_t turn_bits(std::int64_t place, int shift) {
  return TURN[place] << shift | TURN[place + 1] >> 1 >> (63 - shift);
}

/// The upper 64 of the 128 bits of a product.
static std::uint64_t high_product(std::uint64_t x, std::uint64_t y) {
  __extension__ typedef unsigned __int128 Wide;
  return std::uint64_t(Wide(x) * y >> 64);
}

/// For 1/2 < size < infinity.
///
/// With size = m 2^e, m an integer, m 2^e 2/pi is wanted modulo 4. Bits of 2/pi whose weight with
/// 2^e is 4 or more are left out; the next 192 give a product of which 2 bits are n and at least
/// 128 of the fraction are right. The fraction of a float is at least 2^-62.
static ReducedAngle reduced_by_bits(double size) {
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
static ReducedAngle reduced(double size) {
  if (size <= 0.7853981633974483) return {0, size, 0.0};
  return reduced_by_bits(size);
}

/// sin(r + rest) for |r| <= pi/4: the series to r^17; the next term is below 2^-62 r.
static double near_sine(double r, double rest) {
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
static double near_cosine(double r, double rest) {
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

/// sin(|x| + quarters pi/2); NaN if x is infinite.
static double shifted_sine(double x, int quarters) {
  double size = absolute(x);
  if (!(size < INF)) return NOT_A_NUMBER;
  auto [n, r, rest] = reduced(size);
  n += quarters;
  double value = n & 1 ? near_cosine(r, rest) : near_sine(r, rest);
  return n & 2 ? -value : value;
}

double sine(double x) { return std::copysign(1.0, x) * shifted_sine(x, 0); }
double cosine(double x) { return shifted_sine(x, 1); }

}  // namespace kb
