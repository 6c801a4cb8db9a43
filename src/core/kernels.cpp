#include "kernels.hpp"

#include <algorithm>

#include "kernel_formulas.hpp"

namespace kb {

// --- statistics --------------------------------------------------------------------------------

/// total <- step(total, x_k, t_k, parameter) for each coordinate k in turn.
template <class Step>
class OverCoordinates final : public Statistic {
 public:
  explicit OverCoordinates(const StatisticSpec& spec)
      : parameter_(spec.parameter), coordinates_(spec.coordinates) {}
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    std::fill_n(out, count, Step::start);
    for (int k : coordinates_) {
      const double own = x[k], parameter = parameter_;
      const double* t = terms + k * stride;
      for (int m = 0; m < count; ++m) out[m] = Step::step(out[m], own, t[m], parameter);
    }
  }

 private:
  double parameter_;
  std::vector<int> coordinates_;
};

template <class Step>
static std::shared_ptr<const Statistic> over_coordinates(const StatisticSpec& spec) {
  return std::make_shared<OverCoordinates<Step>>(spec);
}

/// A kernel of the user's as the address of a C function k(x, t, dimension).
class CFunction final : public Statistic {
 public:
  using Function = double (*)(const double*, const double*, std::int64_t);
  explicit CFunction(const StatisticSpec& spec)
      : function_((Function)spec.identity), coordinates_(spec.coordinates) {}
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    const std::size_t dimension = coordinates_.size();
    std::vector<double> one(dimension), other(dimension);
    for (std::size_t i = 0; i < dimension; ++i) one[i] = x[coordinates_[i]];
    for (int m = 0; m < count; ++m) {
      for (std::size_t i = 0; i < dimension; ++i) other[i] = terms[coordinates_[i] * stride + m];
      out[m] = function_(one.data(), other.data(), std::int64_t(dimension));
    }
  }

 private:
  Function function_;
  std::vector<int> coordinates_;
};

static std::shared_ptr<const Statistic> make_statistic(const StatisticSpec& spec) {
  if (spec.custom) return spec.custom;
  if (spec.name == "squared_distance") return over_coordinates<SquaredDistance>(spec);
  if (spec.name == "distance") return over_coordinates<Distance>(spec);
  if (spec.name == "dot_product") return over_coordinates<DotProduct>(spec);
  if (spec.name == "squared_sines") return over_coordinates<SquaredSines>(spec);
  if (spec.name == "spline_product") return over_coordinates<SplineProduct>(spec);
  if (spec.name == "c_function") return std::make_shared<CFunction>(spec);
  throw std::invalid_argument("unknown statistic " + spec.name);
}

int Statistics::number(const StatisticSpec& spec) {
  const auto place = std::find(specs_.begin(), specs_.end(), spec);
  const int found = int(place - specs_.begin());
  if (place == specs_.end()) {
    specs_.push_back(spec);
    made_.push_back(make_statistic(spec));
  }
  return found;
}

bool Statistics::may_fail() const {
  for (const auto& statistic : made_)
    if (statistic->may_fail()) return true;
  return false;
}

// --- trees of kernels --------------------------------------------------------------------------

template <class Formula>
class Elementary final : public Kernel {
 public:
  Elementary(int statistic, const Constants& constants) : statistic_(statistic), c_(constants) {}
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Elementary>(*this); }
  void write(const StatisticRows& rows, int count, Lanes* row) override {
    const double* s = rows[statistic_];
    const Constants c = c_;
    for (int m = 0; m < count; ++m) row[m] = Formula::value(s[m], c);
  }
  bool repeats(const char* repeated) const override { return repeated[statistic_]; }

 private:
  int statistic_;
  Constants c_;
};

class ScaledKernel final : public Kernel {
 public:
  ScaledKernel(Lanes factor, std::unique_ptr<Kernel> base)
      : factor_(factor), base_(std::move(base)) {}
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<ScaledKernel>(*this); }
  void write(const StatisticRows& rows, int count, Lanes* row) override {
    base_->write(rows, count, row);
    for (int m = 0; m < count; ++m) row[m] = row[m] * factor_;
  }
  bool repeats(const char* repeated) const override { return base_->repeats(repeated); }

 private:
  Lanes factor_;
  Cloned<Kernel> base_;
};

struct Add {
  static Lanes of(Lanes x, Lanes y) { return x + y; }
};
struct Multiply {
  static Lanes of(Lanes x, Lanes y) { return x * y; }
};

/// The sum or the product of parts, from left to right.
template <class Operation>
class Folded final : public Kernel {
 public:
  explicit Folded(std::vector<Cloned<Kernel>> parts) : parts_(std::move(parts)) {}
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Folded>(*this); }
  void write(const StatisticRows& rows, int count, Lanes* row) override {
    scratch_.resize(count);
    parts_[0]->write(rows, count, row);
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      parts_[i]->write(rows, count, scratch_.data());
      for (int m = 0; m < count; ++m) row[m] = Operation::of(row[m], scratch_[m]);
    }
  }
  bool repeats(const char* repeated) const override {
    for (const Cloned<Kernel>& part : parts_)
      if (!part->repeats(repeated)) return false;
    return true;
  }

 private:
  std::vector<Cloned<Kernel>> parts_;
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

template <class Operation>
static std::unique_ptr<Kernel> folded(const std::vector<KernelSpec>& slots, Statistics& statistics) {
  std::vector<Cloned<Kernel>> parts;
  for (std::size_t i = 0; i < slots[0].parts.size(); ++i) {
    std::vector<KernelSpec> own;
    for (const KernelSpec& slot : slots) own.push_back(slot.parts.at(i));
    parts.push_back(make_kernel(own, statistics));
  }
  return std::make_unique<Folded<Operation>>(std::move(parts));
}

template <class Formula>
static std::unique_ptr<Kernel> elementary(int statistic, const Constants& constants) {
  return std::make_unique<Elementary<Formula>>(statistic, constants);
}

/// A new kernel: its formula in kernel_formulas.hpp, and a line here.
static std::unique_ptr<Kernel> make_elementary(const std::string& name, int s, const Constants& c) {
  if (name == "exponential") return elementary<Exponential>(s, c);
  if (name == "identity") return elementary<Identity>(s, c);
  if (name == "matern1") return elementary<Matern1>(s, c);
  if (name == "matern3") return elementary<Matern3>(s, c);
  if (name == "matern5") return elementary<Matern5>(s, c);
  if (name == "rational_quadratic") return elementary<RationalQuadratic>(s, c);
  if (name == "linear") return elementary<LinearKernel>(s, c);
  if (name == "polynomial") return elementary<Polynomial>(s, c);
  throw std::invalid_argument("unknown kernel " + name);
}

std::unique_ptr<Kernel> make_kernel(const std::vector<KernelSpec>& slots, Statistics& statistics) {
  const KernelSpec& first = slots.at(0);
  if (first.name == "scaled") {
    std::vector<KernelSpec> bases;
    for (const KernelSpec& slot : slots) bases.push_back(slot.parts.at(0));
    return std::make_unique<ScaledKernel>(constant(slots, 0), make_kernel(bases, statistics));
  }
  if (first.name == "sum") return folded<Add>(slots, statistics);
  if (first.name == "product") return folded<Multiply>(slots, statistics);
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
