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
static int take_count(const nb::dict& given, const char* name) {
  const int number = take<int>(given, name);
  if (number < 1 || number > INT_MAX / 2)
    throw std::invalid_argument(std::string(name) + " is out of range");
  return number;
}

/// A bank from its description in Python (`kernelbank.bank`).
Cloned<Bank> make_bank(const nb::dict& given) {
  BankSpec spec{};
  spec.objective.window = take_count(given, "window");
  spec.objective.regularization = take<double>(given, "regularization");
  for (nb::handle loss : given["losses"]) spec.objective.losses.push_back(read_loss(loss));
  spec.dimension = take_count(given, "dimension");
  spec.slots = take_count(given, "slots");
  spec.block = take_count(given, "block");
  spec.threads = take_count(given, "threads");
  spec.on_simplex = take<bool>(given, "on_simplex");
  spec.needs_values = take<bool>(given, "needs_values");
  spec.sums_weights = take<bool>(given, "sums_weights");
  spec.first_sample = take<std::int64_t>(given, "first_sample");
  const int outputs = spec.objective.outputs();
  Statistics statistics;
  std::vector<Pack> packs;
  for (nb::handle item : given["packs"]) {
    auto pack = nb::cast<nb::dict>(item);
    LearnerSpec learner{read_settings(take<nb::dict>(pack, "settings")), {}, spec.objective,
                        spec.dimension, spec.first_sample, &statistics};
    for (nb::handle kernel : pack["kernels"])
      learner.kernels.push_back(read_kernel(kernel, spec.dimension));
    if (!pack["loss"].is_none())
      learner.objective.losses.assign(outputs, read_loss(pack["loss"]));
    OwnTarget own;
    own.transform = read_transform(pack["transform"]);
    if (!pack["base"].is_none()) {
      auto base = nb::cast<std::vector<int>>(pack["base"]);
      own.base_pack = base.at(0);
      own.base_lane = base.at(1);
    }
    auto made = pack.contains("models") ? python_learner(take<nb::list>(pack, "models"), learner)
                                        : make_learner(take<std::string>(pack, "learner"), learner);
    packs.emplace_back(take<std::vector<int>>(pack, "slots"), std::move(made), own, outputs,
                       1, spec.objective.window);
  }
  std::vector<Cloned<Combiner>> combiners;
  for (int k = 0; k < outputs; ++k)
    combiners.push_back(
        read_combiner(take<nb::tuple>(given, "combiner"), k, spec.slots, spec.objective));
  Samples samples(take_count(given, "history"), spec.dimension, outputs, std::move(statistics), 1);
  return std::make_unique<Bank>(spec, std::move(samples), std::move(packs), std::move(combiners),
                                take<std::vector<double>>(given, "first_weights"));
}

/// What a target may be: those of a loss.
struct TargetRule {
  double least, most;
  bool labels;  // -1 or +1
  bool allows(double y) const {
    return least <= y && y <= most && (!labels || y == 1.0 || y == -1.0);
  }
};

/// Inputs beyond this are declined: the square of a difference must not overflow.
constexpr double LARGEST = 1e150;

std::size_t rows_of(const Floats& array) { return array.ndim() > 0 ? array.shape(0) : 0; }

/// An array that results are written to.
using Written = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

class PyBank {
 public:
  PyBank(const nb::dict& given, std::optional<std::size_t> most_bytes) {
    std::optional<MemoryLimit> limit;
    if (most_bytes) limit.emplace(*most_bytes);
    bank_ = make_bank(given);
    may_fail_ = bank_->may_fail();
    for (nb::handle rule : given["target_rules"]) {
      auto items = nb::cast<nb::tuple>(rule);
      rules_.push_back({std::max(nb::cast<double>(items[0]), -LARGEST),
                        std::min(nb::cast<double>(items[1]), LARGEST), nb::cast<bool>(items[2])});
    }
    if (rules_.size() != bank_->outputs.size()) throw nb::value_error("a rule for each output");
    point_.resize(bank_->spec().dimension);
    targets_.resize(rules_.size());
    slots_.resize(rules_.size() * bank_->spec().slots);
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
  /// name are filled.
  void learn(Floats X, Floats y, std::optional<Floats> past, const nb::dict& arrays) {
    const std::size_t n = rows_of(X), K = rules_.size();
    require_shape("X", shape_of(X), {n, point_.size()});
    require_shape("y", shape_of(y), {n, K});
    if (past) require_shape("past", shape_of(*past), {n, K, slots_.size() / K});
    std::vector<Written> kept;  // while other threads may change the dictionary
    const Trace trace = read_trace(arrays, n, kept);
    learn_rows(X.data(), y.data(), n, past ? past->data() : nullptr, trace);
  }

  /// The same for a bank of `Remote` learners. shards : of each its packs, and what its slots have
  /// left behind: "predictions", "norms" and "effects" (n, K, S), "values" (n, K, window, S).
  void learn_elsewhere(Floats X, Floats y, std::optional<Floats> past, const nb::dict& arrays,
                       const nb::list& shards) {
    const Forgotten forgotten{*this};
    for (nb::handle item : shards) hand_over(nb::cast<nb::tuple>(item), rows_of(X));
    for (Pack& pack : bank_->packs)
      if (!dynamic_cast<Remote&>(*pack.learner).is_ready())
        throw std::invalid_argument("the records of a pack were not handed over");
    learn(X, y, past, arrays);
  }

  /// The same for a model of an AutoBank, whose arrays fit; whether there may be something to warn of.
  bool learn_for_model(const double* X, const double* y, std::size_t n, const double* past,
                       const Trace& trace) {
    Turn turn(turns_);
    const std::int64_t before = bank_->samples();
    const auto alerts_before = alerts();
    learn_rows(X, y, n, past, trace);
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
    if (output < 0 || output >= int(bank_->outputs.size())) throw std::invalid_argument("no such output");
    bank_->rescale(output, factor, offset);
  }
  void weights_for_model(double* out) {
    Turn turn(turns_);
    for (Bank::Output& output : bank_->outputs)
      out = std::copy(output.weights.begin(), output.weights.end(), out);
  }

  /// Learn one sample if x is a float or a (d,) array of float64, y one or (K,), and all are in
  /// range: 0 declined, 1 learned, 2 learned, and there may be something to warn of.
  int learn_one(nb::handle x, nb::handle y) {
    if (!read_point(x) || !read_row(y, targets_)) return 0;
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

  /// The prediction at x, a float or (K,); None if x is not a float or a (d,) array in range.
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
    const std::size_t K = bank_->outputs.size(), P = bank_->spec().slots;
    double *predictions, *slots;
    Result one = new_array({K}, &predictions), other = new_array({K, P}, &slots);
    {
      const auto unlocked = unlock_for_threads();
      bank_->predict(x.data(), predictions, slots);
    }
    return nb::make_tuple(one, other);
  }
  Result predict(Floats X) { return rows(X, {rules_.size()}, &Bank::predict_rows); }
  /// (n, K): the predictions that follow from those of the slots (n, K, P).
  Result combine(Floats slots) {
    const std::size_t K = bank_->outputs.size(), P = bank_->spec().slots;
    require_shape("slots", shape_of(slots), {rows_of(slots), K, P});
    double* predictions;
    Result result = new_array({slots.shape(0), K}, &predictions);
    bank_->combine_rows(slots.data(), slots.shape(0), predictions);
    return result;
  }
  Result predict_slots(Floats X) { return rows(X, by_slots(), &Bank::predict_slots); }
  Result variance_slots(Floats X) { return rows(X, by_slots(), &Bank::variance_slots); }

  /// Let the terms before the first sample be x, or start at f_p = sum_j coefficients[j, p]
  /// k_p(points[j], .): points (m, d), coefficients (m, P).
  void begin(Floats x, std::optional<Floats> points, std::optional<Floats> coefficients) {
    require_shape("x", shape_of(x), {point_.size()});
    if (!points) return bank_->begin(x.data());
    const std::size_t m = rows_of(*points);
    if (m < 1 || !coefficients) throw nb::value_error("points and their coefficients are needed");
    require_shape("points", shape_of(*points), {m, point_.size()});
    require_shape("coefficients", shape_of(*coefficients), {m, std::size_t(bank_->spec().slots)});
    bank_->start_from(points->data(), int(points->shape(0)), coefficients->data());
  }
  /// See Bank::continue_with; added : (bank, indices, whether they are on bases that go on)
  void continue_with(PyBank& before, std::vector<int> kept, std::vector<int> previous,
                     const nb::list& added) {
    const Turn other(before.turns_);
    std::vector<Bank::NewSlots> parts;
    for (nb::handle item : added) {
      auto part = nb::cast<nb::tuple>(item);
      parts.push_back({&*nb::cast<PyBank&>(part[0]).bank_,
                       nb::cast<std::vector<int>>(part[1]), nb::cast<bool>(part[2])});
    }
    bank_->continue_with(*before.bank_, {std::move(kept), std::move(previous)}, parts);
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
    nb::dict found;
    for (std::size_t i = 0; i < bank_->packs.size(); ++i) {
      nb::object models = python_models(*bank_->packs[i].learner);
      if (!models.is_none()) found[nb::int_(i)] = models;
    }
    return found;
  }

  std::int64_t samples() {
    Turn turn(turns_);
    return bank_->samples();
  }
  /// (K, P)
  Result weights() {
    return by_output({std::size_t(bank_->spec().slots)},
                     [](Bank::Output& o, double* out) { copy(o.weights, out); });
  }
  /// (P,): sums of |weight| of all outputs since they were last cleared.
  Result weight_sums() {
    double* sums;
    Result result = new_array({std::size_t(bank_->spec().slots)}, &sums);
    for (Bank::Output& output : bank_->outputs)
      for (std::size_t p = 0; p < output.weight_sums.size(); ++p) sums[p] += output.weight_sums[p];
    return result;
  }
  void clear_weight_sums() {
    for (Bank::Output& output : bank_->outputs)
      std::fill(output.weight_sums.begin(), output.weight_sums.end(), 0.0);
  }
  /// The totals of all outputs, (K,) and (K, P), by name.
  nb::dict ledger() {
    const std::size_t slots = bank_->spec().slots;
    auto number = [&](auto member) {
      return by_output({}, [=](Bank::Output& o, double* out) { *out = double(o.ledger.*member); });
    };
    nb::dict found;
    found["cost"] = number(&Ledger::cost);
    found["loss"] = number(&Ledger::loss);
    found["gap"] = number(&Ledger::gap);
    found["effect"] = number(&Ledger::effect);
    found["missing"] = number(&Ledger::missing);
    found["slot_cost"] =
        by_output({slots}, [](Bank::Output& o, double* out) { copy(o.ledger.slot_cost, out); });
    found["slot_loss"] =
        by_output({slots}, [](Bank::Output& o, double* out) { copy(o.ledger.slot_loss, out); });
    found["dropped"] = by_slot(&Learner::dropped);
    return found;
  }
  /// What warnings depend on: how many slots are out, and the largest effect of truncation.
  std::pair<std::int64_t, double> alerts() {
    std::pair<std::int64_t, double> found{0, 0.0};
    for (const Bank::Output& output : bank_->outputs) {
      found.first += output.ledger.quarantined;
      found.second = std::max(found.second, output.ledger.effect);
    }
    return found;
  }
  Result step_ratio() { return by_slot(&Learner::step_ratio); }
  std::vector<std::pair<double, double>> combiner_step() {
    std::vector<std::pair<double, double>> found;
    for (const Bank::Output& output : bank_->outputs) found.push_back(output.combiner->step_ratio());
    return found;
  }
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
  /// The arrays that n samples are written to.
  Trace read_trace(const nb::dict& arrays, std::size_t n, std::vector<Written>& kept) const {
    const std::size_t K = rules_.size();
    auto find = [&](const char* name, const Shape& shape) -> double* {
      if (!arrays.contains(name)) return nullptr;
      Written array;
      if (!nb::try_cast(arrays[name], array, false))  // a copy would be written in vain
        throw nb::value_error((std::string(name) + " must be a writable array of float64 by rows").c_str());
      require_shape(name, shape_of(array), shape);
      kept.push_back(array);
      return array.data();
    };
    auto one = [&](const char* name) { return find(name, {n, K}); };
    auto all = [&](const char* name) { return find(name, {n, K, slots_.size() / K}); };
    return {one("predictions"), one("cost"), one("loss"), one("bound_gap"),
            one("cumulative_cost"), one("regret"), all("weights"), all("slot_cost"),
            all("slot_loss"), all("slot_predictions"), all("curvature"), all("window_loss"),
            find("values", {n, K, std::size_t(bank_->spec().objective.window), slots_.size() / K}),
            all("norms"), all("effects")};
  }

  /// Threads may need the interpreter's lock: give it away while they work.
  std::unique_ptr<nb::gil_scoped_release> unlock_for_threads() const {
    return bank_->spec().threads > 1 ? std::make_unique<nb::gil_scoped_release>() : nullptr;
  }

  /// When it ends, no learner points to records of another process any more.
  struct Forgotten {
    PyBank& bank;
    ~Forgotten() {
      for (Pack& pack : bank.bank_->packs)
        if (auto* remote = dynamic_cast<Remote*>(&*pack.learner)) remote->forget();
    }
  };

  /// Give the learners of a shard's packs the records of n samples.
  void hand_over(const nb::tuple& shard, std::size_t n) {
    const std::size_t K = bank_->outputs.size(), window = bank_->spec().objective.window;
    auto records = nb::cast<nb::dict>(shard[1]);
    auto find = [&](const char* name) { return nb::cast<Floats>(records[name], false); };  // no copy
    const std::size_t slots = find("norms").ndim() == 3 ? find("norms").shape(2) : 0;
    auto read = [&](const char* name, const Shape& shape) {
      const Floats array = find(name);
      require_shape(name, shape_of(array), shape);
      return array.data();
    };
    const Shape plain = {n, K, slots};
    const HandedOver handed{bank_->samples(),      int(n),
                            int(slots),            read("predictions", plain),
                            read("values", {n, K, window, slots}),
                            read("norms", plain),  read("effects", plain)};
    for (int pack : nb::cast<std::vector<int>>(shard[0]))
      dynamic_cast<Remote&>(*bank_->packs.at(pack).learner).take(handed);
  }

  static void copy(const Array<double>& from, double* to) { std::copy(from.begin(), from.end(), to); }

  /// (K, ...): what `write` leaves of each output.
  template <class Write>
  Result by_output(Shape shape, Write write) {
    double* data;
    std::size_t size = 1;
    for (std::size_t n : shape) size *= n;
    shape.insert(shape.begin(), bank_->outputs.size());
    Result result = new_array(shape, &data);
    for (Bank::Output& output : bank_->outputs) write(output, data), data += size;
    return result;
  }

  /// Step sizes are checked when the samples have doubled, and at the end of a slide period.
  bool check_is_due(std::int64_t before) const {
    const std::int64_t now = bank_->samples();
    return (before ^ now) > before || before / SLIDE_PERIOD != now / SLIDE_PERIOD;
  }

  /// Copy a float, or an array of float64 of the right length; false for anything else.
  static bool read_row(nb::handle given, std::vector<double>& row) {
    if (PyFloat_Check(given.ptr())) {
      row[0] = PyFloat_AS_DOUBLE(given.ptr());
      return row.size() == 1;
    }
    // No subclass: that of masked arrays has entries that are no numbers.
    static const nb::handle plain =
        nb::object(nb::module_::import_("numpy").attr("ndarray")).release();
    nb::ndarray<const double, nb::ndim<1>, nb::device::cpu> array;
    if (!given.type().is(plain) || !nb::try_cast(given, array, false)) return false;
    if (array.shape(0) != row.size()) return false;
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = array(i);
    return true;
  }

  /// Copy an input; false for one that is not a float or an array, or not in range.
  bool read_point(nb::handle x) {
    return read_row(x, point_) && std::all_of(point_.begin(), point_.end(), [](double number) {
             return std::fabs(number) <= LARGEST;
           });
  }

  /// (K, P)
  Shape by_slots() const { return {rules_.size(), slots_.size() / rules_.size()}; }

  /// (K, P): a number of every slot.
  Result by_slot(Lanes (Learner::*method)(int) const) {
    const std::size_t outputs = bank_->outputs.size(), slots = bank_->spec().slots;
    double* data;
    Result result = new_array({outputs, slots}, &data);
    for (const Pack& pack : bank_->packs)
      for (std::size_t k = 0; k < outputs; ++k) {
        const Lanes value = ((*pack.learner).*method)(int(k));
        for (std::size_t i = 0; i < pack.slots.size(); ++i)
          data[k * slots + pack.slots[i]] = value[int(i)];
      }
    return result;
  }

  Result rows(Floats X, Shape shape, void (Bank::*method)(const double*, std::size_t, double*)) {
    require_shape("X", shape_of(X), {rows_of(X), point_.size()});
    shape.insert(shape.begin(), X.shape(0));
    double* data;
    Result result = new_array(shape, &data);
    nb::gil_scoped_release unlocked;
    ((*bank_).*method)(X.data(), X.shape(0), data);
    return result;
  }

  void learn_rows(const double* X, const double* y, std::size_t n, const double* past,
                  const Trace& trace) {
    whole([&] {
      nb::gil_scoped_release unlocked;
      bank_->learn(X, y, n, past, trace);
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
             double* weights, double* slots) override {
    if (nb::object core = local(); core.is_valid()) {
      auto& own = nb::cast<PyBank&>(core);
      const std::int64_t first = own.samples();
      Trace trace{};
      trace.predictions = predictions, trace.weights = weights, trace.slot_predictions = slots;
      if (own.learn_for_model(X, y, n, past, trace)) bank_.attr("_check")(first);
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
    bank_.attr("_learn_rows")(copied(X, {rows, width_}), copied(y, {rows, K}), earlier, arrays);
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
};

}  // namespace

std::shared_ptr<ModelBank> kb::model_bank(nb::handle bank, int width) {
  return std::make_shared<PythonBank>(nb::borrow(bank), width);
}

void kb::bind_bank(nb::module_& m) {
  nb::exception<TooLarge>(m, "TooLarge", PyExc_ValueError);
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  nb::class_<PyBank>(m, "Bank")
      .def(nb::init<const nb::dict&, std::optional<std::size_t>>(), "description"_a,
           "most_bytes"_a.none() = nb::none())
      .def("learn", PyBank::in_turn(&PyBank::learn), "X"_a, "y"_a, "past"_a.none(), "trace"_a)
      .def("learn_elsewhere", PyBank::in_turn(&PyBank::learn_elsewhere), "X"_a, "y"_a,
           "past"_a.none(), "trace"_a, "shards"_a)
      .def("learn_one", PyBank::in_turn(&PyBank::learn_one), "x"_a.none(), "y"_a.none())
      .def("rescale", PyBank::in_turn(&PyBank::rescale), "output"_a, "factor"_a, "offset"_a)
      .def("predict_one", PyBank::in_turn(&PyBank::predict_one), "x"_a.none())
      .def("predict_slots_one", PyBank::in_turn(&PyBank::predict_slots_one), "x"_a)
      .def("predict", PyBank::in_turn(&PyBank::predict), "X"_a)
      .def("combine", PyBank::in_turn(&PyBank::combine), "slots"_a)
      .def("predict_slots", PyBank::in_turn(&PyBank::predict_slots), "X"_a)
      .def("variance_slots", PyBank::in_turn(&PyBank::variance_slots), "X"_a)
      .def("state", PyBank::in_turn(&PyBank::state), "begin"_a = "")
      .def("restore", PyBank::in_turn(&PyBank::restore), "arrays"_a)
      .def("copy", PyBank::in_turn(&PyBank::copy_of))
      .def("begin", PyBank::in_turn(&PyBank::begin), "x"_a, "points"_a.none() = nb::none(),
           "coefficients"_a.none() = nb::none())
      .def("continue_with", PyBank::in_turn(&PyBank::continue_with), "before"_a, "kept"_a,
           "previous"_a, "added"_a)
      .def("continue_with_output", PyBank::in_turn(&PyBank::continue_with_output), "before"_a,
           "alone"_a, "output"_a, "past"_a)
      .def("continue_from", PyBank::in_turn(&PyBank::continue_from), "narrower"_a)
      .def("models", PyBank::in_turn(&PyBank::models))
      .def("weights", PyBank::in_turn(&PyBank::weights))
      .def("weight_sums", PyBank::in_turn(&PyBank::weight_sums))
      .def("clear_weight_sums", PyBank::in_turn(&PyBank::clear_weight_sums))
      .def("ledger", PyBank::in_turn(&PyBank::ledger))
      .def("alerts", PyBank::in_turn(&PyBank::alerts))
      .def("step_ratio", PyBank::in_turn(&PyBank::step_ratio))
      .def("combiner_step", PyBank::in_turn(&PyBank::combiner_step))
      .def_prop_ro("samples", &PyBank::samples)
      .def_prop_ro("bytes", PyBank::in_turn(&PyBank::bytes));
}
