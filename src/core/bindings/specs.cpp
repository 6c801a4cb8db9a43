#include "specs.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace kb {

Settings read_settings(const nb::dict& given) {
  Settings settings;
  for (auto [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (nb::isinstance<nb::str>(value))
      settings.words[name] = nb::cast<std::string>(value);
    else if (nb::isinstance<nb::bool_>(value) || nb::isinstance<nb::int_>(value) ||
             nb::isinstance<nb::float_>(value))
      settings.numbers[name] = nb::cast<double>(nb::float_(value));
    else if (nb::ndarray_check(value)) {
      auto array = nb::cast<Floats>(value);
      settings.arrays[name] = Array<double>(array.data(), array.data() + array.size());
    } else
      throw nb::type_error(("a setting of an unknown type: " + name).c_str());
  }
  return settings;
}

/// (name, parameter, coordinates, function or address), or None
static StatisticSpec read_statistic(nb::handle given) {
  StatisticSpec spec;
  if (given.is_none()) return spec;
  auto items = nb::cast<nb::tuple>(given);
  spec.name = nb::cast<std::string>(items[0]);
  spec.parameter = nb::cast<double>(items[1]);
  spec.coordinates = nb::cast<std::vector<int>>(items[2]);
  if (spec.name == "python") {
    nb::object function = items[3];
    spec.identity = function.ptr();
    spec.custom =
        python_statistic(function, nb::cast<std::string>(items[4]), spec.coordinates);
  } else if (spec.name == "c_function") {
    spec.identity = (const void*)nb::cast<std::uintptr_t>(items[3]);
  }
  return spec;
}

KernelSpec read_kernel(nb::handle given) {
  auto items = nb::cast<nb::tuple>(given);
  KernelSpec spec;
  spec.name = nb::cast<std::string>(items[0]);
  spec.statistic = read_statistic(items[1]);
  spec.constants = nb::cast<std::vector<double>>(items[2]);
  for (nb::handle part : items[3]) spec.parts.push_back(read_kernel(part));
  return spec;
}

std::shared_ptr<const Loss> read_loss(nb::handle given) {
  auto items = nb::cast<nb::tuple>(given);
  const std::string name = nb::cast<std::string>(items[0]);
  if (name == "python")
    return python_loss(items[1], items[2], nb::cast<std::string>(items[3]),
                       nb::cast<double>(items[4]));
  return make_loss(name, nb::cast<std::vector<double>>(items[1]));
}

std::shared_ptr<const Transform> read_transform(nb::handle given) {
  if (given.is_none()) return nullptr;
  auto items = nb::cast<nb::tuple>(given);
  if (nb::cast<std::string>(items[0]) != "ShiftedLog") throw nb::value_error("unknown transform");
  return std::make_shared<ShiftedLog>(nb::cast<double>(items[1]));
}

}  // namespace kb
