// Lanes: four doubles as one value. A pack holds four slots. `+ - * /` and the functions below act
// on each lane alone, so a loop over the terms of a slot reads like the formula for one slot and
// computes four slots at once. No lane is mixed with another and no sum is reordered: the same bits
// on every machine. (The compiler splits a vector of four where registers are shorter.)
//
// A number converts to four equal lanes by itself. Functions that exist for lanes and for one
// double have the same name: `fma(2.0, x, y)` is of lanes if one of its arguments is.
//
// The compiler must not fuse products and sums on its own (-ffp-contract=off), nor reorder them.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__aarch64__) && !defined(__clang__)
#include <arm_neon.h>
#endif

namespace kb {

inline constexpr int WIDTH = 4;
inline constexpr double INF = std::numeric_limits<double>::infinity();
inline constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

struct Lanes {
  typedef double Vector __attribute__((vector_size(32)));
  typedef std::uint64_t Bits __attribute__((vector_size(32)));  // unsigned: sums may wrap around
  Vector v;

  Lanes() = default;
  Lanes(Vector vector) : v(vector) {}
  Lanes(double x) : v{x, x, x, x} {}
  Lanes(double a, double b, double c, double d) : v{a, b, c, d} {}
  explicit Lanes(Bits bits) : v((Vector)bits) {}

  double operator[](int i) const { return v[i]; }
  void set(int i, double x) { v[i] = x; }
  Bits bits() const { return (Bits)v; }

  friend Lanes operator+(Lanes x, Lanes y) { return x.v + y.v; }
  friend Lanes operator-(Lanes x, Lanes y) { return x.v - y.v; }
  friend Lanes operator*(Lanes x, Lanes y) { return x.v * y.v; }
  friend Lanes operator/(Lanes x, Lanes y) { return x.v / y.v; }
  friend Lanes operator-(Lanes x) { return -x.v; }
  Lanes& operator+=(Lanes x) { return *this = *this + x; }
  Lanes& operator-=(Lanes x) { return *this = *this - x; }
  Lanes& operator*=(Lanes x) { return *this = *this * x; }
};

// --- functions of each lane ----------------------------------------------------------------------

/// x * y + z, rounded once. Without an instruction for it the C library computes it: the same bits.
inline double fma(double x, double y, double z) { return std::fma(x, y, z); }

// (Built-in functions of the compilers: to read <immintrin.h> takes a second of every file.)
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
#if __has_builtin(__builtin_elementwise_fma)  // clang
  return __builtin_elementwise_fma(x.v, y.v, z.v);
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddpd256(x.v, y.v, z.v);
#elif defined(__aarch64__) && !defined(__clang__)
  float64x2_t a[2], b[2], c[2];
  std::memcpy(a, &x, sizeof x), std::memcpy(b, &y, sizeof y), std::memcpy(c, &z, sizeof z);
  for (int i = 0; i < 2; ++i) c[i] = vfmaq_f64(c[i], a[i], b[i]);
  std::memcpy(&z, c, sizeof z);
  return z;
#else
  for (int i = 0; i < WIDTH; ++i) z.v[i] = fma(x.v[i], y.v[i], z.v[i]);
  return z;
#endif
}

/// The square root, correctly rounded.
inline double sqrt(double x) { return std::sqrt(x); }

inline Lanes sqrt(Lanes x) {
#if __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(x.v);
#elif defined(__AVX__)
  return __builtin_ia32_sqrtpd256(x.v);
#else
  for (int i = 0; i < WIDTH; ++i) x.v[i] = sqrt(x.v[i]);
  return x;
#endif
}

/// Without the sign; NaN stays NaN.
inline double absolute(double x) { return std::fabs(x); }

inline Lanes absolute(Lanes x) { return Lanes(x.bits() & std::uint64_t(INT64_MAX)); }

/// `yes` in the lanes with x < y, else `no`, also where one is NaN.
inline Lanes where_less(Lanes x, Lanes y, Lanes yes, Lanes no) {
  return x.v < y.v ? yes.v : no.v;
}

/// Whether x < y in every lane; no if a number is NaN.
inline bool all_less(Lanes x, Lanes y) {
  auto less = x.v < y.v;
#if defined(__AVX__)
  return __builtin_ia32_movmskpd256((Lanes::Vector)less) == 15;
#else
  return (less[0] & less[1] & less[2] & less[3]) != 0;
#endif
}

/// A number in lane 0: the value of a pack's one slot.
inline Lanes first_lane(double x) { return Lanes(x, 0.0, 0.0, 0.0); }

/// function(x_i, ...) of each lane alone.
template <class Function, class... More>
Lanes each_lane(Function function, const More&... x) {
  return Lanes(function(x[0]...), function(x[1]...), function(x[2]...), function(x[3]...));
}

/// (x0 + x1) + (x2 + x3): the order of every sum over lanes.
inline double add_lanes(Lanes x) { return (x[0] + x[1]) + (x[2] + x[3]); }

/// The same for four at once.
inline Lanes add_lanes(Lanes a, Lanes b, Lanes c, Lanes d) {
#if __has_builtin(__builtin_shufflevector)
  const auto pairs = [](Lanes x, Lanes y) {  // x0 + x1, y0 + y1, x2 + x3, y2 + y3
    return __builtin_shufflevector(x.v, y.v, 0, 4, 2, 6) +
           __builtin_shufflevector(x.v, y.v, 1, 5, 3, 7);
  };
  const Lanes::Vector ab = pairs(a, b), cd = pairs(c, d);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
#else
  return Lanes(add_lanes(a), add_lanes(b), add_lanes(c), add_lanes(d));
#endif
}

// --- memory: four consecutive numbers, at any address --------------------------------------------

inline Lanes load(const double* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void store(double* to, Lanes x) { std::memcpy(to, &x, sizeof x); }

typedef float Singles __attribute__((vector_size(16)));

/// Single precision is for storage only: widened here ...
inline Lanes load(const float* from) {
  Singles x;
  std::memcpy(&x, from, sizeof x);
  return __builtin_convertvector(x, Lanes::Vector);
}

/// ... and rounded here.
inline void store(float* to, Lanes x) {
  Singles rounded = __builtin_convertvector(x.v, Singles);
  std::memcpy(to, &rounded, sizeof rounded);
}

// --- exponential and logarithm, for the ranges of kernels and losses -----------------------------

/// Adding it to a number below 2^51 in size rounds to an integer, in the low bits of the sum.
inline constexpr double ROUND = 0x1.8p52;

/// 1 / log 2: e^-u = 2^(-LOG2_E u).
inline constexpr double LOG2_E = 1.4426950408889634;

/// 2^(x y) where x y <= 0; 1.3 ulp; NaN stays NaN. It is 0 below 2^-1021.5: no denormals, which
/// would slow down the loops. The product is never rounded: both uses of it are inside an fma.
inline Lanes exp2_of_product(Lanes x, Lanes y) {
  // 2^r on [-1/2, 1/2]: Chebyshev fit of degree 11, error 3.2e-18.
  constexpr double c[12] = {
      1.0,
      0.6931471805599453,
      0.24022650695910158,
      0.055504108664821625,
      0.009618129107587256,
      0.001333355814640647,
      0.00015403530463724353,
      1.5252733841556773e-05,
      1.3215432535912375e-06,
      1.0178057087733941e-07,
      7.074194297288521e-09,
      4.4558179083360645e-10,
  };
  Lanes shifted = fma(x, y, ROUND);  // the nearest integer n to x y is in its low bits
  Lanes r = fma(x, y, -(shifted - ROUND));
  // Estrin's order: twelve coefficients in four levels instead of a chain of eleven.
  Lanes r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
  Lanes quads[3];
  for (int i = 0; i < 3; ++i) {
    Lanes low = fma(c[4 * i + 1], r, c[4 * i]), high = fma(c[4 * i + 3], r, c[4 * i + 2]);
    quads[i] = fma(high, r2, low);
  }
  Lanes mantissa = fma(quads[2], r8, fma(quads[1], r4, quads[0]));
  Lanes scaled(mantissa.bits() + (shifted.bits() << 52));  // times 2^n
  return where_less(shifted, ROUND - 1021.0, 0.0, scaled);
}

/// log(1 + u) for 0 <= u <= 1, with a small relative error also near 0.
inline Lanes log1p_of_fraction(Lanes u) {
  // 2 artanh(z) with z = u / (2 + u); z^2 <= 1/9, so 17 terms leave 2e-18.
  Lanes z = u / (u + 2.0), square = z * z;
  Lanes total = 1.0 / 33.0;
  for (int k = 15; k >= 0; --k) total = fma(total, square, 1.0 / (2 * k + 1));
  return (z + z) * total;
}

}  // namespace kb
