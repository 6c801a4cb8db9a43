#include "python_parts.hpp"

#include <cmath>

namespace kb {

Result new_array(const Shape& shape, double** data) {
  std::size_t size = 1;
  for (std::size_t n : shape) size *= n;
  *data = new double[size]();
  nb::capsule owner(*data, [](void* p) noexcept { delete[] (double*)p; });
  return Result(*data, shape.size(), shape.data(), owner);
}

namespace {

/// What a user's function returned, as float64; refused unless it is real numbers of that shape.
Floats checked_result(const nb::object& value, const Shape& shape, const std::string& name) {
  nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(value);
  nb::list lengths;
  for (std::size_t n : shape) lengths.append(n);
  const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind.find_first_of("fiub") == std::string::npos || !array.attr("shape").equal(nb::tuple(lengths))) {
    nb::object text = nb::str("'{}' must return real numbers of shape {}; got {} of shape {}. Let it work on whole arrays.")
                          .attr("format")(name, nb::tuple(lengths), array.attr("dtype"), array.attr("shape"));
    throw nb::value_error(nb::cast<std::string>(text).c_str());
  }
  return nb::cast<Floats>(numpy.attr("ascontiguousarray")(array, "float64"));
}

/// A kernel k(X, Z) -> (n, m) as a statistic: called for one input and all terms at a time, so that
/// the shapes of a call do not depend on the lengths of blocks.
class PythonStatistic final : public Statistic {
 public:
  PythonStatistic(nb::object function, std::string name, std::vector<int> coordinates)
      : function_(std::move(function)),
        name_(std::move(name)),
        coordinates_(std::move(coordinates)) {}
  ~PythonStatistic() override {
    nb::gil_scoped_acquire gil;
    function_.reset();
  }
  bool may_fail() const override { return true; }
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    nb::gil_scoped_acquire gil;
    const std::size_t d = coordinates_.size();
    double *one, *others;
    Result X = new_array({1, d}, &one), Z = new_array({std::size_t(count), d}, &others);
    for (std::size_t k = 0; k < d; ++k) {
      one[k] = x[coordinates_[k]];
      for (int m = 0; m < count; ++m) others[m * d + k] = terms[coordinates_[k] * stride + m];
    }
    const Floats values = checked_result(function_(X, Z), {1, std::size_t(count)}, name_);
    std::copy_n(values.data(), count, out);
  }

 private:
  nb::object function_;
  std::string name_;
  std::vector<int> coordinates_;
};

/// A loss from two functions of predictions and targets (n, 4).
class PythonLoss final : public Loss {
 public:
  PythonLoss(nb::object value, nb::object derivative, std::string name, double curvature)
      : Loss(curvature),
        value_(std::move(value)),
        derivative_(std::move(derivative)),
        name_(std::move(name)) {}
  ~PythonLoss() override {
    nb::gil_scoped_acquire gil;
    value_.reset();
    derivative_.reset();
  }
  void values(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    call(value_, f, y, rows, out);
  }
  void derivatives(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    call(derivative_, f, y, rows, out);
  }
  bool in_python() const override { return true; }

 private:
  void call(const nb::object& function, const Lanes* f, const Lanes* y, int rows, Lanes* out) const {
    nb::gil_scoped_acquire gil;
    const Shape shape = {std::size_t(rows), WIDTH};
    const Floats values = checked_result(
        function(copied((const double*)f, shape), copied((const double*)y, shape)), shape, name_);
    std::copy_n(values.data(), values.size(), (double*)out);
  }
  nb::object value_, derivative_;
  std::string name_;
};

/// The arrays of an object's state in Python, listed where they are.
void visit_arrays(Archive& archive, const nb::object& owner) {
  nb::gil_scoped_acquire gil;
  for (auto [name, value] : nb::cast<nb::dict>(owner.attr("arrays"))) {
    auto array = nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(value);
    Shape shape;
    for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
    archive.numbers(nb::cast<std::string>(name).c_str(), array.data(), std::move(shape));
  }
}

/// Calls a model in Python, one sample at a time: one slot, in lane 0, and one output. The model is a
/// copy of its own: arrays of one that was sent by Ray cannot be written to.
class PythonLearner final : public Learner {
 public:
  PythonLearner(const nb::object& model, const LearnerSpec& spec)
      : model_(model.attr("copy")()),
        window_(spec.objective.window),
        loss_(spec.objective.losses[0]),
        point_(spec.dimension) {
    may_fail_ = nb::cast<bool>(model_.attr("may_fail"));
  }
  PythonLearner(const PythonLearner& other) : Learner(other) {
    nb::gil_scoped_acquire gil;
    model_ = other.model_.attr("copy")();
    window_ = other.window_;
    loss_ = other.loss_;
    point_ = other.point_;
    may_fail_ = other.may_fail_;
  }
  ~PythonLearner() override {
    nb::gil_scoped_acquire gil;
    model_.reset();
  }
  std::unique_ptr<Learner> clone() const override { return std::make_unique<PythonLearner>(*this); }
  void visit(Archive& archive) override { visit_arrays(archive, model_); }
  bool may_fail() const override { return may_fail_; }
  const nb::object& model() const { return model_; }
  void take_slot(int, Learner& source, int, bool) override { take(source); }
  void continue_from(Learner& narrower) override {
    Learner::continue_from(narrower);  // refuses arrays of other shapes
    take(narrower);
  }

  void learn(const Block& block, Record* record) override {
    nb::gil_scoped_acquire gil;
    const Samples& samples = block.samples;
    for (int t = 0; t < block.count; ++t) {
      const std::int64_t number = block.first + t;
      const double prediction = value(block.x(t)), target = block.targets[0][t][0];
      record->predictions[t] = Lanes(prediction, 0.0, 0.0, 0.0);
      if (!std::isnan(target))  // a sample without a target is not learned
        model_.attr("learn")(point(block.x(t)), target, loss_->derivative(prediction, target));
      const int newest = samples.place(number);
      for (int age = 0; age < std::min<std::int64_t>(number + 1, window_); ++age) {
        for (int k = 0; k < samples.dimension; ++k) point_[k] = samples.inputs(k)[newest - age];
        record->values[t + 1][window_ - 1 - age] = Lanes(value(point_.data()), 0.0, 0.0, 0.0);
      }
      record->norms[t + 1] = Lanes(nb::cast<double>(model_.attr("norm")()), 0.0, 0.0, 0.0);
    }
  }
  void predict(const Query& query, Lanes* out) override {
    nb::gil_scoped_acquire gil;
    *out = Lanes(value(query.x), 0.0, 0.0, 0.0);
  }
  void variance(const Query& query, Lanes* out, int) override {
    nb::gil_scoped_acquire gil;
    *out = Lanes(nb::cast<double>(model_.attr("variance")(point(query.x))), 0.0, 0.0, 0.0);
  }

 private:
  void take(Learner& other) {
    nb::gil_scoped_acquire gil;
    model_ = static_cast<PythonLearner&>(other).model_.attr("copy")();
  }
  /// A copy: a model that keeps x keeps this sample.
  nb::object point(const double* x) const { return copied(x, {point_.size()}); }
  double value(const double* x) const { return nb::cast<double>(model_.attr("value")(point(x))); }

  nb::object model_;
  int window_;
  std::shared_ptr<const Loss> loss_;
  std::vector<double> point_;
  bool may_fail_;
};

class PythonCombiner final : public Combiner {
 public:
  explicit PythonCombiner(nb::object rule) : rule_(std::move(rule)) {}
  PythonCombiner(const PythonCombiner& other) : Combiner(other) {
    nb::gil_scoped_acquire gil;
    rule_ = other.rule_.attr("copy")();
  }
  ~PythonCombiner() override {
    nb::gil_scoped_acquire gil;
    rule_.reset();
  }
  std::unique_ptr<Combiner> clone() const override {
    return std::make_unique<PythonCombiner>(*this);
  }
  void visit(Archive& archive) override { visit_arrays(archive, rule_); }
  bool may_fail() const override { return true; }

  void change_slots(Combiner& before, const SlotPlan& plan) override {
    nb::gil_scoped_acquire gil;
    nb::list kept, previous;
    for (std::size_t i = 0; i < plan.kept.size(); ++i) {
      if (plan.is_new(int(i)))
        kept.append(nb::none());
      else
        kept.append(plan.kept[i]);
      previous.append(plan.previous[i]);
    }
    rule_.attr("change_slots")(static_cast<PythonCombiner&>(before).rule_, kept, previous);
  }

  void choose(const Evidence& e, const double* weights, double* chosen) override {
    nb::gil_scoped_acquire gil;
    const std::size_t n = std::size_t(e.count), slots = std::size_t(e.slots);
    const Shape rows = {n, slots};
    nb::dict evidence;
    evidence["first"] = e.first;
    evidence["curvature"] = copied(e.curvature, rows);
    evidence["window_loss"] = copied(e.window_loss, rows);
    evidence["slot_cost"] = copied(e.slot_cost, rows);
    evidence["slot_loss"] = copied(e.slot_loss, rows);
    evidence["slot_predictions"] = copied(e.slot_predictions, rows);
    evidence["targets"] = copied(e.targets, {std::size_t(e.window - 1) + n});
    evidence["values"] = copied(e.values, {e.values ? n : 0, std::size_t(e.window), slots});
    const Floats weights_after =
        checked_result(rule_.attr("choose")(evidence, copied(weights, {slots})), rows, "combine");
    std::copy_n(weights_after.data(), n * slots, chosen);
  }

 private:
  nb::object rule_;
};

}  // namespace

std::shared_ptr<const Statistic> python_statistic(nb::object function, std::string name,
                                                  std::vector<int> coordinates) {
  return std::make_shared<PythonStatistic>(std::move(function), std::move(name),
                                           std::move(coordinates));
}

std::shared_ptr<const Loss> python_loss(nb::object value, nb::object derivative, std::string name,
                                        double curvature) {
  return std::make_shared<PythonLoss>(std::move(value), std::move(derivative), std::move(name),
                                      curvature);
}

std::unique_ptr<Learner> python_learner(const nb::list& models, const LearnerSpec& spec) {
  if (nb::len(models) == 1) return std::make_unique<PythonLearner>(models[0], spec);
  std::vector<Cloned<Learner>> parts;
  for (std::size_t k = 0; k < nb::len(models); ++k)
    parts.emplace_back(std::unique_ptr<Learner>(
        std::make_unique<PythonLearner>(models[k], spec.of_output(int(k)))));
  return std::make_unique<Separate>(std::move(parts));
}

nb::object python_models(const Learner& learner) {
  if (auto one = dynamic_cast<const PythonLearner*>(&learner)) {
    nb::list models;
    models.append(one->model());
    return models;
  }
  auto several = dynamic_cast<const Separate*>(&learner);
  if (!several || !dynamic_cast<const PythonLearner*>(&*several->parts()[0])) return nb::none();
  nb::list models;
  for (const Cloned<Learner>& part : several->parts())
    models.append(static_cast<const PythonLearner&>(*part).model());
  return models;
}

std::unique_ptr<Combiner> python_combiner(nb::object rule) {
  return std::make_unique<PythonCombiner>(std::move(rule));
}

}  // namespace kb
