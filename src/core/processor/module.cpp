// kernelbank._processor: `level` of this x86-64 processor. A module of its own, which every
// processor can run, so that only one of the large modules is ever loaded.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "level.hpp"

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", "The level of this x86-64 processor.", -1,
    nullptr, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__processor() {
  PyObject* module = PyModule_Create(&definition);
  if (module && PyModule_AddIntConstant(module, "level", kb::processor_level()) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
