#include "make.hpp"

namespace kb {

namespace {

struct Named {
  const char* name;
  MakeLearner* make;
  bool shares;  // whether one object has all outputs, and computes once what they have in common
};

const Named LEARNERS[] = {
    {"FixedBudgetKRLS", make_fixed_budget_krls, false},
    {"Forgetron", make_forgetron, false},
    {"FourierRLS", make_fourier_rls, true},
    {"FourierSGD", make_fourier_sgd, true},
    {"KLMS", make_klms, false},
    {"KNLMS", make_knlms, false},
    {"KRLS", make_krls, false},
    {"KRLSTracker", make_krls_tracker, false},
    {"LastValue", make_last_value, true},
    {"LinearRLS", make_linear_rls, true},
    {"NearestNeighborGP", make_nearest_neighbors, true},
    {"Norma", make_norma, true},
    {"NystromSGD", make_nystrom_sgd, false},
    {"PartitionTree", make_partition_tree, false},
    {"POLK", make_polk, false},
    {"Projectron", make_projectron, false},
    {"QKLMS", make_qklms, false},
    {"Remote", make_remote, true},
    {"SlidingWindowKRLS", make_sliding_window_krls, false},
};

}  // namespace

std::unique_ptr<Learner> make_learner(const std::string& name, const LearnerSpec& spec) {
  for (const Named& known : LEARNERS) {
    if (name != known.name) continue;
    const int outputs = spec.objective.outputs();
    if (known.shares || outputs == 1) return known.make(spec);
    std::vector<Cloned<Learner>> parts;
    for (int k = 0; k < outputs; ++k) parts.push_back(known.make(spec.of_output(k)));
    return std::make_unique<Separate>(std::move(parts));
  }
  throw std::invalid_argument("unknown learner " + name);
}

}  // namespace kb
