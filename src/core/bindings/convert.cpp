#include "convert.hpp"

#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstring>

namespace kb {

Result new_array(const Shape& shape, double** data) {
  std::size_t size = 1;
  for (std::size_t n : shape) size *= n;
  *data = new double[size]();
  nb::capsule owner(*data, [](void* p) noexcept { delete[] (double*)p; });
  return Result(*data, shape.size(), shape.data(), owner);
}

/// A float or a whole number; none of another type, such as a boolean.
static bool read_number(PyObject* value, double& number) {
  if (!value || !(PyFloat_Check(value) || PyLong_CheckExact(value))) return false;
  number = PyFloat_AsDouble(value);
  if (number != -1.0 || !PyErr_Occurred()) return true;
  PyErr_Clear();  // beyond all floats
  return false;
}

bool read_row(nb::handle value, double* row, std::size_t size, nb::handle names) {
  PyObject* object = value.ptr();
  const auto length = Py_ssize_t(size);
  if (PyFloat_Check(object)) return size == 1 && read_number(object, *row);
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) {
    const bool is_list = PyList_CheckExact(object);
    if (PySequence_Size(object) != length) return false;
    for (Py_ssize_t i = 0; i < length; ++i)
      if (!read_number(is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i), row[i]))
        return false;
    return true;
  }
  if (PyDict_CheckExact(object)) {
    if (!names.is_valid() || names.is_none() || PyDict_Size(object) != length ||
        PyList_Size(names.ptr()) != length)
      return false;
    for (Py_ssize_t i = 0; i < length; ++i)
      if (!read_number(PyDict_GetItem(object, PyList_GetItem(names.ptr(), i)), row[i])) return false;
    return true;
  }
  // No subclass: that of masked arrays has entries that are no numbers.
  static const nb::handle plain =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release();
  if (!value.type().is(plain)) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // such as one of times
    return false;
  }
  const bool fits = view.ndim == 1 && view.shape[0] == length && std::strcmp(view.format, "d") == 0;
  const char* numbers = static_cast<const char*>(view.buf);
  for (Py_ssize_t i = 0; fits && i < length; ++i)
    std::memcpy(&row[i], numbers + i * view.strides[0], sizeof(double));
  PyBuffer_Release(&view);
  return fits;
}

void require_shape(const char* name, const Shape& actual, const Shape& expected) {
  if (actual == expected) return;
  const auto text = [](const Shape& shape) {
    std::string all;
    for (std::size_t n : shape) all += (all.empty() ? "" : ", ") + std::to_string(n);
    return "(" + all + ")";
  };
  throw nb::value_error(
      (std::string(name) + " has shape " + text(actual) + ", not " + text(expected)).c_str());
}

namespace {

// --- what a user writes in Python: the core calls it ----------------------------------------------

/// An object of Python's that threads of the core may hold. A copy is a copy of the object.
class PythonObject {
 public:
  explicit PythonObject(nb::object object) : object_(std::move(object)) {}
  PythonObject(const PythonObject& other) {
    nb::gil_scoped_acquire gil;
    object_ = other.object_.attr("copy")();
  }
  PythonObject(PythonObject&&) = default;
  PythonObject& operator=(PythonObject other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PythonObject() {
    if (!object_.is_valid()) return;
    nb::gil_scoped_acquire gil;
    object_.reset();
  }
  const nb::object& operator*() const { return object_; }
  auto attr(const char* name) const { return object_.attr(name); }

 private:
  nb::object object_;
};

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
  bool may_fail() const override { return true; }
  void write(const double* x, const double* terms, std::size_t stride, int count,
             double* out) const override {
    nb::gil_scoped_acquire gil;
    const std::size_t d = coordinates_.size();
    const Result X = new_rows(1, d, [&](std::size_t, double* row) {
      for (std::size_t k = 0; k < d; ++k) row[k] = x[coordinates_[k]];
    });
    const Result Z = new_rows(count, d, [&](std::size_t m, double* row) {
      for (std::size_t k = 0; k < d; ++k) row[k] = terms[coordinates_[k] * stride + m];
    });
    const Floats values = checked_result((*function_)(X, Z), {1, std::size_t(count)}, name_);
    std::copy_n(values.data(), count, out);
  }

 private:
  PythonObject function_;
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
  void values(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    call(*value_, f, y, rows, out);
  }
  void derivatives(const Lanes* f, const Lanes* y, int rows, Lanes* out) const override {
    call(*derivative_, f, y, rows, out);
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
  PythonObject value_, derivative_;
  std::string name_;
};

/// The arrays of an object's state in Python, listed where they are.
void visit_arrays(Archive& archive, const PythonObject& owner) {
  nb::gil_scoped_acquire gil;
  for (auto [name, value] : nb::cast<nb::dict>(owner.attr("arrays"))) {
    auto array = nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(value);
    archive.numbers(nb::cast<std::string>(name).c_str(), array.data(), shape_of(array));
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
        point_(spec.dimension),
        may_fail_(nb::cast<bool>(model_.attr("may_fail"))) {}
  void visit(Archive& archive) override { visit_arrays(archive, model_); }
  bool may_fail() const override { return may_fail_; }
  const nb::object& model() const { return *model_; }
  void take_slot(int, Learner& source, int, bool) override { take(source); }
  void continue_from(Learner& narrower) override {
    shares_with(narrower);  // refuses arrays of other shapes
    take(narrower);
  }

  void learn(const Block& block, Record* record) override {
    nb::gil_scoped_acquire gil;
    const Samples& samples = block.samples;
    for (int t = 0; t < block.count; ++t) {
      const std::int64_t number = block.first + t;
      const double prediction = value(block.x(t)), target = block.targets[0][t][0];
      record->predictions[t] = first_lane(prediction);
      if (!std::isnan(target))  // a sample without a target is not learned
        model_.attr("learn")(point(block.x(t)), target, loss_->derivative(prediction, target));
      const int newest = samples.place(number);
      for (int age = 0; age < std::min<std::int64_t>(number + 1, window_); ++age) {
        for (int k = 0; k < samples.dimension; ++k) point_[k] = samples.inputs(k)[newest - age];
        record->values[t + 1][window_ - 1 - age] = first_lane(value(point_.data()));
      }
      record->norms[t + 1] = first_lane(nb::cast<double>(model_.attr("norm")()));
    }
  }
  void predict(const Query& query, Lanes* out) override {
    nb::gil_scoped_acquire gil;
    *out = first_lane(value(query.x));
  }
  void variance(const Query& query, Lanes* out, int) override {
    nb::gil_scoped_acquire gil;
    *out = first_lane(nb::cast<double>(model_.attr("variance")(point(query.x))));
  }

 private:
  void take(Learner& other) { model_ = PythonObject(static_cast<PythonLearner&>(other).model_); }
  /// A copy: a model that keeps x keeps this sample.
  nb::object point(const double* x) const { return copied(x, {point_.size()}); }
  double value(const double* x) const { return nb::cast<double>(model_.attr("value")(point(x))); }

  PythonObject model_;
  int window_;
  std::shared_ptr<const Loss> loss_;
  std::vector<double> point_;
  bool may_fail_;
};

class PythonCombiner final : public Combiner {
 public:
  PythonCombiner(const CombinerSpec& spec, nb::object rule)
      : Combiner(spec), rule_(std::move(rule)) {}
  void visit(Archive& archive) override { visit_arrays(archive, rule_); }
  bool may_fail() const override { return true; }

  void change_slots(Combiner& before, const SlotPlan& plan) override {
    nb::gil_scoped_acquire gil;
    nb::list sources, previous;
    for (std::size_t i = 0; i < plan.continued.size(); ++i) {
      sources.append(plan.is_new(int(i)) ? nb::none() : nb::object(nb::int_(plan.continued[i])));
      previous.append(plan.previous[i]);
    }
    rule_.attr("change_slots")(*static_cast<PythonCombiner&>(before).rule_, sources, previous);
  }

  void choose(const Evidence&, const double*, double*) override {}  // only whole blocks
  void choose_block(const EvidenceBlock& e, const double* weights, double* chosen) override {
    nb::gil_scoped_acquire gil;
    const std::size_t n = std::size_t(e.count), slots = std::size_t(e.slots);
    nb::dict evidence;
    evidence["first"] = e.first;
    for (int i = 0; i < EvidenceBlock::ROWS; ++i)
      evidence[EvidenceBlock::NAMES[i]] = copied(e.rows[i], {n, slots});
    evidence["targets"] = copied(e.targets, {std::size_t(e.window - 1) + n});
    evidence["values"] = copied(e.values, {e.values ? n : 0, std::size_t(e.window), slots});
    const Floats weights_after = checked_result(
        rule_.attr("choose")(evidence, copied(weights, {slots})), {n, slots}, "combine");
    std::copy_n(weights_after.data(), n * slots, chosen);
  }

 private:
  PythonObject rule_;
};

// --- settings -------------------------------------------------------------------------------------

template <class T>
T item(const nb::tuple& items, int i) {
  return nb::cast<T>(items[i]);
}

StatisticSpec read_statistic(nb::handle description, int dimension) {
  StatisticSpec spec;
  if (description.is_none()) return spec;
  const auto items = nb::cast<nb::tuple>(description);
  spec.name = item<std::string>(items, 0);
  spec.parameter = item<double>(items, 1);
  spec.coordinates = item<std::vector<int>>(items, 2);
  for (int k : spec.coordinates)
    if (k < 0 || k >= dimension) throw nb::value_error("a kernel on a coordinate that is missing");
  if (spec.name == "python") {
    spec.custom = std::make_shared<PythonStatistic>(items[3], item<std::string>(items, 4),
                                                    spec.coordinates);
    spec.identity = nb::object(items[5]).ptr();
  } else if (spec.name == "c_function") {
    spec.identity = (const void*)item<std::uintptr_t>(items, 3);
  }
  return spec;
}

}  // namespace

Settings read_settings(const nb::dict& values) {
  Settings settings;
  for (auto [key, value] : values) {
    const std::string name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (nb::isinstance<nb::str>(value))
      settings.words[name] = nb::cast<std::string>(value);
    else if (nb::isinstance<nb::bool_>(value) || nb::isinstance<nb::int_>(value) ||
             nb::isinstance<nb::float_>(value))
      settings.numbers[name] = nb::cast<double>(nb::float_(value));
    else if (nb::ndarray_check(value)) {
      auto array = nb::cast<Floats>(value);
      settings.arrays[name] = Array<double>(array.data(), array.data() + array.size());
    } else
      throw nb::type_error(("a setting of an unknown type: " + name).c_str());
  }
  return settings;
}

KernelSpec read_kernel(nb::handle description, int dimension) {
  const auto items = nb::cast<nb::tuple>(description);
  KernelSpec spec{item<std::string>(items, 0), read_statistic(items[1], dimension),
                  item<std::vector<double>>(items, 2), {}};
  for (nb::handle part : items[3]) spec.parts.push_back(read_kernel(part, dimension));
  return spec;
}

std::shared_ptr<const Loss> read_loss(nb::handle description) {
  const auto items = nb::cast<nb::tuple>(description);
  const auto name = item<std::string>(items, 0);
  const auto function = [&](int i) { return (LossFunction)item<std::uintptr_t>(items, i); };
  if (name == "python")
    return std::make_shared<PythonLoss>(items[1], items[2], item<std::string>(items, 3),
                                        item<double>(items, 4));
  if (name == "c_function") return make_loss(function(1), function(2), item<double>(items, 3));
  return make_loss(name, item<std::vector<double>>(items, 1));
}

std::optional<ShiftedLog> read_transform(nb::handle description) {
  if (description.is_none()) return {};
  const auto items = nb::cast<nb::tuple>(description);
  if (item<std::string>(items, 0) != "ShiftedLog") throw nb::value_error("unknown transform");
  return ShiftedLog{item<double>(items, 1)};
}

Cloned<Learner> python_learner(const nb::list& models, const LearnerSpec& spec) {
  if (nb::len(models) == 1) return std::make_unique<PythonLearner>(models[0], spec);
  std::vector<Cloned<Learner>> parts;
  for (std::size_t k = 0; k < nb::len(models); ++k)
    parts.emplace_back(std::make_unique<PythonLearner>(models[k], spec.of_output(int(k))));
  return std::make_unique<Separate>(std::move(parts));
}

nb::list python_models(const Learner& learner) {
  nb::list models;
  const auto add = [&](const Learner& part) {
    if (const auto* python = dynamic_cast<const PythonLearner*>(&part)) models.append(python->model());
  };
  add(learner);
  if (const auto* separate = dynamic_cast<const Separate*>(&learner))
    for (const Cloned<Learner>& part : separate->parts()) add(*part);
  return models;
}

Cloned<Combiner> read_combiner(const nb::tuple& rule, int k, int slots, const Objective& objective) {
  CombinerSpec spec{{}, slots, objective.window, objective.regularization, objective.losses[k]};
  if (rule[0].is_none())
    return std::make_unique<PythonCombiner>(spec, nb::object(nb::cast<nb::list>(rule[1])[k]));
  spec.settings = read_settings(item<nb::dict>(rule, 1));
  return make_combiner(item<std::string>(rule, 0), spec);
}

// --- states ---------------------------------------------------------------------------------------

/// action(numbers) with the numbers of an entry, as a pointer to their type.
template <class Action>
static auto with_numbers(const Entry& entry, Action action) {
  if (entry.kind == Number::float64) return action((double*)entry.numbers);
  if (entry.kind == Number::float32) return action((float*)entry.numbers);
  if (entry.kind == Number::int32) return action((std::int32_t*)entry.numbers);
  return action((std::int64_t*)entry.numbers);
}

nb::dict state_arrays(const std::vector<Entry>& entries) {
  nb::dict arrays;
  for (const Entry& entry : entries)
    arrays[entry.name.c_str()] =
        with_numbers(entry, [&](auto* numbers) { return copied(numbers, entry.shape); });
  return arrays;
}

void write_entries(const std::vector<Entry>& entries, const nb::dict& arrays) {
  if (entries.size() != arrays.size()) throw StateRefused("it has other arrays");
  for (const Entry& entry : entries) {
    const char* name = entry.name.c_str();
    if (!arrays.contains(name)) throw StateRefused("it has no " + entry.name);
    const auto array = nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(arrays[name]);
    with_numbers(entry, [&]<class T>(T* numbers) {
      if (array.dtype() != nb::dtype<T>() || shape_of(array) != entry.shape)
        throw StateRefused(entry.name + " has another shape or type");
      copy_sparse(numbers, array.data(), entry.bytes());
    });
  }
}

}  // namespace kb
