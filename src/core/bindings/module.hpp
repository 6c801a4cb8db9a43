// The parts of the module that Python sees which are bound in files of their own.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

namespace kb {

void bind_auto(nanobind::module_& m);
void bind_bank(nanobind::module_& m);
void bind_models(nanobind::module_& m);

class ModelBank;
/// A KernelBank of Python, on rows of this width, as the bank of a model.
std::shared_ptr<ModelBank> model_bank(nanobind::handle bank, int width);

}  // namespace kb
