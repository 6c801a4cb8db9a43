#include "make.hpp"

namespace kb {

namespace {

struct Named {
  const char* name;
  MakeCombiner* make;
};

const Named COMBINERS[] = {
    {"Best", make_best},
    {"FixedShare", make_fixed_share},
    {"Hedge", make_hedge},
    {"Joint", make_joint},
    {"OMKR", make_omkr},
    {"RobustStacking", make_robust_stacking},
    {"Simplex", make_simplex},
    {"Stacking", make_stacking},
    {"Uniform", make_uniform},
};

}  // namespace

std::unique_ptr<Combiner> make_combiner(const std::string& name, const CombinerSpec& spec) {
  for (const Named& known : COMBINERS)
    if (name == known.name) return known.make(spec);
  throw std::invalid_argument("unknown combiner " + name);
}

}  // namespace kb
