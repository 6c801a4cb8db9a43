// How combiners are made, by their names in Python.
#pragma once
#include "../combiner.hpp"
#include "../settings.hpp"

namespace kb {

/// What a combiner is made for: one output of a bank.
struct CombinerSpec {
  Settings settings;
  int slots, window;
  double regularization;
  std::shared_ptr<const Loss> loss;
};

using MakeCombiner = std::unique_ptr<Combiner>(const CombinerSpec&);

std::unique_ptr<Combiner> make_combiner(const std::string& name, const CombinerSpec& spec);

MakeCombiner make_best, make_fixed_share, make_hedge, make_joint, make_omkr, make_robust_stacking;
MakeCombiner make_simplex, make_stacking, make_uniform;

}  // namespace kb
