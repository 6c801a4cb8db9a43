// The parts of AutoBank's models as Python sees them: loops over rows of NumPy arrays.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "../auto/change_detection.hpp"
#include "../auto/horizons.hpp"
#include "../auto/past.hpp"
#include "../auto/probabilities.hpp"
#include "../auto/scaling.hpp"
#include "convert.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

using Numbers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

/// Refuse an array of another shape: the loops do not look at it again.
template <class NdArray>
void expect(const NdArray& array, const Shape& shape) {
  bool fits = array.ndim() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = array.shape(i) == shape[i];
  if (!fits) throw std::invalid_argument("an array has another shape");
}

/// A new array of rows, filled by fill(t, row).
template <class Fill>
Result new_rows(std::size_t n, std::size_t width, const Fill& fill) {
  double* data;
  Result result = new_array({n, width}, &data);
  for (std::size_t t = 0; t < n; ++t) fill(t, data + t * width);
  return result;
}

Bounds read_bounds(const nb::dict& given) {
  return {take<double>(given, "lower"), take<double>(given, "upper")};
}

void write(const Interval& interval, double* out) {
  out[0] = interval.value, out[1] = interval.low, out[2] = interval.high;
}

// --- scaling -------------------------------------------------------------------------------------

Scaling make_scaling(const nb::dict& given) {
  const auto whole = [&](const char* name) { return take<int>(given, name); };
  RowLayout layout{};
  layout.inputs = whole("inputs");
  layout.width = whole("width");
  layout.targets = whole("targets");
  layout.shown = whole("shown");
  layout.seasons = whole("seasons");
  layout.season_column = whole("season_column");
  layout.previous = whole("previous");
  layout.previous_column = whole("previous_column");
  layout.outputs = whole("outputs");
  layout.each = std::max(whole("each"), 1);
  layout.ring = whole("ring");
  layout.target_ring = whole("target_ring");
  layout.relevant_column = whole("relevant_column");
  layout.relevant_sources = take<std::vector<int>>(given, "relevant_sources");
  const auto places = take<Numbers>(given, "places");
  layout.places = Matrix<std::int64_t>(SCALINGS, layout.inputs + layout.targets);
  expect(places, {SCALINGS, std::size_t(layout.inputs + layout.targets)});
  std::copy_n(places.data(), places.size(), layout.places[0]);
  return Scaling(std::move(layout));
}

void bind_scaling(nb::module_& m) {
  using Self = Saved<Scaling>;
  const auto check_rows = [](const Self& self, const Floats& X, const Floats& past) {
    expect(X, {X.shape(0), std::size_t(self.layout().inputs)});
    expect(past, {X.shape(0), std::size_t(self.layout().past())});
  };
  const auto target = [](const Self& self, int k) {
    if (k < 0 || k >= std::max(self.layout().outputs, 1)) throw nb::index_error("no such target");
    return k;
  };
  bind_object<Scaling, make_scaling>(m, "Scaling")
      .def("fit_inputs",  // from first rows X (n, inputs)
           [](Self& self, Floats X) {
             expect(X, {X.shape(0), std::size_t(self.layout().inputs)});
             self.fit_inputs(X.data(), int(X.shape(0)));
           },
           "X"_a)
      .def("fit_target",
           [=](Self& self, Floats y, int k) {
             self.target(target(self, k)).fit(y.data(), int(y.size()));
           },
           "y"_a, "k"_a = 0)
      .def("scale_rows",
           [=](Self& self, Floats X, Floats past) {
             check_rows(self, X, past);
             return new_rows(X.shape(0), self.layout().width, [&](std::size_t t, double* out) {
               self.scale(X.data() + t * X.shape(1), past.data() + t * past.shape(1), out);
             });
           },
           "X"_a, "past"_a)
      .def("scale_targets",
           [=](Self& self, Floats y, int k) {
             double* out;
             Result result = new_array({y.size()}, &out);
             for (std::size_t i = 0; i < y.size(); ++i)
               out[i] = self.scaled_target(y.data()[i], target(self, k));
             return result;
           },
           "y"_a, "k"_a = 0)
      .def("add_inputs",  // -> the columns that have a new level
           [](Self& self, Floats x) {
             expect(x, {std::size_t(self.layout().inputs)});
             std::vector<int> levels;
             self.add_inputs(x.data(), levels);
             return levels;
           },
           "x"_a)
      .def("outlier_level",
           [=](Self& self, double y, int k) { return self.outlier_level(y, target(self, k)); },
           "y"_a, "k"_a = 0)
      .def("add_target",
           [=](Self& self, double y, int k) { self.add_target(y, target(self, k)); }, "y"_a,
           "k"_a = 0)
      .def("hold_target",
           [=](Self& self, double y, int k) { return self.hold_target(y, target(self, k)); }, "y"_a,
           "k"_a = 0)
      .def("shift_target",
           [=](Self& self, double shift, int k) { self.shift_target(shift, target(self, k)); },
           "shift"_a, "k"_a = 0)
      .def("widen_target", [=](Self& self, int k) { self.widen_target(target(self, k)); }, "k"_a = 0)
      .def("restart_target", [=](Self& self, int k) { self.restart_target(target(self, k)); },
           "k"_a = 0)
      .def("target_scale",  // -> center and scale
           [=](Self& self, int k) {
             const Column own = self.target(target(self, k));
             return std::pair<double, double>(own.center, own.scale);
           },
           "k"_a = 0)
      .def("target_shift", [=](Self& self, int k) { return self.target_shift[target(self, k)]; },
           "k"_a = 0)
      .def("set_target_shift",
           [=](Self& self, double shift, int k) { self.target_shift[target(self, k)] = shift; },
           "shift"_a, "k"_a = 0)
      .def("set_relevance",
           [](Self& self, Floats relevance) {
             expect(relevance, {self.relevance.size()});
             self.relevance.assign(relevance.data(), relevance.data() + relevance.size());
           },
           "relevance"_a)
      .def("continue_from", [](Self& self, const Self& before) { self.continue_from(before); },
           "before"_a);
}

// --- seasons -------------------------------------------------------------------------------------

SeasonHistory make_seasons(const nb::dict& given) {
  return {take<int>(given, "size"), take<int>(given, "places")};
}

void bind_seasons(nb::module_& m) {
  using Self = Saved<SeasonHistory>;
  bind_object<SeasonHistory, make_seasons>(m, "SeasonHistory")
      .def("set_periods",  // those that are not 0 come first
           [](Self& self, const std::vector<std::int64_t>& periods) {
             if (periods.size() > self.periods.size())
               throw std::invalid_argument("there are too many periods");
             std::fill(self.periods.begin(), self.periods.end(), 0);
             std::copy(periods.begin(), periods.end(), self.periods.begin());
           },
           "periods"_a)
      .def("append",  // the newest targets of a stream of `rows` rows
           [](Self& self, std::int64_t rows, Floats targets) {
             const auto n = std::int64_t(targets.size());
             for (std::int64_t i = 0; i < n; ++i) self.append(rows - n + i + 1, targets.data()[i]);
           },
           "rows"_a, "targets"_a)
      .def("recall",
           [](const Self& self, std::int64_t rows, Numbers positions, Numbers known) {
             expect(known, {positions.size()});
             return new_rows(positions.size(), self.width(), [&](std::size_t t, double* out) {
               const std::int64_t position = positions.data()[t], last = known.data()[t];
               if (last > std::min(position, rows))
                 throw std::invalid_argument("a row cannot know its own target");
               self.recall(rows, position, last, out);
             });
           },
           "rows"_a, "positions"_a, "known"_a);
  m.def("test_periods",  // -> variance factor, (n // 4 + 1, 4): contrast, height, and whether they last
        [](Floats values) {
          const PeriodTests tests = test_periods({values.data(), values.data() + values.size()});
          Result rows = new_rows(tests.of_period.size(), 4, [&](std::size_t period, double* out) {
            const PeriodTest& test = tests.of_period[period];
            out[0] = test.contrast, out[1] = test.height;
            out[2] = test.contrast_lasts, out[3] = test.height_lasts;
          });
          return nb::make_tuple(tests.variance_factor, rows);
        },
        "values"_a);
}

// --- predictions and intervals -------------------------------------------------------------------

Intervals make_intervals(const nb::dict& given) { return Intervals(read_bounds(given)); }

void bind_intervals(nb::module_& m) {
  using Self = Saved<Intervals>;
  const auto check_rows = [](const Floats& scores, const Floats& deviations, const Floats& scale) {
    expect(deviations, {scores.size()});
    expect(scale, {scores.size(), 2});
  };
  bind_object<Intervals, make_intervals>(m, "Intervals")
      .def("predict",  // -> (n, 3): predictions and the ends of their intervals
           [=](Self& self, Floats scores, Floats deviations, Floats scale, double tail) {
             check_rows(scores, deviations, scale);
             return new_rows(scores.size(), 3, [&](std::size_t t, double* out) {
               const double* own = scale.data() + 2 * t;
               write(self.predict(scores.data()[t], deviations.data()[t], own[0], own[1], tail), out);
             });
           },
           "scores"_a, "deviations"_a, "scale"_a, "tail"_a)
      .def("predict_and_score",  // each before the next is predicted; -> the same, errors (n,)
           [=](Self& self, Floats scores, Floats deviations, Floats scale, Floats y, double tail) {
             check_rows(scores, deviations, scale);
             expect(y, {scores.size()});
             double* errors;
             Result out_errors = new_array({scores.size()}, &errors);
             Result rows = new_rows(scores.size(), 3, [&](std::size_t t, double* out) {
               const double mean = scale.data()[2 * t], sd = scale.data()[2 * t + 1];
               write(self.predict(scores.data()[t], deviations.data()[t], mean, sd, tail), out);
               errors[t] = self.score(out[0], y.data()[t], mean, sd);
             });
             return nb::make_tuple(rows, out_errors);
           },
           "scores"_a, "deviations"_a, "scale"_a, "y"_a, "tail"_a)
      .def("score",
           [](Self& self, double predicted, double y, double mean, double sd, bool far, double delay,
              std::optional<Floats> ends) {
             if (ends) expect(*ends, {INTERVAL_ENDS});
             return self.score(predicted, y, mean, sd, far, delay, ends ? ends->data() : nullptr);
           },
           "predicted"_a, "y"_a, "mean"_a, "sd"_a, "far"_a = false, "delay"_a = 0.0,
           "ends"_a = nb::none())
      .def("ends",  // (25,): what intervals are made of now
           [](Self& self) {
             double* out;
             Result result = new_array({INTERVAL_ENDS}, &out);
             self.write_ends(out);
             return result;
           })
      .def("skip", &Intervals::skip, "y"_a, "mean"_a, "sd"_a)
      .def("set_range",
           [](Self& self, double low, double high) {
             self.stats().low = low, self.stats().high = high;
           },
           "low"_a, "high"_a)
      .def_prop_ro("rows", [](Self& self) { return self.stats().rows; })
      .def_prop_ro("variance", [](Self& self) { return self.stats().variance; })
      .def_prop_ro("loss", [](Self& self) { return self.stats().loss; })
      .def_prop_ro("baseline_loss", [](Self& self) { return self.stats().baseline_loss; });
  m.def("weighted_std",  // (n,): of values (n, P) around centers (n,), by weights (n, P)
        [](Floats values, Floats centers, Floats weights) {
          const std::size_t n = centers.size(), slots = values.shape(1);
          expect(values, {n, slots});
          expect(weights, {n, slots});
          double* out;
          Result result = new_array({n}, &out);
          for (std::size_t t = 0; t < n; ++t)
            out[t] = weighted_std(values.data() + t * slots, centers.data()[t],
                                  weights.data() + t * slots, int(slots));
          return result;
        },
        "values"_a, "centers"_a, "weights"_a);
}

// --- probabilities -------------------------------------------------------------------------------

Probabilities make_probabilities(const nb::dict& given) {
  return Probabilities(take<int>(given, "scores"));
}

void bind_probabilities(nb::module_& m) {
  using Self = Saved<Probabilities>;
  const auto label_of = [](const Self& self, double label) {
    if (!(0.0 <= label && label < self.classes())) throw std::invalid_argument("no such class");
    return int(label);
  };
  const auto resize = [](Self& self, int scores, void (Probabilities::*method)(int)) {
    (self.*method)(scores);
    self.settings = nb::dict();
    self.settings["scores"] = scores;
  };
  bind_object<Probabilities, make_probabilities>(m, "Probabilities")
      .def_prop_ro("scores", [](const Self& self) { return self.scores(); })
      .def("start", [=](Self& self, int scores) { resize(self, scores, &Probabilities::start); },
           "scores"_a)
      .def("grow", [=](Self& self, int scores) { resize(self, scores, &Probabilities::grow); },
           "scores"_a)
      .def("predict",  // -> (n, classes)
           [](Self& self, Floats scores) {
             const std::size_t n = scores.shape(0), width = self.scores();
             expect(scores, {n, width});
             return new_rows(n, self.classes(), [&](std::size_t t, double* out) {
               self.predict(scores.data() + t * width, out);
             });
           },
           "scores"_a)
      .def("update",
           [=](Self& self, Floats scores, Floats labels) {
             const std::size_t n = labels.size(), width = self.scores();
             expect(scores, {n, width});
             for (std::size_t t = 0; t < n; ++t)
               self.update(scores.data() + t * width, label_of(self, labels.data()[t]));
           },
           "scores"_a, "labels"_a)
      .def("predict_and_update",  // each before the next is predicted; -> (n, classes)
           [=](Self& self, Floats scores, Floats labels, double delay) {
             const std::size_t n = labels.size(), width = self.scores();
             expect(scores, {n, width});
             return new_rows(n, self.classes(), [&](std::size_t t, double* out) {
               const double* row = scores.data() + t * width;
               self.predict(row, out);
               self.update(row, label_of(self, labels.data()[t]), delay);
             });
           },
           "scores"_a, "labels"_a, "delay"_a = 0.0);
}

// --- changes -------------------------------------------------------------------------------------

ChangeDetector make_detector(const nb::dict& given) {
  return {take<int>(given, "slots"), take<int>(given, "recent"), take<double>(given, "limit")};
}

void bind_detector(nb::module_& m) {
  using Self = Saved<ChangeDetector>;
  bind_object<ChangeDetector, make_detector>(m, "ChangeDetector")
      .def("detect",  // errors (n,), weights (n, slots) -> the signals: row and what has changed
           [](Self& self, Floats errors, Floats weights) {
             const std::size_t n = errors.size(), slots = self.slots();
             expect(weights, {n, slots});
             std::vector<std::pair<std::size_t, const char*>> signals;
             for (std::size_t t = 0; t < n; ++t) {
               const int error = self.see_error(errors.data()[t]);
               if (error != 0) signals.emplace_back(t, error > 0 ? "error grew" : "error fell");
               if (self.see_weights(weights.data() + t * slots)) signals.emplace_back(t, "weights");
             }
             return signals;
           },
           "errors"_a, "weights"_a)
      .def_prop_ro("long_mean",
                   [](const Self& self) {
                     return copied(self.long_mean(), {std::size_t(self.slots())});
                   })
      .def("restart_weights",
           [](Self& self, int slots) {
             self.restart_weights(slots);
             nb::dict settings;
             settings.update(self.settings);
             settings["slots"] = slots;
             self.settings = settings;
           },
           "slots"_a);
}

// --- forecasts -----------------------------------------------------------------------------------

HorizonIntervals make_horizon_intervals(const nb::dict& given) {
  return {take<std::vector<int>>(given, "horizons"), read_bounds(given),
          take<bool>(given, "in_range")};
}

HorizonStacking make_horizon_stacking(const nb::dict& given) {
  const auto prices = take<std::vector<double>>(given, "prices");
  return {take<std::vector<int>>(given, "horizons"), {prices.begin(), prices.end()},
          take<int>(given, "known")};
}

void bind_horizons(nb::module_& m) {
  using Limits = Saved<HorizonIntervals>;
  bind_object<HorizonIntervals, make_horizon_intervals>(m, "HorizonIntervals")
      .def("forecast",  // -> (H, 3): forecasts and the ends of their intervals
           [](Limits& self, Floats points, Floats deviations, double tail) {
             const std::size_t outputs = self.outputs();
             expect(points, {outputs});
             expect(deviations, {outputs});
             return new_rows(outputs, 3, [&](std::size_t k, double* out) {
               write(self.forecast(int(k), points.data()[k], deviations.data()[k], tail), out);
             });
           },
           "points"_a, "deviations"_a, "tail"_a)
      .def("issue",  // forecasts (H, 3), baselines (H, 2)
           [](Limits& self, std::int64_t moment, Floats forecasts, Floats baselines) {
             const std::size_t outputs = self.outputs();
             expect(forecasts, {outputs, 3});
             expect(baselines, {outputs, 2});
             for (std::size_t k = 0; k < outputs; ++k) {
               const double* own = forecasts.data() + 3 * k;
               self.issue(int(k), moment, {own[0], own[1], own[2]}, baselines.data() + 2 * k);
             }
           },
           "moment"_a, "forecasts"_a, "baselines"_a)
      .def("score",  // y (H,), which is `spike` more than what is believed
           [](Limits& self, std::int64_t moment, Floats y, double target, std::int64_t waiting,
              double mean, double sd, double spike) {
             expect(y, {std::size_t(self.outputs())});
             for (int k = 0; k < self.outputs(); ++k)
               self.score(k, moment, y.data()[k], target, y.data()[k] - spike,
                          std::min(waiting, moment), mean, sd);
           },
           "moment"_a, "y"_a, "target"_a, "waiting"_a, "mean"_a, "sd"_a, "spike"_a = 0.0)
      // (H, 7): of scored forecasts, their number and the sums of squared errors, of those of the last
      // value and of that of the phase, of absolute errors, of targets inside intervals, and of widths
      .def_prop_ro("sums",
                   [](Limits& self) {
                     const int totals = HorizonIntervals::TOTALS;
                     return nb::cast(new_rows(self.outputs(), 7, [&](std::size_t k, double* out) {
                       out[0] = self.stats(int(k)).rows;
                       out[1] = self.stats(int(k)).loss;
                       std::copy_n(self.totals(int(k)), totals, out + 2);
                     }));
                   })
      .def("set_range",
           [](Limits& self, double low, double high) {
             for (int k = 0; k < self.outputs(); ++k)
               self.stats(k).low = low, self.stats(k).high = high;
           },
           "low"_a, "high"_a);

  using Stacking = Saved<HorizonStacking>;
  bind_object<HorizonStacking, make_horizon_stacking>(m, "HorizonStacking")
      .def("learn",  // left (H,)
           [](Stacking& self, std::int64_t moment, std::int64_t waiting, Floats left, double target) {
             expect(left, {std::size_t(self.outputs())});
             for (int k = 0; k < self.outputs(); ++k)
               self.learn(k, moment, std::min(waiting, moment), left.data()[k], target);
           },
           "moment"_a, "waiting"_a, "left"_a, "target"_a)
      .def("combine",  // (H, slots) -> (H, 2): combined forecasts, deviations of the slots around them
           [](const Stacking& self, Floats forecasts) {
             const std::size_t outputs = self.outputs(), slots = self.slots();
             expect(forecasts, {outputs, slots});
             return new_rows(outputs, 2, [&](std::size_t k, double* out) {
               const auto combined = self.combine(int(k), forecasts.data() + k * slots);
               out[0] = combined.value, out[1] = combined.deviation;
             });
           },
           "forecasts"_a)
      .def("keep",
           [](Stacking& self, std::int64_t moment, Floats forecasts) {
             const std::size_t outputs = self.outputs(), slots = self.slots();
             expect(forecasts, {outputs, slots});
             for (std::size_t k = 0; k < outputs; ++k)
               self.keep(int(k), moment, forecasts.data() + k * slots);
           },
           "moment"_a, "forecasts"_a)
      .def("forecasts",  // (H, slots): those that were made at a moment
           [](const Stacking& self, std::int64_t moment) {
             return new_rows(self.outputs(), self.slots(), [&](std::size_t k, double* out) {
               std::copy_n(self.forecasts(int(k), moment), self.slots(), out);
             });
           },
           "moment"_a)
      .def_prop_ro("share",  // (H,)
                   [](const Stacking& self) {
                     std::vector<double> shares;
                     for (int k = 0; k < self.outputs(); ++k) shares.push_back(self.share(k));
                     return copied(shares.data(), {shares.size()});
                   })
      .def("shares_due",  // (H,): those of the forecasts whose target is that of a moment, 0 if none
           [](const Stacking& self, std::int64_t moment) {
             std::vector<double> shares;
             for (int k = 0; k < self.outputs(); ++k) shares.push_back(self.share_due(k, moment));
             return copied(shares.data(), {shares.size()});
           },
           "moment"_a);
}

}  // namespace

void kb::bind_auto(nb::module_& m) {
  bind_scaling(m);
  bind_seasons(m);
  bind_intervals(m);
  bind_probabilities(m);
  bind_detector(m);
  bind_horizons(m);
  m.def("is_within",  // whether all numbers are at most so large; NaN is not
        [](Floats numbers, double most) {
          bool within = true;
          for (std::size_t i = 0; i < numbers.size(); ++i)
            within = within && std::fabs(numbers.data()[i]) <= most;
          return within;
        },
        "numbers"_a, "most"_a);
  m.def("normal_quantile", &normal_quantile, "p"_a);
  m.attr("TAILS") = copied(TAILS, {TRACKED});
  m.attr("CHANGE_AFTER") = CHANGE_AFTER;
  m.attr("FAR_DEVIATIONS") = FAR_DEVIATIONS;
  m.attr("SEASON_PAST") = SEASON_PAST;
  m.attr("SEASON_INPUTS") = SEASON_INPUTS;
  m.attr("RECALLED") = RECALLED;
}
