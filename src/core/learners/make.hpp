// How learners are made, by their names in Python.
#pragma once
#include "../learner.hpp"
#include "../settings.hpp"

namespace kb {

/// What the learner of a pack is made for.
struct LearnerSpec {
  Settings settings;
  std::vector<KernelSpec> kernels;  // of its slots, up to four, of equal structure
  Objective objective;              // by which the slots learn; a loss for each output
  int dimension;                    // columns of the inputs
  std::int64_t first_sample;        // number of the first sample that is learned
  Statistics* statistics;           // of the bank's samples: numbers those of kernels on them

  /// The same for one of the outputs.
  LearnerSpec of_output(int k) const {
    LearnerSpec one = *this;
    one.objective.losses = {objective.losses[k]};
    return one;
  }
};

using MakeLearner = std::unique_ptr<Learner>(const LearnerSpec&);

/// A learner by its name; for one that shares nothing between outputs, a copy for each.
std::unique_ptr<Learner> make_learner(const std::string& name, const LearnerSpec& spec);

// One line for each learner; `Separate` ones are made for one output.
MakeLearner make_norma;
MakeLearner make_klms, make_knlms, make_qklms, make_polk, make_projectron, make_forgetron;
MakeLearner make_krls, make_sliding_window_krls, make_fixed_budget_krls, make_krls_tracker;
MakeLearner make_fourier_rls, make_fourier_sgd, make_linear_rls, make_nystrom_sgd;
MakeLearner make_last_value, make_nearest_neighbors, make_partition_tree;
MakeLearner make_remote;

}  // namespace kb
