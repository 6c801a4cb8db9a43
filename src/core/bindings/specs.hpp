// Settings from Python, as dicts and tuples, to what the core makes its objects of.
#pragma once
#include "python_parts.hpp"

namespace kb {

Settings read_settings(const nb::dict& given);
/// (name, statistic, constants, parts); statistic : (name, parameter, coordinates),
/// ("python", 0, coordinates, function to call, its name, the user's function, by which equal ones
/// are known), ("c_function", 0, coordinates, address), or None
KernelSpec read_kernel(nb::handle given, int dimension);
/// (name, parameters), ("python", value, derivative, name, curvature), or ("c_function", value,
/// derivative, curvature) with addresses
std::shared_ptr<const Loss> read_loss(nb::handle given);
/// (name, parameter), or None
std::shared_ptr<const Transform> read_transform(nb::handle given);

template <class T>
T take(const nb::dict& given, const char* name) {
  return nb::cast<T>(given[name]);
}

}  // namespace kb
