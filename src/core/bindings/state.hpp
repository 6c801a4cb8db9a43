// The state of an object of the core as NumPy arrays by name, and objects that Python holds with it.
#pragma once
#include <nanobind/stl/string.h>

#include "python_parts.hpp"

namespace kb {

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
