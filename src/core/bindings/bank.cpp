// A bank as Python sees it: results leave as arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>

#include "../bank.hpp"
#include "module.hpp"
#include "specs.hpp"
#include "state.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

/// One caller at a time: others wait, without the interpreter's lock; a call from inside is refused.
class Turn {
 public:
  Turn(std::mutex& mutex, std::atomic<std::thread::id>& owner) : mutex_(mutex), owner_(owner) {
    if (owner_ == std::this_thread::get_id())
      throw std::runtime_error("a function inside the bank must not call the bank");
    if (!mutex_.try_lock()) {
      nb::gil_scoped_release unlocked;
      mutex_.lock();
    }
    owner_ = std::this_thread::get_id();
  }
  ~Turn() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

 private:
  std::mutex& mutex_;
  std::atomic<std::thread::id>& owner_;
};

/// A bank from its description in Python (`kernelbank.bank`).
std::unique_ptr<Bank> make_bank(const nb::dict& given) {
  BankSpec spec{};
  spec.objective.window = take<int>(given, "window");
  spec.objective.regularization = take<double>(given, "regularization");
  for (nb::handle loss : given["losses"]) spec.objective.losses.push_back(read_loss(loss));
  spec.dimension = take<int>(given, "dimension");
  spec.slots = take<int>(given, "slots");
  spec.block = take<int>(given, "block");
  spec.threads = take<int>(given, "threads");
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
    for (nb::handle kernel : pack["kernels"]) learner.kernels.push_back(read_kernel(kernel));
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
                       spec.block, spec.objective.window);
  }
  auto rule = take<nb::tuple>(given, "combiner");
  std::vector<Cloned<Combiner>> combiners;
  for (int k = 0; k < outputs; ++k) {
    if (!nb::isinstance<nb::str>(rule[0])) {  // a rule of the user's, and its state
      combiners.push_back(python_combiner(rule[0], nb::cast<nb::list>(rule[1])[k]));
      continue;
    }
    combiners.push_back(make_combiner(
        nb::cast<std::string>(rule[0]),
        {read_settings(nb::cast<nb::dict>(rule[1])), spec.slots, spec.objective.window,
         spec.objective.regularization, spec.objective.losses[k]}));
  }
  Samples samples(take<int>(given, "history"), spec.dimension, outputs, std::move(statistics),
                  spec.block);
  return std::make_unique<Bank>(spec, std::move(samples), std::move(packs), std::move(combiners),
                                take<std::vector<double>>(given, "first_weights"));
}

class PyBank {
 public:
  explicit PyBank(const nb::dict& given) : bank_(make_bank(given)) { may_fail_ = bank_->may_fail(); }
  PyBank(const PyBank& other)
      : bank_(std::make_unique<Bank>(*other.bank_)), may_fail_(other.may_fail_) {}

  /// Learn X (n, d), y (n, K), past (n, K, P) or None; the arrays of `trace` by name are filled.
  void learn(Floats X, Floats y, std::optional<Floats> past, const nb::dict& arrays) {
    Turn turn(mutex_, owner_);
    const std::size_t n = X.shape(0);
    Trace trace = read_trace(arrays);
    whole([&] {
      nb::gil_scoped_release unlocked;
      bank_->learn(X.data(), y.data(), n, past ? past->data() : nullptr, trace, [] {
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      });
    });
  }

  nb::tuple predict_one(Floats x) {
    Turn turn(mutex_, owner_);
    const std::size_t K = bank_->outputs.size(), P = bank_->spec().slots;
    double *predictions, *slots;
    Result one = new_array({K}, &predictions), other = new_array({K, P}, &slots);
    bank_->predict(x.data(), predictions, slots);
    return nb::make_tuple(one, other);
  }
  Result predict(Floats X) {
    return rows(X, {bank_->outputs.size()}, &Bank::predict_rows);
  }
  Result predict_slots(Floats X) {
    return rows(X, {bank_->outputs.size(), std::size_t(bank_->spec().slots)}, &Bank::predict_slots);
  }
  Result variance_slots(Floats X) {
    return rows(X, {bank_->outputs.size(), std::size_t(bank_->spec().slots)},
                &Bank::variance_slots);
  }

  /// Start at f_p = sum_j coefficients[j, p] k_p(points[j], .): points (m, d), coefficients (m, P).
  void begin(Floats x, std::optional<Floats> points, std::optional<Floats> coefficients) {
    Turn turn(mutex_, owner_);
    if (!points) return bank_->begin(x.data());
    bank_->start_from(points->data(), int(points->shape(0)), coefficients->data());
  }
  /// Let a slot go on from a slot of another bank.
  void take_slot(int slot, PyBank& other, int source) {
    Turn turn(mutex_, owner_);
    bank_->take_slot(slot, *other.bank_, source);
  }
  void start_on_base(int slot) {
    Turn turn(mutex_, owner_);
    bank_->start_on_base(slot);
  }
  void continue_from(PyBank& narrower) {
    Turn turn(mutex_, owner_);
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
  Result dropped() { return by_slot(&Learner::dropped); }
  Result step_ratio() { return by_slot(&Learner::step_ratio); }
  std::vector<std::pair<double, double>> combiner_step() {
    std::vector<std::pair<double, double>> found;
    for (const Bank::Output& output : bank_->outputs) found.push_back(output.combiner->step_ratio());
    return found;
  }

  /// All numbers that the next sample depends on, by name.
  nb::dict state() {
    Turn turn(mutex_, owner_);
    return state_arrays(*bank_);
  }

  /// Continue from what `state` returned; a state that is refused changes nothing.
  void restore(const nb::dict& arrays) {
    Turn turn(mutex_, owner_);
    auto other = std::make_unique<Bank>(*bank_);
    write_state(*other, arrays);
    bank_ = std::move(other);
  }

 private:
  static Trace read_trace(const nb::dict& arrays) {
    auto find = [&](const char* name) -> double* {
      if (!arrays.contains(name)) return nullptr;
      return nb::cast<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(arrays[name]).data();
    };
    return {find("predictions"), find("cost"),      find("loss"),
            find("bound_gap"),   find("cumulative_cost"), find("regret"),
            find("weights"),     find("slot_cost"), find("slot_loss"),
            find("slot_predictions"), find("curvature"), find("window_loss")};
  }

  /// (K, P): a number of every slot.
  Result by_slot(Lanes (Learner::*method)(int) const) {
    Turn turn(mutex_, owner_);
    const std::size_t outputs = bank_->outputs.size(), slots = bank_->spec().slots;
    double* data;
    Result result = new_array({outputs, slots}, &data);
    for (const Pack& pack : bank_->packs)
      for (std::size_t k = 0; k < outputs; ++k) {
        const Lanes value = (pack.learner.operator->()->*method)(int(k));
        for (std::size_t i = 0; i < pack.slots.size(); ++i)
          data[k * slots + pack.slots[i]] = value[int(i)];
      }
    return result;
  }

  Result rows(Floats X, Shape shape, void (Bank::*method)(const double*, std::size_t, double*)) {
    Turn turn(mutex_, owner_);
    shape.insert(shape.begin(), X.shape(0));
    double* data;
    Result result = new_array(shape, &data);
    nb::gil_scoped_release unlocked;
    (bank_.get()->*method)(X.data(), X.shape(0), data);
    return result;
  }

  /// All of it or, if a user's function raises an error, nothing: undo is a copy.
  template <class Action>
  void whole(Action action) {
    if (!may_fail_) return action();
    auto before = std::make_unique<Bank>(*bank_);
    try {
      action();
    } catch (...) {
      bank_ = std::move(before);
      throw;
    }
  }

  std::unique_ptr<Bank> bank_;
  bool may_fail_ = false;
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

}  // namespace

void kb::bind_bank(nb::module_& m) {
  nb::class_<PyBank>(m, "Bank")
      .def(nb::init<const nb::dict&>(), "description"_a)
      .def("learn", &PyBank::learn, "X"_a, "y"_a, "past"_a.none(), "trace"_a)
      .def("predict_one", &PyBank::predict_one, "x"_a)
      .def("predict", &PyBank::predict, "X"_a)
      .def("predict_slots", &PyBank::predict_slots, "X"_a)
      .def("variance_slots", &PyBank::variance_slots, "X"_a)
      .def("state", &PyBank::state)
      .def("restore", &PyBank::restore, "arrays"_a)
      .def("copy", [](const PyBank& bank) { return new PyBank(bank); })
      .def("begin", &PyBank::begin, "x"_a, "points"_a.none(), "coefficients"_a.none())
      .def("take_slot", &PyBank::take_slot, "slot"_a, "other"_a, "source"_a)
      .def("start_on_base", &PyBank::start_on_base, "slot"_a)
      .def("continue_from", &PyBank::continue_from, "narrower"_a)
      .def("models", &PyBank::models)
      .def("dropped", &PyBank::dropped)
      .def("step_ratio", &PyBank::step_ratio)
      .def("combiner_step", &PyBank::combiner_step);
}
