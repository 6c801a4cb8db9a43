// The models of an AutoBank as Python sees them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <numeric>

#include "../auto/class_model.hpp"
#include "../auto/number_model.hpp"
#include "../auto/prediction.hpp"
#include "convert.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

Array<double> read(const Floats& array) { return {array.data(), array.data() + array.size()}; }

Past make_past(const nb::dict& settings) {
  return {take<int>(settings, "targets"), take<int>(settings, "remembered"), take<int>(settings, "previous"),
          take<int>(settings, "places"), take<int>(settings, "season_size")};
}

Replay make_replay(const nb::dict& settings, const Past& past) {
  return {take<int>(settings, "replay"), take<std::int64_t>(settings, "replay_until"),
          take<int>(settings, "inputs"), past.width(), take<int>(settings, "outputs")};
}

NumberModel make_model(const nb::dict& settings, NumberModel*) {
  Past past = make_past(settings);
  Replay replay = make_replay(settings, past);
  return {take<int>(settings, "outputs"), std::move(past), std::move(replay),
          Bounds{take<double>(settings, "lower"), take<double>(settings, "upper")},
          take<std::vector<double>>(settings, "levels"), take<int>(settings, "recent"),
          take<double>(settings, "limit")};
}

ClassModel make_model(const nb::dict& settings, ClassModel*) {
  Past past = make_past(settings);
  Replay replay = make_replay(settings, past);
  return {std::move(past), std::move(replay), take<int>(settings, "classes"), take<int>(settings, "lags"),
          take<int>(settings, "recent"), take<double>(settings, "limit")};
}

/// A model with what Python made it of.
template <class Model>
class PyModel {
 public:
  explicit PyModel(nb::dict settings)
      : settings_(std::move(settings)),
        model(make_model(settings_, (Model*)nullptr)),
        row_(model.replay.inputs.columns()),
        targets_(model.replay.targets.columns()) {}

 private:
  nb::dict settings_;
  static constexpr bool has_classes = std::is_same_v<Model, ClassModel>;

 public:
  Model model;
  /// After how many rows Python has something to do, such as a restart; 0 if that is not known.
  std::int64_t due_at = 0;

  int inputs() const { return model.replay.inputs.columns(); }

  void use_scaling(std::shared_ptr<Saved<Scaling>> scaling) {
    const RowLayout& layout = scaling->layout();
    if (layout.inputs != inputs() || layout.past() != model.past.width())
      throw std::invalid_argument("a scaling for other rows");
    model.scaling = std::move(scaling);
  }
  void use_slots(int pool, const std::vector<int>& members) {
    for (int member : members)
      if (member < 0 || member >= pool) throw std::invalid_argument("no such slot");
    model.use_slots(pool, members);
  }
  void use_banks(const nb::list& banks) {
    std::vector<std::shared_ptr<ModelBank>> parts;
    for (nb::handle bank : banks) parts.push_back(model_bank(bank, model.scaling->layout().width));
    if constexpr (has_classes)
      model.banks = std::move(parts);
    else
      model.bank = parts.empty() ? nullptr : parts.at(0);
  }

  Result past_row(std::int64_t waiting) const {
    return filled({std::size_t(model.past.width())},
                  [&](double* row) { model.past.write(model.rows, waiting, row); });
  }

  /// The prediction of the row that comes after those that wait for their targets.
  Prediction predict_next(Floats x, std::int64_t waiting, double tail) {
    expect(x, {std::size_t(inputs())});
    Prediction prediction;
    predict(x.data(), waiting, tail, prediction);
    return prediction;
  }

  /// The output of the prediction of a row, which is kept until its target comes. None if the row is not
  /// one of numbers in range, as `read_row` takes them, or is the first: it has to be checked in Python.
  std::optional<nb::list> predict_one(nb::handle x, nb::handle names, Pending& pending, double tail) {
    if (!read_inputs(x, names)) return {};
    Prediction prediction = std::exchange(spare_, {});
    predict(row_.data(), pending.waiting_before(row_, model.rows), tail, prediction);
    nb::list output;
    for (double number : prediction.output) output.append(number);
    pending.add(row_, std::move(prediction), false);
    return output;
  }

  /// Learn such a row with its targets, or the number of its class. False, and nothing has changed, if it
  /// has to be checked, if a bank calls Python, or if Python has something to do after it.
  bool learn_one(nb::handle x, nb::handle names, nb::handle y, Pending& pending, double tail) {
    if (model.rows + 1 >= due_at || !is_local() || !read_inputs(x, names) || !read_targets(y))
      return false;
    std::optional<Prediction> earlier = pending.pop(row_);
    if (earlier) expect_fitting(*earlier);
    advance(row_.data(), targets_.data(), 1, tail, earlier ? &*earlier : nullptr, {});
    if (earlier) spare_ = std::move(*earlier);
    warn();
    return true;
  }

  /// (n, 3 K), or (n, classes). late : as in NumberModel::predict
  Result predict_rows(Floats X, Floats pasts, bool late, double tail) {
    const std::size_t n = X.shape(0);
    expect(X, {n, std::size_t(inputs())});
    expect(pasts, {n, std::size_t(model.past.width())});
    return filled({n, output_width()}, [&](double* outputs) {
      if constexpr (has_classes)
        model.predict_rows(X.data(), pasts.data(), int(n), outputs);
      else
        model.predict_rows(X.data(), pasts.data(), int(n), late, tail, outputs);
    });
  }

  /// Predict and learn the first rows, at most until something is due; -> how many, and what is recorded
  /// of them, unless they were predicted before: outputs, weights, predictions of slots or None.
  nb::tuple step(Floats X, Floats y, double tail, const Prediction* made, bool slots) {
    expect(X, {X.shape(0), std::size_t(inputs())});
    const auto n = std::min(X.shape(0), std::size_t(std::max<std::int64_t>(due_at - model.rows, 1)));
    expect(y, {X.shape(0), targets_.size()});
    if (made) expect_fitting(*made);
    if constexpr (has_classes)
      for (std::size_t t = 0; t < n; ++t)
        if (!(0.0 <= y.data()[t] && y.data()[t] < model.classes()))
          throw std::invalid_argument("no such class");
    StepRecord record{};
    const nb::tuple arrays = make_record(made ? 0 : n, slots, record);
    const int done = advance(X.data(), y.data(), int(n), tail, made, made ? StepRecord{} : record);
    warn();
    return nb::make_tuple(done, arrays);
  }

  /// What a step would record of a prediction that was made just now.
  nb::tuple record(const Prediction& prediction) const {
    expect_fitting(prediction);
    StepRecord record{};
    nb::tuple arrays = make_record(1, true, record);
    model.write_record(prediction, record);
    return arrays;
  }

  /// Signals of change since this was last called: row, what, and of which target or column.
  nb::list take_signals() {
    static const char* names[] = {"error grew", "error fell", "weights", "target level", "input level"};
    nb::list signals;
    for (const Signal& signal : model.signals)
      signals.append(nb::make_tuple(signal.row, names[int(signal.what)], signal.of));
    model.signals.clear();
    return signals;
  }

  /// Inputs, pasts, targets, numbers of the kept rows, and how many were learned when each was predicted.
  nb::tuple latest() const {
    const Replay& replay = model.replay;
    const std::size_t count = replay.count(model.rows);
    const std::int64_t first = model.rows - std::int64_t(count);
    const auto rows_of = [&](const auto& rows) {
      return new_rows(count, rows.columns(), [&](std::size_t t, double* out) {
        std::copy_n(rows[replay.at(first + std::int64_t(t))], rows.columns(), out);
      });
    };
    const Result numbers =
        filled({count}, [&](double* out) { std::iota(out, out + count, double(first)); });
    const Result predicted_at = filled({count}, [&](double* out) {
      for (std::size_t t = 0; t < count; ++t)
        out[t] = double(replay.predicted_at[replay.at(first + std::int64_t(t))]);
    });
    return nb::make_tuple(rows_of(replay.inputs), rows_of(replay.past), rows_of(replay.targets),
                          numbers, predicted_at);
  }

  void set_periods(const std::vector<std::int64_t>& periods) {
    for (SeasonHistory& season : model.past.seasons) kb::set_periods(season, periods);
  }
  std::vector<std::int64_t> periods() const {
    const Array<std::int64_t>& places = model.past.seasons[0].periods;
    std::vector<std::int64_t> periods(places.begin(), places.end());
    std::erase(periods, 0);
    return periods;
  }
  /// The last targets k, the oldest first.
  nb::any season_targets(int k) const {
    return copied(model.past.seasons.at(k).newest(model.rows));
  }

  void add_inputs(int count) {
    model.add_inputs(count);
    row_.resize(inputs());
    settings_ = nb::cast<nb::dict>(settings_.attr("copy")());
    settings_["inputs"] = inputs();
  }

  nb::dict state() { return state_arrays(model); }
  /// Write a state to a model that has learned nothing. Inputs, and some of several targets, may be
  /// missing; all other numbers are finite.
  void restore(const nb::dict& arrays) {
    if constexpr (has_classes) {
      const Floats curves = take<Floats>(arrays, "probabilities/curves");
      if (curves.ndim() != 2) throw StateRefused("its probabilities have no such curves");
      model.probabilities.start(int(curves.shape(0)));
    } else {
      int held = 0;
      while (arrays.contains(("held/row" + std::to_string(held) + "/inputs").c_str())) ++held;
      model.allocate(held);
    }
    write_state(model, arrays);
    for (const Entry& entry : list_state(model)) {
      const auto ends_with = [&](const char* end) { return entry.name.ends_with(end); };
      if (ends_with("inputs") || ends_with("past") || ends_with("lagged")) continue;
      if (targets_.size() > 1 && entry.name.find("targets") != std::string::npos) continue;
      if (entry.kind == Number::float64 && !all_finite((const double*)entry.numbers, entry.count()))
        throw StateRefused("its statistics are not numbers: " + entry.name);
    }
  }

  /// Refuse pending predictions that this model cannot have made, of rows of `width` numbers.
  void check_pending(const Pending& pending, std::size_t width) const {
    const std::size_t pool = model.pool();
    const auto fits = [&](const Pending::Item& item) {
      const auto& [rows_before, past, scores, slots, output, more, ends] = item.prediction;
      if (item.row.size() != width || rows_before > model.rows) return false;
      if (past.size() != std::size_t(model.past.width())) return false;
      if (!slots.numbers.empty() && slots.numbers.size() != scores.size() * pool) return false;
      if constexpr (has_classes)  // there may be more outputs and classes by now
        return scores.size() <= std::size_t(model.outputs()) && more.empty() && ends.empty() &&
               output.size() <= std::size_t(model.classes());
      else
        return scores.size() == targets_.size() && output.size() == 3 * targets_.size() &&
               more.size() == 2 * targets_.size() * model.levels().size() && ends.size() == ends_size();
    };
    if (!std::all_of(pending.items.begin(), pending.items.end(), fits))
      throw StateRefused("its pending predictions do not fit its settings");
  }

 private:
  void predict(const double* x, std::int64_t waiting, double tail, Prediction& prediction) {
    Array<double> past(model.past.width());
    model.past.write(model.rows, waiting, past.data());
    if constexpr (has_classes)
      model.predict(x, past.data(), prediction);
    else
      model.predict(x, past.data(), waiting > 0, tail, prediction);
  }

  /// How many numbers a prediction keeps of its intervals.
  std::size_t ends_size() const { return has_classes ? 0 : targets_.size() * INTERVAL_ENDS; }

  /// Refuse a prediction whose arrays are of other lengths than this model's.
  void expect_fitting(const Prediction& prediction) const {
    if (int(prediction.past.size()) != model.past.width() || prediction.ends.size() != ends_size() ||
        (prediction.slots.rows() > 0 && prediction.slots.columns() != model.pool()))
      throw std::invalid_argument("a prediction of other rows");
  }

  /// How many numbers a prediction is: with ends of intervals, or one for each class.
  std::size_t output_width() const {
    if constexpr (has_classes)
      return model.classes();
    else
      return 3 * targets_.size();
  }

  /// Arrays for n rows, which `record` points to.
  nb::tuple make_record(std::size_t n, bool slots, StepRecord& record) const {
    const std::size_t pool = model.pool();
    std::size_t outputs = targets_.size();
    if constexpr (has_classes) outputs = model.outputs();
    const Result rows = new_array({n, output_width()}, &record.outputs);
    const Result weights = new_array({n, targets_.size(), pool}, &record.weights);
    nb::object by_slot = nb::none();
    if (slots) by_slot = nb::cast(new_array({n, outputs, pool}, &record.slots));
    return nb::make_tuple(rows, weights, by_slot);
  }

  int advance(const double* X, const double* y, int n, double tail, const Prediction* made,
              const StepRecord& record) {
    if constexpr (has_classes) {
      const bool learns = take<int>(settings_, "first_restart") <= model.rows;
      return model.step(X, y, n, learns, made, record);
    } else {
      return model.step(X, y, n, tail, made, record);
    }
  }

  /// action(bank) for all banks.
  template <class Action>
  void for_banks(const Action& action) const {
    if constexpr (has_classes)
      for (const auto& bank : model.banks) action(*bank);
    else if (model.bank)
      action(*model.bank);
  }
  bool is_local() const {
    bool local = true;
    for_banks([&](const ModelBank& bank) { local = local && bank.is_local(); });
    return local;
  }
  void warn() {
    for_banks([](ModelBank& bank) { bank.warn(); });
  }

  /// Whether x was copied to row_: numbers in range, of which some may be missing.
  bool read_inputs(nb::handle x, nb::handle names) {
    return model.rows > 0 && read_row(x, row_.data(), row_.size(), names) &&
           std::all_of(row_.begin(), row_.end(),
                       [](double number) { return !(std::fabs(number) > LARGEST); });
  }

  /// Whether y was copied to targets_: those of a row within their bounds, of which one of several may be
  /// missing; or the number of a class.
  bool read_targets(nb::handle y) {
    if (!read_row(y, targets_.data(), targets_.size())) return false;
    const auto allowed = [&](double target) {
      if constexpr (has_classes) {
        return 0.0 <= target && target < model.classes();
      } else {
        if (std::isnan(target)) return targets_.size() > 1;
        const Bounds& bounds = model.tracks[0].intervals.bounds();
        return std::fabs(target) <= LARGEST && bounds.nearest(target) == target;
      }
    };
    return std::all_of(targets_.begin(), targets_.end(), allowed);
  }

  Array<double> row_, targets_;  // of a single row
  Prediction spare_;             // whose arrays the next prediction takes
};

template <class Model>
nb::class_<PyModel<Model>> bind_model(nb::module_& m, const char* name) {
  using Self = PyModel<Model>;
  return nb::class_<Self>(m, name)
      .def("__init__", [](Self* self, const nb::kwargs& settings) { new (self) Self(settings); })
      .def("use_scaling", &Self::use_scaling, "scaling"_a)
      .def("use_slots", &Self::use_slots, "pool"_a, "members"_a)
      .def("restart_weights", [](Self& self) { self.model.restart_weights(); })
      .def("use_banks", &Self::use_banks, "banks"_a)
      .def("past_row", &Self::past_row, "waiting"_a = 0)
      .def("predict_next", &Self::predict_next, "x"_a, "waiting"_a, "tail"_a)
      .def("predict_rows", &Self::predict_rows, "X"_a, "pasts"_a, "late"_a, "tail"_a)
      .def("predict_one", &Self::predict_one, "x"_a.none(), "names"_a.none(), "pending"_a, "tail"_a)
      .def("learn_one", &Self::learn_one, "x"_a.none(), "names"_a.none(), "y"_a.none(), "pending"_a,
           "tail"_a)
      .def("step", &Self::step, "X"_a, "y"_a, "tail"_a, "made"_a.none(), "slots"_a)
      .def("record", &Self::record, "prediction"_a)
      .def("take_signals", &Self::take_signals)
      .def("check_pending", &Self::check_pending, "pending"_a, "width"_a)
      .def_rw("due_at", &Self::due_at)
      .def("latest", &Self::latest)
      .def("set_periods", &Self::set_periods, "periods"_a)
      .def("season_targets", &Self::season_targets, "k"_a = 0)
      .def("add_inputs", &Self::add_inputs, "count"_a)
      .def("state", &Self::state)
      .def("restore", &Self::restore, "arrays"_a)
      .def_prop_ro("periods", &Self::periods)
      .def_prop_ro("past", [](const Self& self) { return self.model.past.width(); })
      .def_prop_ro("known_targets", [](const Self& self) { return self.model.past.known_targets(); })
      .def_prop_ro("previous",
                   [](const Self& self) { return self.model.past.width() - self.model.past.inputs_at(); })
      .def_prop_ro("rows", [](const Self& self) { return self.model.rows; });
}

/// The length of each array of pending predictions, and all their numbers, one after the other:
/// "sizes" (n, 8), of the row, the rows before it and the six arrays of the prediction; and "values".
nb::dict pending_arrays(const Pending& pending) {
  std::vector<std::int64_t> sizes;
  Array<double> values;
  const auto add = [&](const double* numbers, std::size_t count) {
    sizes.push_back(std::int64_t(count));
    values.insert(values.end(), numbers, numbers + count);
  };
  for (const auto& [row, prediction] : pending.items) {
    const double rows_before = double(prediction.rows_before);
    add(row.data(), row.size());
    add(&rows_before, 1);
    add(prediction.past.data(), prediction.past.size());
    add(prediction.scores.data(), prediction.scores.size());
    add(prediction.slots.numbers.data(), prediction.slots.numbers.size());
    for (const Array<double>* part : {&prediction.output, &prediction.more, &prediction.ends})
      add(part->data(), part->size());
  }
  nb::dict arrays;
  arrays["sizes"] = copied(sizes.data(), {pending.items.size(), 8});
  arrays["values"] = copied(values);
  return arrays;
}

/// Add what `pending_arrays` returned.
void read_pending(Pending& pending, const nb::dict& arrays) {
  using Sizes = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
  const auto sizes = take<Sizes>(arrays, "sizes");
  const Floats values = take<Floats>(arrays, "values");
  constexpr std::size_t MOST = 100'001;
  const auto require = [](bool fits) {
    if (!fits) throw StateRefused("its pending predictions have no such arrays");
  };
  require(sizes.ndim() == 2 && sizes.shape(0) <= MOST && sizes.shape(1) == 8 && values.ndim() == 1);
  const double *next = values.data(), *end = next + values.size();
  for (std::size_t i = 0; i < sizes.size(); i += 8) {
    Array<double> parts[8];
    for (int part = 0; part < 8; ++part) {
      const std::int64_t size = sizes.data()[i + part];
      require(0 <= size && size <= end - next);
      parts[part].assign(next, next + size);
      next += size;
    }
    auto& [row, rows_before, past, scores, slots, output, more, ends] = parts;
    require(rows_before.size() == 1 && is_count(rows_before[0]));
    require(slots.empty() || (!scores.empty() && slots.size() % scores.size() == 0));
    const int outputs = slots.empty() ? 0 : int(scores.size());
    Matrix<double> by_output(outputs, outputs ? int(slots.size()) / outputs : 0);
    std::copy(slots.begin(), slots.end(), by_output.numbers.begin());
    const auto rows = std::int64_t(rows_before[0]);
    pending.items.push_back(
        {row, {rows, past, scores, std::move(by_output), output, more, ends}});
  }
  require(next == end);
}

void bind_pending(nb::module_& m) {
  nb::class_<Pending>(m, "Pending")
      .def(nb::init<>())
      .def("waiting_before",
           [](const Pending& self, Floats row, std::int64_t rows) {
             return self.waiting_before(read(row), rows);
           },
           "row"_a, "rows"_a)
      .def("add",
           [](Pending& self, Floats row, const Prediction& prediction, bool distinct) {
             self.add(read(row), prediction, distinct);
           },
           "row"_a, "prediction"_a, "distinct"_a = false)
      .def("append",  // as one of its own, whatever the limit
           [](Pending& self, Floats row, const Prediction& prediction) {
             self.items.push_back({read(row), prediction});
           },
           "row"_a, "prediction"_a)
      .def("pop", [](Pending& self, Floats row) { return self.pop(read(row)); }, "row"_a)
      .def("clear", &Pending::clear)
      .def("expire", [](Pending& self) { self.expired = self.items.size(); })
      .def("add_inputs", &Pending::add_inputs, "count"_a)
      .def("rows",
           [](const Pending& self) {
             nb::list rows;
             for (const Pending::Item& item : self.items) rows.append(copied(item.row));
             return rows;
           })
      .def("state", &pending_arrays)
      .def("restore", &read_pending, "arrays"_a)
      .def("__deepcopy__", [](const Pending& self, nb::handle) { return Pending(self); }, "memo"_a)
      .def("__getstate__",
           [](const Pending& self) {
             return nb::make_tuple(self.limit, self.expired, pending_arrays(self));
           })
      .def("__setstate__",
           [](Pending& self, const nb::tuple& saved) {
             new (&self) Pending{{}, nb::cast<std::size_t>(saved[0]), nb::cast<std::size_t>(saved[1])};
             read_pending(self, nb::cast<nb::dict>(saved[2]));
           })
      .def_rw("limit", &Pending::limit)
      .def_rw("expired", &Pending::expired)
      .def_prop_ro("fresh", &Pending::fresh)
      .def("__len__", [](const Pending& self) { return self.items.size(); });
}

Prediction make_prediction(std::int64_t rows_before, Floats past, Floats scores, Floats slots,
                           Floats output, Floats more, Floats ends) {
  if (slots.ndim() != 2) throw std::invalid_argument("slots (outputs, pool)");
  Matrix<double> own(int(slots.shape(0)), int(slots.shape(1)));
  std::copy_n(slots.data(), slots.size(), own.numbers.data());
  return {rows_before, read(past), read(scores), std::move(own), read(output), read(more), read(ends)};
}

void bind_prediction(nb::module_& m) {
  const auto slots = [](const Prediction& self) {
    const Shape shape = {std::size_t(self.slots.rows()), std::size_t(self.slots.columns())};
    return copied(self.slots.numbers.data(), shape);
  };
  nb::class_<Prediction>(m, "Prediction")
      .def("__init__",
           [](Prediction* self, std::int64_t rows_before, Floats past, Floats scores, Floats slots,
              Floats output, Floats more, Floats ends) {
             new (self) Prediction(
                 make_prediction(rows_before, past, scores, slots, output, more, ends));
           },
           "rows_before"_a, "past"_a, "scores"_a, "slots"_a, "output"_a, "more"_a, "ends"_a)
      .def("__getstate__",
           [=](const Prediction& self) {
             return nb::make_tuple(self.rows_before, copied(self.past), copied(self.scores), slots(self),
                                   copied(self.output), copied(self.more), copied(self.ends));
           })
      .def("__setstate__",
           [](Prediction& self, const nb::tuple& saved) {
             const auto part = [&](int i) { return nb::cast<Floats>(saved[i]); };
             new (&self) Prediction(make_prediction(nb::cast<std::int64_t>(saved[0]), part(1), part(2),
                                                    part(3), part(4), part(5), part(6)));
           })
      .def_ro("rows_before", &Prediction::rows_before)
      .def_prop_ro("past", [](const Prediction& self) { return copied(self.past); })
      .def_prop_ro("scores", [](const Prediction& self) { return copied(self.scores); })
      .def_prop_ro("slots", slots)
      .def_prop_ro("output", [](const Prediction& self) { return copied(self.output); })
      .def_prop_ro("ends", [](const Prediction& self) { return copied(self.ends); })
      .def_prop_rw("more", [](const Prediction& self) { return copied(self.more); },
                   [](Prediction& self, Floats more) { self.more = read(more); });
}

}  // namespace

void kb::bind_models(nb::module_& m) {
  bind_prediction(m);
  bind_pending(m);
  using Numbers = PyModel<NumberModel>;
  bind_model<NumberModel>(m, "NumberModel")
      .def("track",  // -> statistics of target k: rows, unscored, loss, baseline_loss, variance
           [](Numbers& self, int k) {
             TargetTrack& track = self.model.tracks.at(k);
             const ErrorStats stats = track.intervals.stats();
             return nb::make_tuple(stats.rows, track.unscored, stats.loss, stats.baseline_loss,
                                   stats.variance);
           },
           "k"_a = 0)
      // of each target: how many predictions count, the sum of their squared errors, how many rows had a
      // last target, and the sum of squared errors of that one as a prediction
      .def("totals",
           [](Numbers& self) {
             return new_rows(self.model.targets(), 4, [&](std::size_t k, double* out) {
               TargetTrack& track = self.model.tracks[k];
               const ErrorStats stats = track.intervals.stats();
               out[0] = stats.rows - double(track.unscored), out[1] = stats.loss;
               out[2] = stats.rows - 1.0, out[3] = stats.baseline_loss;
             });
           })
      .def("long_mean",  // (pool,): the long running mean of the weights, over all targets
           [](const Numbers& self) {
             const std::size_t targets = self.model.tracks.size(), pool = self.model.pool();
             return filled({pool}, [&](double* out) {
               for (const TargetTrack& track : self.model.tracks)
                 for (std::size_t p = 0; p < pool; ++p) out[p] += track.detector.long_mean()[p];
               for (std::size_t p = 0; p < pool; ++p) out[p] /= double(targets);
             });
           })
      .def_prop_ro("readings",
                   [](const Numbers& self) {
                     return copied(self.model.readings);
                   })
      .def("release", [](Numbers& self) { self.model.held.rows.clear(); })
      .def("add_newest",
           [](Numbers& self, int count) {
             if (!self.model.bank || count < 0 || count > self.model.replay.count(self.model.rows))
               throw std::invalid_argument("no such rows");
             self.model.add_newest(count);
           },
           "count"_a)
      .def("weights",  // (K, pool)
           [](const Numbers& self) {
             const Shape shape = {std::size_t(self.model.targets()), std::size_t(self.model.pool())};
             return filled(shape, [&](double* out) { self.model.write_weights(out); });
           })
      .def_prop_ro("held", [](const Numbers& self) { return self.model.held.rows.size(); });
  using Classes = PyModel<ClassModel>;
  bind_model<ClassModel>(m, "ClassModel")
      .def("add_class", [](Classes& self) { self.model.add_class(); })
      .def("start_scores", [](Classes& self, int n) { self.model.probabilities.start(n); }, "scores"_a)
      .def("grow_scores", [](Classes& self, int n) { self.model.probabilities.grow(n); }, "scores"_a)
      .def_prop_ro("scores", [](const Classes& self) { return self.model.probabilities.scores(); })
      .def("with_labels",  // scaled rows (n, width) as the output of a class sees them
           [](const Classes& self, Floats rows, Floats pasts, int positive) {
             const std::size_t n = rows.shape(0), width = self.model.scaling->layout().width;
             expect(rows, {n, width});
             expect(pasts, {n, std::size_t(self.model.past.width())});
             return filled({n, width}, [&](double* out) {
               self.model.write_labels(rows.data(), pasts.data(), int(n), positive, out);
             });
           },
           "rows"_a, "pasts"_a, "positive"_a)
      .def("weights",  // (pool,)
           [](const Classes& self) {
             return filled({std::size_t(self.model.pool())},
                           [&](double* out) { self.model.write_weights(out); });
           })
      .def("totals",  // the same of wrong labels
           [](const Classes& self) {
             const ClassModel& model = self.model;
             return new_rows(1, 4, [&](std::size_t, double* out) {
               out[0] = double(model.rows - model.unscored), out[1] = model.wrong;
               out[2] = double(model.rows) - 1.0, out[3] = model.last_wrong;
             });
           })
      .def("long_mean",
           [](const Classes& self) {
             const ChangeDetector& detector = self.model.detector;
             return copied(detector.long_mean(), {std::size_t(detector.slots())});
           });
}
