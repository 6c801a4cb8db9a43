// kernelbank._processor: `level` of this x86-64 processor, as the System V ABI names them: 3 has AVX2
// and FMA, 2 has SSE4.2. A module of its own, which every processor can run, so that only one of the
// large modules is ever loaded. With KB_PROGRAM a program that exits with the level: asked by CMake.
#if !defined(KB_PROGRAM)
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#endif
#include <cpuid.h>

static int processor_level() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 1;
  constexpr unsigned SSE3 = 1u << 0, SSSE3 = 1u << 9, CX16 = 1u << 13, SSE41 = 1u << 19,
                     SSE42 = 1u << 20, POPCNT = 1u << 23;
  constexpr unsigned V2 = SSE3 | SSSE3 | CX16 | SSE41 | SSE42 | POPCNT;
  if ((c & V2) != V2) return 1;
  constexpr unsigned FMA = 1u << 12, MOVBE = 1u << 22, OSXSAVE = 1u << 27, AVX = 1u << 28,
                     F16C = 1u << 29;
  constexpr unsigned V3 = FMA | MOVBE | OSXSAVE | AVX | F16C;
  if ((c & V3) != V3) return 2;
  unsigned low, high;  // does the system keep the wide registers?
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 6) != 6) return 2;
  constexpr unsigned BMI1 = 1u << 3, AVX2 = 1u << 5, BMI2 = 1u << 8, LZCNT = 1u << 5;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & (BMI1 | AVX2 | BMI2)) != (BMI1 | AVX2 | BMI2))
    return 2;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & LZCNT) ? 3 : 2;
}

#if defined(KB_PROGRAM)
int main() { return processor_level(); }
#else
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", "The level of this x86-64 processor.", -1,
    nullptr, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__processor() {
  PyObject* module = PyModule_Create(&definition);
  if (module && PyModule_AddIntConstant(module, "level", processor_level()) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
#endif
