#include "state.hpp"

#include <cstring>

namespace kb {

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
