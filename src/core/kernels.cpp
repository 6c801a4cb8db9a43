// The kernels of the field, one formula each.
//
// A *statistic* of two inputs is a sum (or product) over coordinates. A *formula* makes the kernel
// values of four slots from the statistic s and up to three constants per slot. The kernels
// themselves, with units and references, are in Python (kernelbank/kernels/elementary.py), which
// also computes the constants.
#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "math.hpp"

namespace kb {

// --- statistics --------------------------------------------------------------------------------

/// total <- step(total, x_k, t_k, parameter) for each coordinate k in turn, from `start` on.
template <class Step>
class OverCoordinates final : public Statistic {
 public:
  OverCoordinates(const StatisticSpec& spec, double start, Step step)
      : parameter_(spec.parameter), start_(start), coordinates_(spec.coordinates), step_(step) {}
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    std::fill_n(out, count, start_);
    for (int k : coordinates_) {
      const double coordinate = x[k], parameter = parameter_;
      const double* t = terms + k * stride;
      for (int m = 0; m < count; ++m) out[m] = step_(out[m], coordinate, t[m], parameter);
    }
  }

 private:
  double parameter_, start_;
  std::vector<int> coordinates_;
  Step step_;
};

/// A kernel of the user's as the address of a C function k(x, t, dimension).
class CFunction final : public Statistic {
 public:
  using Function = double (*)(const double*, const double*, std::int64_t);
  explicit CFunction(const StatisticSpec& spec)
      : function_((Function)spec.identity), coordinates_(spec.coordinates) {}
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    const std::size_t dimension = coordinates_.size();
    std::vector<double> point(dimension), term(dimension);
    for (std::size_t i = 0; i < dimension; ++i) point[i] = x[coordinates_[i]];
    for (int m = 0; m < count; ++m) {
      for (std::size_t i = 0; i < dimension; ++i) term[i] = terms[coordinates_[i] * stride + m];
      out[m] = function_(point.data(), term.data(), std::int64_t(dimension));
    }
  }

 private:
  Function function_;
  std::vector<int> coordinates_;
};

static std::shared_ptr<const Statistic> make_statistic(const StatisticSpec& spec) {
  auto over_coordinates = [&](double start, auto step) -> std::shared_ptr<const Statistic> {
    return std::make_shared<OverCoordinates<decltype(step)>>(spec, start, step);
  };
  if (spec.custom) return spec.custom;
  if (spec.name == "squared_distance")  // |x - t|^2
    return over_coordinates(0.0, [](double total, double x, double t, double) {
      return total + (x - t) * (x - t);
    });
  if (spec.name == "distance")  // |x - t|_1
    return over_coordinates(
        0.0, [](double total, double x, double t, double) { return total + absolute(x - t); });
  if (spec.name == "dot_product")  // x't
    return over_coordinates(
        0.0, [](double total, double x, double t, double) { return total + x * t; });
  if (spec.name == "squared_sines")  // sum_k sin^2(pi (x_k - t_k) / period)
    return over_coordinates(0.0, [](double total, double x, double t, double period) {
      const double value = sine(3.141592653589793 * (x - t) / period);
      return total + value * value;
    });
  if (spec.name == "c_function") return std::make_shared<CFunction>(spec);
  throw std::invalid_argument("unknown statistic " + spec.name);
}

int Statistics::number(const StatisticSpec& spec) {
  const auto place = std::find_if(specs_.begin(), specs_.end(), [&](const StatisticSpec& other) {
    return other.key() == spec.key();
  });
  const int index = int(place - specs_.begin());
  if (place == specs_.end()) {
    specs_.push_back(spec);
    statistics_.push_back(make_statistic(spec));
  }
  return index;
}

bool Statistics::may_fail() const {
  return std::any_of(statistics_.begin(), statistics_.end(),
                     [](const auto& statistic) { return statistic->may_fail(); });
}

// --- formulas: the kernel values from the statistic s and the constants c ------------------------

using Constants = std::array<Lanes, 3>;

/// The kernel of a formula value(s, c).
template <class Formula>
class Elementary final : public Kernel {
 public:
  Elementary(int statistic, const Constants& constants, Formula value)
      : statistic_(statistic), c_(constants), value_(value) {}
  void write(const StatisticRows& rows, int count, Lanes* row) override {
    const double* s = rows[statistic_];
    const Constants c = c_;
    for (int m = 0; m < count; ++m) row[m] = value_(s[m], c);
  }
  bool repeats(const char* repeated) const override { return repeated[statistic_]; }

 private:
  int statistic_;
  Constants c_;
  Formula value_;
};

/// A new kernel: its formula here.
static Cloned<Kernel> make_elementary(const std::string& name, int statistic,
                                      const Constants& constants) {
  auto kernel = [&](auto formula) -> Cloned<Kernel> {
    return std::make_unique<Elementary<decltype(formula)>>(statistic, constants, formula);
  };
  // 2^(c0 s), c0 <= 0: Gaussian, Laplacian, Periodic.
  if (name == "exponential")
    return kernel([](Lanes s, const Constants& c) { return exp2_of_product(s, c[0]); });
  // The statistic is the kernel value: Spline, and users' own functions.
  if (name == "identity") return kernel([](Lanes s, const Constants&) { return s; });
  // Matern of nu = 1/2, exp(-r) with r = |x - t| / width: s = |x - t|^2, c0 = -log2(e) / width.
  if (name == "matern1")
    return kernel([](Lanes s, const Constants& c) { return exp2_of_product(sqrt(s), c[0]); });
  // Matern of nu = 3/2, (1 + u) exp(-u) with u = sqrt(3) r: s = |x - t|^2, c0 = sqrt(3) / width.
  if (name == "matern3")
    return kernel([](Lanes s, const Constants& c) {
      const Lanes u = sqrt(s) * c[0];
      return (1.0 + u) * exp2_of_product(u, -LOG2_E);
    });
  // Matern of nu = 5/2, (1 + u + u^2 / 3) exp(-u) with u = sqrt(5) r: s = |x - t|^2,
  // c0 = sqrt(5) / width.
  if (name == "matern5")
    return kernel([](Lanes s, const Constants& c) {
      const Lanes u = sqrt(s) * c[0];
      const Lanes value = (1.0 + u + u * u / 3.0) * exp2_of_product(u, -LOG2_E);
      return where_less(u, 1000.0, value, 0.0);  // u * u may overflow where the exponential is 0
    });
  // (1 + c0 s)^c1: s = |x - t|^2, c0 = 1 / (2 alpha width^2), c1 = -alpha.
  if (name == "rational_quadratic")
    return kernel([](Lanes s, const Constants& c) { return power(1.0 + c[0] * s, c[1]); });
  // s + c0: s = x't, c0 = offset.
  if (name == "linear") return kernel([](Lanes s, const Constants& c) { return c[0] + s; });
  // (c0 s + c1)^c2: s = x't, scale, offset and degree, an integer from 1 to 64.
  if (name == "polynomial")
    return kernel([](Lanes s, const Constants& c) {
      const Lanes degree = c[2], base = c[0] * s + c[1];
      const double most = std::max({degree[0], degree[1], degree[2], degree[3]});
      Lanes result = base;
      for (double k = 1.0; k < most; ++k) result = where_less(k, degree, result * base, result);
      return result;
    });
  throw std::invalid_argument("unknown kernel " + name);
}

// --- trees of kernels --------------------------------------------------------------------------

/// factor times the sum or the product of parts, from left to right.
class CompositeKernel final : public Kernel {
 public:
  CompositeKernel(std::vector<Cloned<Kernel>> parts, bool adds, std::optional<Lanes> factor)
      : parts_(std::move(parts)), adds_(adds), factor_(factor) {}
  void write(const StatisticRows& rows, int count, Lanes* row) override {
    scratch_.resize(count);
    parts_[0]->write(rows, count, row);
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      parts_[i]->write(rows, count, scratch_.data());
      for (int m = 0; m < count; ++m) row[m] = adds_ ? row[m] + scratch_[m] : row[m] * scratch_[m];
    }
    for (int m = 0; factor_ && m < count; ++m) row[m] = row[m] * *factor_;
  }
  bool repeats(const char* repeated) const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [=](const Cloned<Kernel>& part) { return part->repeats(repeated); });
  }

 private:
  std::vector<Cloned<Kernel>> parts_;
  bool adds_;
  std::optional<Lanes> factor_;
  Array<Lanes> scratch_;
};

// --- from what Python describes ----------------------------------------------------------------

/// Constant i of the slots' formulas; missing slots repeat the first.
static Lanes constant(const std::vector<KernelSpec>& slots, std::size_t i) {
  auto of = [&](std::size_t lane) {
    const auto& constants = slots[lane < slots.size() ? lane : 0].constants;
    return i < constants.size() ? constants[i] : 0.0;
  };
  return Lanes(of(0), of(1), of(2), of(3));
}

Cloned<Kernel> make_kernel(const std::vector<KernelSpec>& slots, Statistics& statistics) {
  const KernelSpec& first = slots.at(0);
  std::vector<Cloned<Kernel>> parts;
  for (std::size_t i = 0; i < first.parts.size(); ++i) {
    std::vector<KernelSpec> parts_of_slots;
    for (const KernelSpec& slot : slots) parts_of_slots.push_back(slot.parts.at(i));
    parts.push_back(make_kernel(parts_of_slots, statistics));
  }
  if (!parts.empty()) {
    const bool scales = first.name == "scaled";
    if (!scales && first.name != "sum" && first.name != "product")
      throw std::invalid_argument("unknown kernel " + first.name);
    return std::make_unique<CompositeKernel>(
        std::move(parts), first.name == "sum",
        scales ? std::optional<Lanes>(constant(slots, 0)) : std::nullopt);
  }
  const Constants constants = {constant(slots, 0), constant(slots, 1), constant(slots, 2)};
  return make_elementary(first.name, statistics.number(first.statistic), constants);
}

void TermKernel::write(const double* x, const double* terms, std::size_t stride, int count,
                       Lanes* row) {
  const std::size_t length = std::size_t(count);
  if (rows_.size() < statistics_.count() * length) rows_.resize(statistics_.count() * length);
  for (int s = 0; s < statistics_.count(); ++s)
    statistics_[s].write(x, terms, stride, count, rows_.data() + s * length);
  kernel_->write({rows_.data(), length}, count, row);
}

}  // namespace kb
