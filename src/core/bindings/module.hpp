// The parts of the module that Python sees; each is bound in the file of its name.
#pragma once
#include <nanobind/nanobind.h>

namespace kb {

void bind_auto(nanobind::module_& m);
void bind_combiner(nanobind::module_& m);
void bind_bank(nanobind::module_& m);
void bind_parts(nanobind::module_& m);

}  // namespace kb
