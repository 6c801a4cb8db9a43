// A bank as Python sees it: results leave as arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <atomic>
#include <climits>
#include <cmath>
#include <mutex>

#include "../auto/prediction.hpp"
#include "../bank.hpp"
#include "convert.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

[[noreturn]] void raise(const char* error, const char* message) {
  const nb::object type = nb::module_::import_("kernelbank.errors").attr(error);
  PyErr_SetString(type.ptr(), message);
  throw nb::python_error();
}

/// How many forks this process descends from: in a child the threads of its parent do not exist.
std::atomic<int> forks{0};

/// Whose turn it is: others wait for it. A copy has turns of its own.
struct Turns {
  Turns() = default;
  Turns(const Turns&) {}
  std::mutex mutex;
  std::atomic<int> process{0};  // `forks` of the one whose turn it is
};

/// One caller at a time: others wait, without the interpreter's lock; a call from inside is refused.
class Turn {
 public:
  explicit Turn(Turns& turns) : turns_(turns), here_{&turns, inside} {
    for (const Inside* outer = inside; outer; outer = outer->outer)
      if (outer->object == &turns)
        raise("KernelBankError",
              "A function that a bank calls has called the same bank. Let kernels, losses, learners "
              "and combiners depend on their arguments only.");
    if (!turns_.mutex.try_lock()) {
      if (turns_.process != forks)
        raise("HalfLearned",
              "This bank cannot be used any more: the process was forked while another thread was "
              "using it. Load it from a file with kb.load, or make a new one and learn the stream "
              "again.");
      nb::gil_scoped_release unlocked;
      turns_.mutex.lock();
    }
    turns_.process = forks.load();
    inside = &here_;
  }
  Turn(const Turn&) = delete;
  ~Turn() {
    inside = here_.outer;
    turns_.mutex.unlock();
  }

 private:
  Turns& turns_;
  const Inside here_;
};

/// How many of something there are, at least one, and so few that twice as many is a number too:
/// parts add to it before the bank compares them.
static int take_count(const nb::dict& settings, const char* name) {
  const int number = take<int>(settings, name);
  if (number < 1 || number > INT_MAX / 2)
    throw std::invalid_argument(std::string(name) + " is out of range");
  return number;
}

/// A bank from its description in Python (`kernelbank.bank`).
Cloned<Bank> make_bank(const nb::dict& description) {
  BankSpec spec{};
  spec.objective.window = take_count(description, "window");
  spec.objective.regularization = take<double>(description, "regularization");
  for (nb::handle loss : description["losses"]) spec.objective.losses.push_back(read_loss(loss));
  spec.dimension = take_count(description, "dimension");
  spec.slots = take_count(description, "slots");
  spec.block = take_count(description, "block");
  spec.threads = take_count(description, "threads");
  spec.on_simplex = take<bool>(description, "on_simplex");
  spec.needs_values = take<bool>(description, "needs_values");
  spec.sums_weights = take<bool>(description, "sums_weights");
  spec.first_sample = take<std::int64_t>(description, "first_sample");
  spec.late_prices = take<std::vector<double>>(description, "late_prices");
  if (std::ssize(spec.late_prices) != spec.slots)
    throw std::invalid_argument("every slot has one late price");
  const int outputs = spec.objective.outputs();
  Statistics statistics;
  std::vector<Pack> packs;
  for (nb::handle item : description["packs"]) {
    auto pack = nb::cast<nb::dict>(item);
    LearnerSpec learner{read_settings(take<nb::dict>(pack, "settings")), {}, spec.objective,
                        spec.dimension, spec.first_sample, &statistics};
    for (nb::handle kernel : pack["kernels"])
      learner.kernels.push_back(read_kernel(kernel, spec.dimension));
    if (!pack["loss"].is_none())
      learner.objective.losses.assign(outputs, read_loss(pack["loss"]));
    TargetChange target;
    target.transform = read_transform(pack["transform"]);
    if (!pack["base"].is_none())
      std::tie(target.base_pack, target.base_lane) = nb::cast<std::pair<int, int>>(pack["base"]);
    packs.emplace_back(take<std::vector<int>>(pack, "slots"),
                       pack.contains("models")
                           ? python_learner(take<nb::list>(pack, "models"), learner)
                           : make_learner(take<std::string>(pack, "learner"), learner),
                       target, outputs, 1, spec.objective.window);
  }
  std::vector<Cloned<Combiner>> combiners;
  for (int k = 0; k < outputs; ++k)
    combiners.push_back(
        read_combiner(take<nb::tuple>(description, "combiner"), k, spec.slots, spec.objective));
  Samples samples(take_count(description, "history"), spec.dimension, outputs,
                  std::move(statistics), 1);
  return std::make_unique<Bank>(spec, std::move(samples), std::move(packs), std::move(combiners),
                                take<std::vector<double>>(description, "first_weights"));
}

/// What a target may be: those of a loss.
struct TargetRule {
  double least, most;
  bool labels;  // -1 or +1
  bool allows(double y) const {
    return least <= y && y <= most && (!labels || y == 1.0 || y == -1.0);
  }
};

std::size_t rows_of(const Floats& array) { return array.ndim() > 0 ? array.shape(0) : 0; }

/// An array that results are written to.
using Written = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

class PyBank {
 public:
  PyBank(const nb::dict& description, std::optional<std::size_t> most_bytes) {
    std::optional<MemoryLimit> limit;
    if (most_bytes) limit.emplace(*most_bytes);
    bank_ = make_bank(description);
    may_fail_ = bank_->may_fail();
    for (nb::handle rule : description["target_rules"]) {
      auto items = nb::cast<nb::tuple>(rule);
      rules_.push_back({std::max(nb::cast<double>(items[0]), -LARGEST),
                        std::min(nb::cast<double>(items[1]), LARGEST), nb::cast<bool>(items[2])});
    }
    if (rules_.size() != outputs()) throw nb::value_error("a rule for each output");
    point_.resize(bank_->spec().dimension);
    targets_.resize(outputs());
    slots_.resize(outputs() * slots());
  }
  std::unique_ptr<PyBank> copy_of() { return std::make_unique<PyBank>(*this); }

  /// A method as Python calls it: in its turn.
  template <class Out, class... In>
  static auto in_turn(Out (PyBank::*method)(In...)) {
    return [method](PyBank& self, In... in) -> Out {
      const Turn turn(self.turns_);
      return (self.*method)(std::forward<In>(in)...);
    };
  }

  /// Learn X (n, d), y (n, K), past (n, K, P) or None, whole or not at all; the arrays of `trace` by
  /// name are filled. records : for a bank of `Remote` learners what their slots have left behind,
  /// "slot_predictions", "norms" and "effects" (n, K, P), "values" (n, K, window, P).
  void learn(Floats X, Floats y, std::optional<Floats> past, const nb::dict& arrays, double delay,
             const std::optional<nb::dict>& records) {
    const std::size_t n = rows_of(X);
    require_shape("X", shape_of(X), {n, point_.size()});
    require_shape("y", shape_of(y), {n, outputs()});
    if (past) require_shape("past", shape_of(*past), {n, outputs(), slots()});
    std::vector<Written> alive;  // while other threads may change the dictionary
    const Trace trace = read_trace(arrays, n, alive);
    Trace elsewhere{};
    if (records) elsewhere = read_trace(*records, n, alive);
    for (int column : {Trace::SLOT_PREDICTIONS, Trace::NORMS, Trace::EFFECTS, Trace::VALUES})
      if (records && !elsewhere.columns[column]) throw std::invalid_argument("records are missing");
    learn_rows(X.data(), y.data(), n, past ? past->data() : nullptr, trace, delay,
               records ? &elsewhere : nullptr);
  }

  /// The same for a model of an AutoBank, whose arrays fit; whether there may be something to warn of.
  bool learn_for_model(const double* X, const double* y, std::size_t n, const double* past,
                       const Trace& trace, double delay) {
    Turn turn(turns_);
    const std::int64_t before = bank_->samples();
    const auto alerts_before = alerts();
    learn_rows(X, y, n, past, trace, delay);
    return check_is_due(before) || alerts() != alerts_before;
  }
  void predict_for_model(const double* X, std::size_t n, double* predictions, double* slots) {
    Turn turn(turns_);
    const auto unlocked = unlock_for_threads();
    if (n == 1) return bank_->predict(X, predictions, slots);
    bank_->predict_rows(X, n, predictions);
    bank_->predict_slots(X, n, slots);
  }
  void rescale(int output, double factor, double offset) {
    if (output < 0 || output >= int(outputs())) throw std::invalid_argument("no such output");
    bank_->rescale(output, factor, offset);
  }
  void weights_for_model(double* out) {
    Turn turn(turns_);
    for (Bank::Output& output : bank_->outputs)
      out = std::copy(output.weights.begin(), output.weights.end(), out);
  }

  /// Learn one sample if x are d numbers and y K, as `read_row` takes them, and all are in range: 0 declined, 1 learned, 2 learned, and there may be something to warn of.
  int learn_one(nb::handle x, nb::handle y) {
    if (!read_point(x) || !read_row(y, targets_.data(), targets_.size())) return 0;
    for (std::size_t k = 0; k < rules_.size(); ++k)
      if (!rules_[k].allows(targets_[k])) return 0;
    const std::int64_t number = bank_->samples();
    const auto before = alerts();
    whole([&] {
      const auto unlocked = unlock_for_threads();
      bank_->learn(point_.data(), targets_.data(), 1, nullptr, {});
    });
    return check_is_due(number) || alerts() != before ? 2 : 1;
  }

  /// The prediction at x, a float or (K,); None if x is not a row of numbers in range.
  nb::any predict_one(nb::handle x) {
    if (!read_point(x)) return nb::borrow<nb::any>(nb::none());
    {
      const auto unlocked = unlock_for_threads();
      bank_->predict(point_.data(), targets_.data(), slots_.data());
    }
    if (targets_.size() == 1) return nb::borrow<nb::any>(nb::float_(targets_[0]));
    return copied(targets_.data(), {targets_.size()});
  }
  /// (K,) predictions and (K, P) predictions of the slots at x (d,).
  nb::tuple predict_slots_one(Floats x) {
    require_shape("x", shape_of(x), {point_.size()});
    double *predictions, *values;
    Result result = new_array({outputs()}, &predictions);
    Result of_slots = new_array({outputs(), slots()}, &values);
    {
      const auto unlocked = unlock_for_threads();
      bank_->predict(x.data(), predictions, values);
    }
    return nb::make_tuple(result, of_slots);
  }
  Result predict(Floats X) { return rows(X, {outputs()}, &Bank::predict_rows); }
  /// (n, K): the predictions that follow from those of the slots (n, K, P).
  Result combine(Floats values) {
    require_shape("slots", shape_of(values), {rows_of(values), outputs(), slots()});
    return filled({values.shape(0), outputs()}, [&](double* predictions) {
      bank_->combine_rows(values.data(), values.shape(0), predictions);
    });
  }
  Result predict_slots(Floats X) { return rows(X, {outputs(), slots()}, &Bank::predict_slots); }
  Result variance_slots(Floats X) { return rows(X, {outputs(), slots()}, &Bank::variance_slots); }

  /// Let the terms before the first sample be x, or start at f_p = sum_j coefficients[j, p]
  /// k_p(points[j], .): points (m, d), coefficients (m, P).
  void begin(Floats x, std::optional<Floats> points, std::optional<Floats> coefficients) {
    require_shape("x", shape_of(x), {point_.size()});
    if (!points) return bank_->begin(x.data());
    const std::size_t m = rows_of(*points);
    if (m < 1 || !coefficients) throw nb::value_error("points and their coefficients are needed");
    require_shape("points", shape_of(*points), {m, point_.size()});
    require_shape("coefficients", shape_of(*coefficients), {m, slots()});
    bank_->start_from(points->data(), int(points->shape(0)), coefficients->data());
  }
  /// See Bank::continue_with; added : (bank, indices, whether they are on bases that go on)
  void continue_with(PyBank& before, std::vector<int> continued, std::vector<int> previous,
                     const nb::list& added) {
    const Turn other(before.turns_);
    std::vector<Bank::NewSlots> parts;
    for (nb::handle item : added) {
      auto part = nb::cast<nb::tuple>(item);
      parts.push_back({&*nb::cast<PyBank&>(part[0]).bank_,
                       nb::cast<std::vector<int>>(part[1]), nb::cast<bool>(part[2])});
    }
    bank_->continue_with(*before.bank_, {std::move(continued), std::move(previous)}, parts);
  }
  void continue_with_output(PyBank& before, PyBank& alone, int output, double past) {
    const Turn other(before.turns_);
    bank_->continue_with_output(*before.bank_, *alone.bank_, output, past);
  }
  void continue_from(PyBank& narrower) {
    const Turn other(narrower.turns_);
    bank_->continue_from(*narrower.bank_);
  }
  /// The models behind slots whose state is not arrays, by pack and output.
  nb::dict models() {
    nb::dict models;
    for (std::size_t i = 0; i < bank_->packs.size(); ++i)
      if (nb::list of_pack = python_models(*bank_->packs[i].learner); nb::len(of_pack) > 0)
        models[nb::int_(i)] = of_pack;
    return models;
  }

  std::int64_t samples() {
    Turn turn(turns_);
    return bank_->samples();
  }
  /// (K, P)
  Result weights() { return by_output({slots()}, [](Bank::Output& o) { return o.weights; }); }
  /// (P,): sums of |weight| of all outputs since they were last cleared.
  Result weight_sums() {
    return filled({slots()}, [&](double* sums) {
      for (Bank::Output& output : bank_->outputs)
        for (std::size_t p = 0; p < output.weight_sums.size(); ++p) sums[p] += output.weight_sums[p];
    });
  }
  void clear_weight_sums() {
    for (Bank::Output& output : bank_->outputs)
      std::fill(output.weight_sums.begin(), output.weight_sums.end(), 0.0);
  }
  /// The totals of all outputs, (K,) and (K, P), by name.
  nb::dict ledger() {
    nb::dict totals;
    const auto add_number = [&](const char* name, auto member) {
      totals[name] = by_output(
          {}, [=](Bank::Output& o) { return Array<double>{double(o.ledger.*member)}; });
    };
    add_number("cost", &Ledger::cost);
    add_number("loss", &Ledger::loss);
    add_number("gap", &Ledger::gap);
    add_number("effect", &Ledger::effect);
    add_number("missing", &Ledger::missing);
    totals["slot_cost"] = by_output({slots()}, [](Bank::Output& o) { return o.ledger.slot_cost; });
    totals["slot_loss"] = by_output({slots()}, [](Bank::Output& o) { return o.ledger.slot_loss; });
    totals["dropped"] = by_slot(&Learner::dropped);
    return totals;
  }
  /// What warnings depend on: how many slots are out, and the largest effect of truncation.
  std::pair<std::int64_t, double> alerts() {
    std::pair<std::int64_t, double> alerts{0, 0.0};
    for (const Bank::Output& output : bank_->outputs) {
      alerts.first += output.ledger.quarantined;
      alerts.second = std::max(alerts.second, output.ledger.effect);
    }
    return alerts;
  }
  Result step_ratio() { return by_slot(&Learner::step_ratio); }
  /// The bytes of the state.
  std::size_t bytes() {
    std::size_t total = 0;
    for (const Entry& entry : list_state(*bank_)) total += entry.bytes();
    return total;
  }

  /// All numbers that the next sample depends on, by name; those alone whose names begin so.
  nb::dict state(const std::string& begin) {
    std::vector<Entry> entries = list_state(*bank_);
    std::erase_if(entries, [&](const Entry& entry) { return !entry.name.starts_with(begin); });
    return state_arrays(std::as_const(entries));
  }

  /// Continue from what `state` returned; a state that is refused changes nothing.
  void restore(const nb::dict& arrays) {
    Cloned<Bank> other = bank_;
    write_state(*other, arrays);
    bank_ = std::move(other);
  }

 private:
  std::size_t outputs() const { return bank_->outputs.size(); }
  std::size_t slots() const { return bank_->spec().slots; }

  /// The arrays that n samples are written to.
  Trace read_trace(const nb::dict& arrays, std::size_t n, std::vector<Written>& alive) const {
    const std::size_t window = bank_->spec().objective.window;
    Trace trace{};
    for (int column = 0; column < Trace::COLUMNS; ++column) {
      const char* name = Trace::NAMES[column];
      if (!arrays.contains(name)) continue;
      Written array;
      if (!nb::try_cast(arrays[name], array, false))  // a copy would be written in vain
        throw nb::value_error((std::string(name) + " must be a writable array of float64 by rows").c_str());
      Shape shape = {n, outputs()};
      if (column == Trace::VALUES) shape.push_back(window);
      if (column >= Trace::WEIGHTS) shape.push_back(slots());
      require_shape(name, shape_of(array), shape);
      alive.push_back(array);
      trace.columns[column] = array.data();
    }
    return trace;
  }

  /// Threads may need the interpreter's lock: give it away while they work.
  std::unique_ptr<nb::gil_scoped_release> unlock_for_threads() const {
    return bank_->spec().threads > 1 ? std::make_unique<nb::gil_scoped_release>() : nullptr;
  }

  /// (K, ...): the numbers of each output.
  template <class Read>
  Result by_output(Shape shape, Read read) {
    shape.insert(shape.begin(), outputs());
    return filled(shape, [&](double* out) {
      for (Bank::Output& output : bank_->outputs) {
        const Array<double> numbers = read(output);
        out = std::copy(numbers.begin(), numbers.end(), out);
      }
    });
  }

  /// Step sizes are checked when the samples have doubled, and at the end of a slide period.
  bool check_is_due(std::int64_t before) const {
    const std::int64_t now = bank_->samples();
    return (before ^ now) > before || before / SLIDE_PERIOD != now / SLIDE_PERIOD;
  }

  /// Copy an input; false for one of another type, or not in range.
  bool read_point(nb::handle x) {
    return read_row(x, point_.data(), point_.size()) && std::all_of(point_.begin(), point_.end(), [](double number) {
             return std::fabs(number) <= LARGEST;
           });
  }

  /// (K, P): a number of every slot.
  Result by_slot(Lanes (Learner::*method)(int) const) {
    return filled({outputs(), slots()}, [&](double* out) {
      for (const Pack& pack : bank_->packs)
        for (std::size_t k = 0; k < outputs(); ++k) {
          const Lanes value = ((*pack.learner).*method)(int(k));
          for (std::size_t i = 0; i < pack.slots.size(); ++i)
            out[k * slots() + pack.slots[i]] = value[int(i)];
        }
    });
  }

  Result rows(Floats X, Shape shape, void (Bank::*method)(const double*, std::size_t, double*)) {
    require_shape("X", shape_of(X), {rows_of(X), point_.size()});
    shape.insert(shape.begin(), X.shape(0));
    return filled(shape, [&](double* out) {
      nb::gil_scoped_release unlocked;
      ((*bank_).*method)(X.data(), X.shape(0), out);
    });
  }

  void learn_rows(const double* X, const double* y, std::size_t n, const double* past,
                  const Trace& trace, double delay, const Trace* elsewhere = nullptr) {
    whole([&] {
      nb::gil_scoped_release unlocked;
      bank_->learn(X, y, n, past, trace, delay, elsewhere);
    });
  }

  /// All of it or, if a user's function raises an error, nothing: undo is a copy.
  template <class Action>
  void whole(Action action) {
    if (!may_fail_) return action();
    Cloned<Bank> before = bank_;
    try {
      action();
    } catch (...) {
      bank_ = std::move(before);
      throw;
    }
  }

  Cloned<Bank> bank_;
  bool may_fail_ = false;
  std::vector<TargetRule> rules_;                // of each output
  std::vector<double> point_, targets_, slots_;  // of a single sample
  Turns turns_;
};

/// A KernelBank as a model sees it: its core where that is here, else its methods.
class PythonBank : public ModelBank {
 public:
  PythonBank(nb::object bank, std::size_t width)
      : bank_(std::move(bank)),
        width_(width),
        direct_(nb::cast<bool>(bank_.attr("_plain")) && !nb::cast<bool>(bank_.attr("calls_python"))),
        outputs_(nb::cast<int>(bank_.attr("outputs"))),
        slots_(int(nb::len(nb::object(bank_.attr("slots"))))) {}

  int outputs() const override { return outputs_; }
  int slots() const override { return slots_; }

  void learn(const double* X, const double* y, int n, const double* past, double* predictions,
             double* weights, double* slots, double delay) override {
    if (nb::object core = local(); core.is_valid()) {
      auto& local_bank = nb::cast<PyBank&>(core);
      const std::int64_t first = local_bank.samples();
      Trace trace{};
      trace.columns[Trace::PREDICTION] = predictions;
      trace.columns[Trace::WEIGHTS] = weights;
      trace.columns[Trace::SLOT_PREDICTIONS] = slots;
      const bool may_warn = local_bank.learn_for_model(X, y, n, past, trace, delay);
      if (may_warn && unchecked_ < 0) unchecked_ = first;
      return;
    }
    const std::size_t rows = n, K = outputs_, P = slots_;
    nb::dict arrays;
    const auto add = [&](const char* name, double* to, Shape shape) {
      if (to) arrays[name] = nb::ndarray<nb::numpy, double>(to, shape.size(), shape.data(), nb::none());
    };
    add("predictions", predictions, {rows, K});
    add("weights", weights, {rows, K, P});
    add("slot_predictions", slots, {rows, K, P});
    nb::object earlier = nb::none();
    if (past) earlier = copied(past, {rows, K, P});
    bank_.attr("_learn_rows")(copied(X, {rows, width_}), copied(y, {rows, K}), earlier, arrays,
                              delay);
  }

  void predict(const double* X, int n, double* predictions, double* slots) override {
    if (nb::object core = local(); core.is_valid())
      return nb::cast<PyBank&>(core).predict_for_model(X, n, predictions, slots);
    const nb::object rows = copied(X, {std::size_t(n), width_});
    write(bank_.attr("predict")(rows), n * outputs_, predictions);
    write(bank_.attr("predict_slots")(rows), n * outputs_ * slots_, slots);
  }

  void rescale(int output, double factor, double offset) override {
    if (nb::object core = local(); core.is_valid())
      return PyBank::in_turn(&PyBank::rescale)(nb::cast<PyBank&>(core), output, factor, offset);
    bank_.attr("rescale")(factor, offset, output);
  }

  void write_weights(double* weights) override {
    if (nb::object core = local(); core.is_valid())
      return nb::cast<PyBank&>(core).weights_for_model(weights);
    write(bank_.attr("weights"), outputs_ * slots_, weights);
  }

  bool is_local() const override { return local().is_valid(); }

  void warn() override {
    if (unchecked_ >= 0) bank_.attr("_check")(std::exchange(unchecked_, -1));
  }

 private:
  /// The bank of the core, if it is in this process and nothing has to be checked; else nothing.
  nb::object local() const {
    nb::object core;
    if (direct_) core = bank_.attr("_bank");
    return core.is_valid() && nb::isinstance<PyBank>(core) ? core : nb::object();
  }
  static void write(nb::handle array, std::size_t size, double* out) {
    const auto numbers = nb::cast<Floats>(array);
    if (numbers.size() != size) throw std::invalid_argument("a bank has other outputs or slots");
    std::copy_n(numbers.data(), size, out);
  }

  nb::object bank_;
  std::size_t width_;  // of a row
  bool direct_;
  int outputs_, slots_;
  std::int64_t unchecked_ = -1;  // the first sample of which there may be something to warn
};

}  // namespace

std::shared_ptr<ModelBank> kb::model_bank(nb::handle bank, int width) {
  return std::make_shared<PythonBank>(nb::borrow(bank), width);
}

void kb::bind_bank(nb::module_& m) {
  nb::exception<TooLarge>(m, "TooLarge", PyExc_ValueError);
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  nb::class_<PyBank> bank(m, "Bank");
  bank.def(nb::init<const nb::dict&, std::optional<std::size_t>>(), "description"_a,
           "most_bytes"_a.none() = nb::none());
  const auto def = [&](const char* name, auto method, auto... arguments) {
    bank.def(name, PyBank::in_turn(method), arguments...);
  };
  def("learn", &PyBank::learn, "X"_a, "y"_a, "past"_a.none(), "trace"_a,
      "delay"_a = 0.0, "records"_a.none() = nb::none());
  def("learn_one", &PyBank::learn_one, "x"_a.none(), "y"_a.none());
  def("rescale", &PyBank::rescale, "output"_a, "factor"_a, "offset"_a);
  def("predict_one", &PyBank::predict_one, "x"_a.none());
  def("predict_slots_one", &PyBank::predict_slots_one, "x"_a);
  def("predict", &PyBank::predict, "X"_a);
  def("combine", &PyBank::combine, "slots"_a);
  def("predict_slots", &PyBank::predict_slots, "X"_a);
  def("variance_slots", &PyBank::variance_slots, "X"_a);
  def("state", &PyBank::state, "begin"_a = "");
  def("restore", &PyBank::restore, "arrays"_a);
  def("copy", &PyBank::copy_of);
  def("begin", &PyBank::begin, "x"_a, "points"_a.none() = nb::none(),
      "coefficients"_a.none() = nb::none());
  def("continue_with", &PyBank::continue_with, "before"_a, "continued"_a, "previous"_a, "added"_a);
  def("continue_with_output", &PyBank::continue_with_output, "before"_a, "alone"_a, "output"_a,
      "past"_a);
  def("continue_from", &PyBank::continue_from, "narrower"_a);
  def("models", &PyBank::models);
  def("weights", &PyBank::weights);
  def("weight_sums", &PyBank::weight_sums);
  def("clear_weight_sums", &PyBank::clear_weight_sums);
  def("ledger", &PyBank::ledger);
  def("alerts", &PyBank::alerts);
  def("step_ratio", &PyBank::step_ratio);
  bank.def_prop_ro("samples", &PyBank::samples);
  bank.def_prop_ro("bytes", PyBank::in_turn(&PyBank::bytes));
}
