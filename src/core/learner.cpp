#include "learner.hpp"

#include <cstring>

namespace kb {

/// Pairs of entries with the same names and shapes.
static void copy_state(std::vector<Entry> to, const std::vector<Entry>& from, auto&& copy) {
  if (to.size() != from.size()) throw StateRefused("the learners differ");
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].name != from[i].name || to[i].shape != from[i].shape || to[i].kind != from[i].kind)
      throw StateRefused(to[i].name + " differs");
    copy(to[i], from[i]);
  }
}

void Learner::continue_from(Learner& narrower) {
  copy_state(list_state(*this), list_state(narrower), [](Entry& to, const Entry& from) {
    std::memcpy(to.numbers, from.numbers, from.bytes());
  });
}

void Learner::start_from(const Matrix<double>&, const Array<Lanes>&, Record*) {
  throw std::logic_error("this learner starts at 0");
}

bool Learner::shares_with(Learner& other) {
  bool same = true;
  copy_state(list_state(*this), list_state(other), [&](Entry& one, const Entry& two) {
    if (!one.lanes) same = same && std::memcmp(one.numbers, two.numbers, one.bytes()) == 0;
  });
  return same;
}

void Learner::take_slot(int to, Learner& source, int from, bool shared) {
  copy_state(list_state(*this), list_state(source), [=](Entry& into, const Entry& out_of) {
    if (!into.lanes) {
      if (shared) std::memcpy(into.numbers, out_of.numbers, out_of.bytes());
      return;
    }
    double* a = static_cast<double*>(into.numbers);
    const double* b = static_cast<const double*>(out_of.numbers);
    for (std::size_t i = 0; i < into.count(); i += WIDTH) a[i + to] = b[i + from];
  });
}

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
