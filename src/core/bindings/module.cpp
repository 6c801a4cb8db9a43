#include "module.hpp"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  kb::bind_bank(m);
  kb::bind_parts(m);
}
