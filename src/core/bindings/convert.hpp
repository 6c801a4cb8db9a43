// Settings, arrays and states between Python and the core, and objects that Python holds.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "../combiner.hpp"
#include "../learner.hpp"
#include "../transforms.hpp"

namespace nb = nanobind;

namespace kb {

// The parts of the module that Python sees which are bound in files of their own.
void bind_auto(nb::module_& m);
void bind_bank(nb::module_& m);
void bind_models(nb::module_& m);

class ModelBank;
class SeasonHistory;
/// A KernelBank of Python, on rows of this width, as the bank of a model.
std::shared_ptr<ModelBank> model_bank(nb::handle bank, int width);
/// Give a history these periods: those that are not 0 come first.
void set_periods(SeasonHistory& history, const std::vector<std::int64_t>& periods);

// --- arrays ---------------------------------------------------------------------------------------

/// Inputs and targets beyond this are refused: the square of a difference must not overflow.
inline constexpr double LARGEST = 1e150;

using Floats = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, double>;
using Shape = std::vector<std::size_t>;

/// A new NumPy array of zeros.
Result new_array(const Shape& shape, double** data);

/// The same, written by fill(numbers).
template <class Fill>
Result filled(const Shape& shape, const Fill& fill) {
  double* data;
  Result result = new_array(shape, &data);
  fill(data);
  return result;
}

/// (n, width): row t is written by fill(t, row).
template <class Fill>
Result new_rows(std::size_t n, std::size_t width, const Fill& fill) {
  return filled({n, width}, [&](double* rows) {
    for (std::size_t t = 0; t < n; ++t) fill(t, rows + t * width);
  });
}

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

inline nb::any copied(const Array<double>& numbers) {
  return copied(numbers.data(), {numbers.size()});
}

/// Copy `size` numbers: a float, a (size,) array of float64, a list or tuple of numbers, or a dictionary
/// of numbers by their `names`, a list; false for anything else, which is left to the checks in Python.
bool read_row(nb::handle value, double* row, std::size_t size, nb::handle names = {});

template <class Array>
Shape shape_of(const Array& array) {
  Shape shape(array.ndim());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = array.shape(i);
  return shape;
}

/// Refuse an array of another shape: loops would leave it.
void require_shape(const char* name, const Shape& actual, const Shape& expected);
template <class Array>
void expect(const Array& array, const Shape& shape) {
  if (shape_of(array) != shape) throw std::invalid_argument("an array has another shape");
}

// --- settings -------------------------------------------------------------------------------------

Settings read_settings(const nb::dict& settings);
/// (name, statistic, constants, parts); statistic : (name, parameter, coordinates),
/// ("python", 0, coordinates, function to call, its name, the user's function, by which equal ones
/// are known), ("c_function", 0, coordinates, address), or None
KernelSpec read_kernel(nb::handle description, int dimension);
/// (name, parameters), ("python", value, derivative, name, curvature), or ("c_function", value,
/// derivative, curvature) with addresses
std::shared_ptr<const Loss> read_loss(nb::handle description);
/// (name, parameter), or None
std::optional<ShiftedLog> read_transform(nb::handle description);

/// A learner from a model in Python for each output: an object with value(x), learn(x, y, slope), norm(),
/// variance(x), copy(), `arrays`, the state by name, and `may_fail`.
Cloned<Learner> python_learner(const nb::list& models, const LearnerSpec& spec);
/// The models of such a learner; none of any other.
nb::list python_models(const Learner& learner);

/// The rule of output k: (name, settings), or None and for each output a rule of the user's, an object
/// with choose(evidence, weights), copy() and `arrays`, its state.
Cloned<Combiner> read_combiner(const nb::tuple& rule, int k, int slots, const Objective& objective);

template <class T>
T take(const nb::dict& settings, const char* name) {
  return nb::cast<T>(settings[name]);
}

// --- states ---------------------------------------------------------------------------------------

/// The state of an object as NumPy arrays by name.
nb::dict state_arrays(const std::vector<Entry>& entries);
void write_entries(const std::vector<Entry>& entries, const nb::dict& arrays);

/// Copies of all numbers that the object depends on.
template <class Object>
nb::dict state_arrays(Object& object) {
  return state_arrays(list_state(object));
}

/// Write arrays to an object. If they are refused the object is of no further use.
template <class Object>
void write_state(Object& object, const nb::dict& arrays) {
  write_entries(list_state(object), arrays);
  check_state(object);
}

/// An object with the settings that it was made of, so that it can be pickled.
template <class Object>
struct Saved : Object {
  Saved(nb::dict settings, Object object) : Object(std::move(object)), settings(std::move(settings)) {}
  nb::dict settings;
};

/// Bind an object that is made from settings by name; `make(settings)` returns it. It can be copied and
/// pickled, and has
///
///     state() -> dict of arrays;  object[name] -> one of them;
///     restore(arrays): refuses what does not fit, and changes nothing then.
template <class Object, Object (*make)(const nb::dict&)>
nb::class_<Saved<Object>> bind_object(nb::module_& m, const char* name) {
  using Self = Saved<Object>;
  const auto restore = [](Self& self, const nb::dict& arrays) {
    Object other(self);
    write_state(other, arrays);
    static_cast<Object&>(self) = std::move(other);
  };
  const auto copy = [](const Self& self) { return new Self(self); };
  return nb::class_<Self>(m, name)
      .def("__init__",
           [](Self* self, const nb::kwargs& settings) { new (self) Self(settings, make(settings)); })
      .def("state", [](Self& self) { return state_arrays<Object>(self); })
      .def("__getitem__",  // a copy of one of these arrays
           [](Self& self, const std::string& name) {
             for (const Entry& entry : list_state<Object>(self))
               if (entry.name == name) return nb::borrow<nb::any>(state_arrays({entry})[name.c_str()]);
             throw nb::key_error(name.c_str());
           })
      .def("restore", restore, nb::arg("arrays"))
      .def("copy", copy)
      .def("__deepcopy__", [copy](const Self& self, nb::handle) { return copy(self); },
           nb::arg("memo"))
      .def("__getstate__",
           [](Self& self) { return nb::make_tuple(self.settings, state_arrays<Object>(self)); })
      .def("__setstate__", [restore](Self& self, const nb::tuple& saved) {
        const auto settings = nb::cast<nb::dict>(saved[0]);
        new (&self) Self(settings, make(settings));
        restore(self, nb::cast<nb::dict>(saved[1]));
      });
}

}  // namespace kb
