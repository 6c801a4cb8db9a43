#include "convert.hpp"

#include <nanobind/stl/vector.h>

#include <cstring>

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

static StatisticSpec read_statistic(nb::handle given, int dimension) {
  StatisticSpec spec;
  if (given.is_none()) return spec;
  auto items = nb::cast<nb::tuple>(given);
  spec.name = nb::cast<std::string>(items[0]);
  spec.parameter = nb::cast<double>(items[1]);
  spec.coordinates = nb::cast<std::vector<int>>(items[2]);
  for (int k : spec.coordinates)
    if (k < 0 || k >= dimension) throw nb::value_error("a kernel on a coordinate that is missing");
  if (spec.name == "python") {
    spec.custom =
        python_statistic(items[3], nb::cast<std::string>(items[4]), spec.coordinates);
    spec.identity = nb::object(items[5]).ptr();
  } else if (spec.name == "c_function") {
    spec.identity = (const void*)nb::cast<std::uintptr_t>(items[3]);
  }
  return spec;
}

KernelSpec read_kernel(nb::handle given, int dimension) {
  auto items = nb::cast<nb::tuple>(given);
  KernelSpec spec;
  spec.name = nb::cast<std::string>(items[0]);
  spec.statistic = read_statistic(items[1], dimension);
  spec.constants = nb::cast<std::vector<double>>(items[2]);
  for (nb::handle part : items[3]) spec.parts.push_back(read_kernel(part, dimension));
  return spec;
}

std::shared_ptr<const Loss> read_loss(nb::handle given) {
  auto items = nb::cast<nb::tuple>(given);
  const std::string name = nb::cast<std::string>(items[0]);
  if (name == "python")
    return python_loss(items[1], items[2], nb::cast<std::string>(items[3]),
                       nb::cast<double>(items[4]));
  if (name == "c_function")
    return make_loss((LossFunction)nb::cast<std::uintptr_t>(items[1]),
                     (LossFunction)nb::cast<std::uintptr_t>(items[2]), nb::cast<double>(items[3]));
  return make_loss(name, nb::cast<std::vector<double>>(items[1]));
}

std::shared_ptr<const Transform> read_transform(nb::handle given) {
  if (given.is_none()) return nullptr;
  auto items = nb::cast<nb::tuple>(given);
  if (nb::cast<std::string>(items[0]) != "ShiftedLog") throw nb::value_error("unknown transform");
  return std::make_shared<ShiftedLog>(nb::cast<double>(items[1]));
}

// --- states ---------------------------------------------------------------------------------------

nb::dict state_arrays(const std::vector<Entry>& entries) {
  nb::dict arrays;
  for (const Entry& entry : entries) {
    const char* name = entry.name.c_str();
    if (entry.kind == Number::float64)
      arrays[name] = copied((const double*)entry.numbers, entry.shape);
    else if (entry.kind == Number::float32)
      arrays[name] = copied((const float*)entry.numbers, entry.shape);
    else
      arrays[name] = copied((const std::int64_t*)entry.numbers, entry.shape);
  }
  return arrays;
}

static void write_entry(const Entry& entry, nb::handle given) {
  auto array = nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(given);
  const nb::dlpack::dtype type = entry.kind == Number::float64   ? nb::dtype<double>()
                                 : entry.kind == Number::float32 ? nb::dtype<float>()
                                                                 : nb::dtype<std::int64_t>();
  bool fits = array.dtype() == type && array.ndim() == entry.shape.size();
  for (std::size_t i = 0; fits && i < entry.shape.size(); ++i)
    fits = array.shape(i) == entry.shape[i];
  if (!fits) throw StateRefused(entry.name + " has another shape or type");
  if (entry.bytes() > 0) std::memcpy(entry.numbers, array.data(), entry.bytes());
}

void write_entries(const std::vector<Entry>& entries, const nb::dict& arrays) {
  if (entries.size() != arrays.size()) throw StateRefused("it has other arrays");
  for (const Entry& entry : entries) {
    if (!arrays.contains(entry.name.c_str())) throw StateRefused("it has no " + entry.name);
    write_entry(entry, arrays[entry.name.c_str()]);
  }
}

}  // namespace kb
