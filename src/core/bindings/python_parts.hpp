// Parts of a bank that a user writes in Python, as parts of the core: it calls them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "../combiner.hpp"
#include "../learner.hpp"
#include "../transforms.hpp"

namespace nb = nanobind;

namespace kb {

using Floats = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, double>;
using Shape = std::vector<std::size_t>;

/// A new NumPy array of zeros.
Result new_array(const Shape& shape, double** data);

/// A copy of numbers as a NumPy array.
template <class T>
nb::any copied(const T* numbers, const Shape& shape) {
  std::size_t size = 1;
  for (std::size_t n : shape) size *= n;
  T* data = new T[size];
  std::copy_n(numbers, size, data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] (T*)p; });
  nb::object array = nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
  return nb::steal<nb::any>(array.release());
}

/// A kernel k(X, Z) -> (n, m) as a statistic.
std::shared_ptr<const Statistic> python_statistic(nb::object function, std::string name,
                                                  std::vector<int> coordinates);

/// A loss from two functions of predictions and targets, arrays of one shape.
std::shared_ptr<const Loss> python_loss(nb::object value, nb::object derivative, std::string name,
                                        double curvature);

/// A learner from a model in Python for each output: an object with value(x), learn(x, y, slope), norm(),
/// variance(x), copy(), `arrays`, the state by name, and `may_fail`.
std::unique_ptr<Learner> python_learner(const nb::list& models, const LearnerSpec& spec);
/// The models of such a learner; None for any other.
nb::object python_models(const Learner& learner);

/// A rule of the user's: an object with choose(evidence, weights), copy() and `arrays`, its state.
std::unique_ptr<Combiner> python_combiner(nb::object rule);

}  // namespace kb
