#include "module.hpp"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  kb::bind_auto(m);
  kb::bind_bank(m);
  kb::bind_combiner(m);
  kb::bind_models(m);
  kb::bind_parts(m);
}
