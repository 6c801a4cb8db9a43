// Sums that are rounded once: the same bits whatever the order of their terms.
#pragma once
#include <cmath>
#include <vector>

namespace kb {

/// The sum of numbers, exact until it is rounded (Shewchuk, 1997).
class ExactSum {
 public:
  void add(double x) {
    std::size_t used = 0;
    for (double part : parts_) {
      if (std::fabs(x) < std::fabs(part)) std::swap(x, part);
      const double high = x + part, low = part - (high - x);
      if (low != 0.0) parts_[used++] = low;
      x = high;
    }
    parts_.resize(used);
    parts_.push_back(x);
  }

  double value() const {
    // The parts do not overlap and grow: add from the largest until something is rounded off.
    std::size_t n = parts_.size();
    if (n == 0) return 0.0;
    double high = parts_[--n], low = 0.0;
    while (n > 0) {
      const double x = high, y = parts_[--n];
      high = x + y;
      low = y - (high - x);
      if (low != 0.0) break;
    }
    // A tie was rounded to even: what is left below decides about it.
    if (n > 0 && ((low < 0.0 && parts_[n - 1] < 0.0) || (low > 0.0 && parts_[n - 1] > 0.0))) {
      const double twice = 2.0 * low, up = high + twice;
      if (twice == up - high) high = up;
    }
    return high;
  }

 private:
  std::vector<double> parts_;
};

}  // namespace kb
