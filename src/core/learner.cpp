#include "learner.hpp"

#include <cmath>
#include <cstring>

namespace kb {

/// Pairs of entries with the same names; of the same shapes, or `wider` ones than those they go on from.
static void copy_state(Learner& to, Learner& from, bool wider, auto&& copy) {
  const std::vector<Entry> into = list_state(to), out_of = list_state(from);
  if (into.size() != out_of.size()) throw StateRefused("the learners differ");
  for (std::size_t i = 0; i < into.size(); ++i) {
    const Entry &target = into[i], &source = out_of[i];
    bool fits = target.name == source.name && target.kind == source.kind &&
                target.shape.size() == source.shape.size();
    for (std::size_t axis = 0; fits && axis < target.shape.size(); ++axis)
      fits = target.shape[axis] == source.shape[axis] ||
             (wider && target.shape[axis] > source.shape[axis]);
    if (!fits) throw StateRefused(target.name + " differs");
    copy(target, source);
  }
}

void Learner::continue_from(Learner& narrower) {
  copy_state(*this, narrower, true, [](const Entry& to, const Entry& from) {
    const std::size_t rows = from.shape.empty() ? 1 : from.shape[0];
    if (from.bytes() == 0) return;
    const std::size_t width = to.bytes() / (to.shape.empty() ? 1 : to.shape[0]);
    const std::size_t before = from.bytes() / rows;
    for (std::size_t i = 0; i < rows; ++i)
      copy_sparse((char*)to.numbers + i * width, (char*)from.numbers + i * before, before);
  });
}

void Learner::start_from(const Matrix<double>&, const Array<Lanes>&, Record*) {
  throw std::logic_error("this learner starts at 0");
}

bool Learner::shares_with(Learner& other) {
  bool same = true;
  copy_state(*this, other, false, [&](const Entry& entry, const Entry& theirs) {
    if (!entry.lanes) same = same && std::memcmp(entry.numbers, theirs.numbers, entry.bytes()) == 0;
  });
  return same;
}

void Learner::take_slot(int to, Learner& source, int from, bool shared) {
  copy_state(*this, source, false, [=](const Entry& into, const Entry& out_of) {
    if (!into.lanes) {
      if (shared) copy_sparse(into.numbers, out_of.numbers, out_of.bytes());
      return;
    }
    double* a = static_cast<double*>(into.numbers);
    const double* b = static_cast<const double*>(out_of.numbers);
    for (std::size_t i = 0; i < into.count(); i += WIDTH) a[i + to] = b[i + from];
  });
}

// --- initial functions ---------------------------------------------------------------------------

Matrix<Lanes> gram_matrix(const std::vector<KernelSpec>& kernels, const Matrix<double>& points) {
  const int m = points.rows(), dimension = points.columns();
  Matrix<double> terms(dimension, m);
  for (int j = 0; j < m; ++j)
    for (int k = 0; k < dimension; ++k) terms[k][j] = points[j][k];
  Matrix<Lanes> gram(m, m);
  TermKernel kernel(kernels);
  for (int i = 0; i < m; ++i) kernel.write(points[i], terms[0], std::size_t(m), m, gram[i]);
  return gram;
}

Lanes expansion_norm(const Array<Lanes>& coefficients, const Matrix<Lanes>& gram) {
  ExactLanes total;
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    for (std::size_t j = 0; j < coefficients.size(); ++j)
      total.add(coefficients[i] * coefficients[j] * gram[int(i)][j]);
  const Lanes norm = total.value();
  return where_less(norm, 0.0, 0.0, norm);
}

// --- learners whose f is computed at every point ---------------------------------------------------

void PointLearner::learn(const Block& block, Record* records) {
  Record& record = records[0];
  const Samples& samples = block.samples;
  for (int t = 0; t < block.count; ++t) {
    const std::int64_t number = block.first + t;
    const double *x = block.x(t), target = block.targets[0][t][0];
    double value = samples.uses_query ? value_ : value_at(x);  // all is as the query left it
    record.predictions[t] = first_lane(value);
    if (!std::isnan(target)) value = learn_target(number, x, value, target);
    // f on the window, oldest first; 0 before the first sample.
    Lanes* newest = record.values[t + 1] + window_ - 1;
    newest[0] = first_lane(value);
    for (int age = 1; age < window_; ++age) {
      const int position = samples.place(number) - age;
      for (int k = 0; k < samples.dimension; ++k) point_[k] = samples.inputs(k)[position];
      newest[-age] = first_lane(age <= number ? value_at(point_.data()) : 0.0);
    }
    record.norms[t + 1] = first_lane(norm());
  }
}

// --- learners by name ----------------------------------------------------------------------------

Cloned<Learner> make_learner(const std::string& name, const LearnerSpec& spec) {
  if (name == "Remote") return make<Remote>(spec);
  for (const auto& family :
       {boosted_trees_family(), feature_family(), gradients_on_centres_family(),
        last_value_family(), least_squares_on_centres_family(), least_squares_on_features_family(),
        nearest_neighbors_family(), norma_family(), partition_tree_family()})
    for (const NamedLearner& kind : family) {
      if (name != kind.name) continue;
      const int outputs = spec.objective.outputs();
      if (kind.shares || outputs == 1) return kind.make(spec);
      std::vector<Cloned<Learner>> parts;
      for (int k = 0; k < outputs; ++k) parts.push_back(kind.make(spec.of_output(k)));
      return std::make_unique<Separate>(std::move(parts));
    }
  throw std::invalid_argument("unknown learner " + name);
}

}  // namespace kb
