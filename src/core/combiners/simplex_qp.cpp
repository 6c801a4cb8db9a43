// The quadratic program of simplex_qp.hpp: by sorting, or by pivots.
#include "simplex_qp.hpp"

#include <algorithm>
#include <cmath>

#include "../dense.hpp"
#include "../math.hpp"

namespace kb {

static constexpr double HUGE_LINEAR = 0x1p1000;  // above, the difference of two b may overflow
static constexpr double SLACK = 8.9e-16;  // four ulps: no candidate is lost to rounding of the bound
static constexpr int FEW = 64;            // up to here sorting is faster than pivots

void QuadraticProgram::solve(const double* a, const double* b, int size, double* weights,
                             Method method) {
  std::fill_n(weights, size, 0.0);
  find_candidates(a, b, size, method);
  if (flat_ < INF && share_flat(a, b, size, weights)) return;
  if (count_ == 0) return;  // all slots have failed
  const bool sorts =
      method == Method::sort || (method == Method::automatic && count_ <= FEW);
  const double threshold = exact(sorts ? by_sorting() : by_pivots());
  const double rest = 1.0 - taken_;
  double inverse = 0.0;
  for (int k = 0; k < count_; ++k)
    if (b_[k] <= threshold) inverse += least_ / a_[k];
  for (int k = 0; k < count_; ++k)
    if (b_[k] <= threshold)
      weights[members_[k]] =
          half_ * ((threshold - b_[k]) / a_[k]) + rest * ((least_ / a_[k]) / inverse);
}

/// List the members with a_p > 0 that can have weight: those below a bound v with mass(v) >= 1 and
/// below flat_.
void QuadraticProgram::find_candidates(const double* a, const double* b, int size, Method method) {
  if (a_.size() < std::size_t(size)) a_.resize(size), b_.resize(size), members_.resize(size);
  Lanes bounds = INF, flats = INF, sizes = 0.0;
  const auto look = [&](Lanes some_a, Lanes some_b) {
    const Lanes twice = 2.0 * some_a, absolute_b = absolute(some_b);
    const Lanes edge = where_less(0.0, some_a, some_b + twice + SLACK * (absolute_b + twice), INF);
    const Lanes base = where_less(0.0, some_a, INF, some_b);
    bounds = where_less(edge, bounds, edge, bounds);
    flats = where_less(base, flats, base, flats);
    sizes = where_less(sizes, where_less(absolute_b, INF, absolute_b, 0.0), absolute_b, sizes);
  };
  const int even = whole_lanes(size);
  for (int p = 0; p < even; p += WIDTH) look(load(a + p), load(b + p));
  for (int p = even; p < size; ++p) look(a[p], b[p]);
  const auto least = [](Lanes x) { return std::min(std::min(x[0], x[1]), std::min(x[2], x[3])); };
  const double edge = method == Method::sort ? INF : least(bounds), largest = -least(-sizes);
  flat_ = least(flats);
  const bool huge = largest > HUGE_LINEAR;
  half_ = huge ? 1.0 : 0.5;
  scale_ = huge ? 0.5 : 1.0;
  count_ = 0;
  for (int p = 0; p < size; ++p)
    if (b[p] <= edge && a[p] > 0.0 && b[p] < flat_ && b[p] < INF) {
      a_[count_] = a[p], b_[count_] = scale_ * b[p], members_[count_] = p;
      ++count_;
    }
}

/// With a_p = 0 somewhere: members below flat_ get (flat_ - b_p) / (2 a_p), those at it share the
/// rest equally, if there is any.
bool QuadraticProgram::share_flat(const double* a, const double* b, int size,
                                  double* weights) const {
  const double taken = mass(scale_ * flat_);
  if (!(taken < 1.0)) return false;
  int sharing = 0;
  for (int p = 0; p < size; ++p) sharing += a[p] == 0.0 && b[p] == flat_;
  for (int k = 0; k < count_; ++k)
    if (b_[k] < scale_ * flat_)
      weights[members_[k]] = half_ * ((scale_ * flat_ - b_[k]) / a_[k]);
  for (int p = 0; p < size; ++p)
    if (a[p] == 0.0 && b[p] == flat_) weights[p] = (1.0 - taken) / sharing;
  return true;
}

double QuadraticProgram::mass(double v) const {
  double total = 0.0;
  for (int k = 0; k < count_; ++k)
    if (b_[k] < v) total += half_ * ((v - b_[k]) / a_[k]);
  return total;
}

/// The largest b_p with mass(b_p) < 1, from an approximation.
double QuadraticProgram::exact(double threshold) {
  while (true) {
    double below = -INF, above = INF;
    taken_ = 0.0;
    least_ = INF;
    for (int k = 0; k < count_; ++k) {
      if (b_[k] > threshold) {
        above = std::min(above, b_[k]);
        continue;
      }
      least_ = std::min(least_, a_[k]);
      if (b_[k] < threshold) {
        taken_ += half_ * ((threshold - b_[k]) / a_[k]);
        below = std::max(below, b_[k]);
      }
    }
    if (taken_ >= 1.0)
      threshold = below;
    else if (above == INF || mass(above) >= 1.0)
      return threshold;
    else
      threshold = above;
  }
}

/// The threshold, up to rounding, by a walk through the sorted members.
double QuadraticProgram::by_sorting() {
  const double *a = a_.data(), *b = b_.data();
  const int count = count_;
  order_.resize(std::max<std::size_t>(order_.size(), count));
  for (int i = 0; i < count; ++i) order_[i] = i;
  std::sort(order_.begin(), order_.begin() + count, [b](int i, int j) { return b[i] < b[j]; });
  double threshold = b[order_[0]], least = a[order_[0]];
  double inverse = 1.0, taken = 0.0;  // sum of least / a over the members so far; their mass
  for (int j = 1; j < count; ++j) {
    const int i = order_[j];
    taken += half_ * ((b[i] - threshold) / least) * inverse;
    if (!(taken < 1.0)) break;
    threshold = b[i];
    if (a[i] < least) {
      inverse = inverse * (a[i] / least) + 1.0;
      least = a[i];
    } else {
      inverse += least / a[i];
    }
  }
  return threshold;
}

/// The threshold, up to rounding, in expected time O(P). Members known to have weight enter by their
/// mass at the threshold so far and its growth rate, inverse / least; the others are `unknown`.
/// Pivots are random.
double QuadraticProgram::by_pivots() {
  unknown_a_.assign(a_.begin(), a_.begin() + count_);
  unknown_b_.assign(b_.begin(), b_.begin() + count_);
  double *a = unknown_a_.data(), *b = unknown_b_.data();
  double threshold = -INF, taken = 0.0, least = 1.0, inverse = 0.0;
  std::uint64_t random = 88172645463325252u;  // xorshift; the start is arbitrary but fixed
  for (int unknown = count_, rest; unknown > 0; unknown = rest) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const double pivot = b[(random >> 33) % std::uint64_t(unknown)];
    double added = 0.0, added_least = INF;
    for (int k = 0; k < unknown; ++k) {
      added += b[k] < pivot ? half_ * ((pivot - b[k]) / a[k]) : 0.0;
      added_least = b[k] <= pivot ? std::min(added_least, a[k]) : added_least;
    }
    double at_pivot = taken + added;
    if (inverse > 0.0 && pivot > threshold)
      at_pivot += half_ * ((pivot - threshold) / least) * inverse;
    rest = 0;
    const auto keep = [&](auto is_unknown) {  // without a branch, which could not be predicted
      for (int k = 0; k < unknown; ++k) {
        const double here = b[k];
        a[rest] = a[k], b[rest] = here;
        rest += is_unknown(here);
      }
    };
    if (at_pivot < 1.0) {
      const double smaller = inverse > 0.0 ? std::min(least, added_least) : added_least;
      inverse *= smaller / least;
      least = smaller;
      for (int k = 0; k < unknown; ++k) inverse += b[k] <= pivot ? least / a[k] : 0.0;
      keep([=](double here) { return here > pivot; });
      threshold = std::max(threshold, pivot);
      taken = at_pivot;
    } else {
      keep([=](double here) { return here < pivot; });
    }
  }
  return threshold;
}

}  // namespace kb
