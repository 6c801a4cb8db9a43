// Kernels: rows of kernel values of one input with many terms, for up to four slots side by side.
//
// A kernel formula needs a *statistic* of two inputs, such as the squared distance. Statistics are
// computed once for all kernels that use the same one. Sums and products of kernels are trees.
#pragma once
#include <tuple>

#include "arrays.hpp"

namespace kb {

/// A number of two inputs that a kernel formula needs.
class Statistic {
 public:
  virtual ~Statistic() = default;
  /// out[m] = the statistic of x and term m, m < count; its coordinate k is at terms[k * stride + m].
  virtual void write(const double* x, const double* terms, std::size_t stride, int count,
                     double* out) const = 0;
  /// Whether it calls a function of the user's, which may fail.
  virtual bool may_fail() const { return false; }
};

/// A statistic as Python describes it: by name, or a user's own.
struct StatisticSpec {
  std::string name;
  double parameter = 0.0;
  std::vector<int> coordinates;              // of the inputs, in order
  std::shared_ptr<const Statistic> custom;   // a function of the user's
  const void* identity = nullptr;            // of that function
  auto key() const { return std::tie(name, parameter, coordinates, identity); }
};

/// The statistics that some kernels use, each one once.
class Statistics {
 public:
  /// The number of a statistic, which is added if it is new.
  int number(const StatisticSpec& spec);
  int count() const { return int(statistics_.size()); }
  const Statistic& operator[](int s) const { return *statistics_[s]; }
  bool may_fail() const;

 private:
  std::vector<StatisticSpec> specs_;
  std::vector<std::shared_ptr<const Statistic>> statistics_;
};

/// Rows of statistics of one input with many terms: rows[s][m] of statistic s and term m.
struct StatisticRows {
  const double* first;
  std::size_t stride;
  const double* operator[](int s) const { return first + s * stride; }
  /// The same, of the terms from `column` on.
  StatisticRows from(int column) const { return {first + column, stride}; }
};

/// The kernels of the slots of a pack, which have equal structure.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// row[m] = the kernel values with term m, for m < count.
  virtual void write(const StatisticRows& rows, int count, Lanes* row) = 0;
  /// Whether the row equals that of the sample before, if `repeated` says so of each statistic.
  virtual bool repeats(const char* repeated) const = 0;
};

/// A kernel as Python describes it: a formula of a statistic with constants, or parts.
struct KernelSpec {
  std::string name;  // of the formula, or "sum", "product", "scaled"
  StatisticSpec statistic;
  std::vector<double> constants;
  std::vector<KernelSpec> parts;
};

/// One kernel for up to four slots of equal structure; missing ones repeat the first.
Cloned<Kernel> make_kernel(const std::vector<KernelSpec>& slots, Statistics& statistics);

/// A kernel that compares inputs with terms of a learner's own, not with the newest samples.
class TermKernel {
 public:
  explicit TermKernel(const std::vector<KernelSpec>& slots)
      : kernel_(make_kernel(slots, statistics_)) {}
  /// row[m] = the kernel values of x and term m; its coordinate k is at terms[k * stride + m].
  void write(const double* x, const double* terms, std::size_t stride, int count, Lanes* row);
  bool may_fail() const { return statistics_.may_fail(); }

 private:
  Statistics statistics_;
  Cloned<Kernel> kernel_;
  Array<double> rows_;
};

}  // namespace kb
