// The parts of AutoBank's models as Python sees them. Those of a row or of a number are called for
// one row at a time: loops over rows are in the models (bindings/models.cpp).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
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

Bounds read_bounds(const nb::dict& settings) {
  return {take<double>(settings, "lower"), take<double>(settings, "upper")};
}

std::tuple<double, double, double> parts_of(const Interval& interval) {
  return {interval.value, interval.low, interval.high};
}

// --- scaling -------------------------------------------------------------------------------------

Scaling make_scaling(const nb::dict& settings) {
  RowLayout layout{};
  const std::pair<const char*, int*> numbers[] = {
      {"inputs", &layout.inputs},
      {"width", &layout.width},
      {"targets", &layout.targets},
      {"shown", &layout.shown},
      {"seasons", &layout.seasons},
      {"season_column", &layout.season_column},
      {"previous", &layout.previous},
      {"previous_column", &layout.previous_column},
      {"outputs", &layout.outputs},
      {"each", &layout.each},
      {"ring", &layout.ring},
      {"target_ring", &layout.target_ring},
      {"relevant_column", &layout.relevant_column},
  };
  for (const auto& [name, number] : numbers) *number = take<int>(settings, name);
  layout.each = std::max(layout.each, 1);
  layout.relevant_sources = take<std::vector<int>>(settings, "relevant_sources");
  const auto places = take<Numbers>(settings, "places");
  layout.places = Matrix<std::int64_t>(SCALINGS, layout.inputs + layout.targets);
  expect(places, {SCALINGS, std::size_t(layout.inputs + layout.targets)});
  std::copy_n(places.data(), places.size(), layout.places[0]);
  return Scaling(std::move(layout));
}

/// action(scaling, arguments ..., k) for a target k that there is.
template <class... Arguments, class Action>
auto for_target(Action action) {
  return [action](Saved<Scaling>& self, Arguments... arguments, int k) {
    if (k < 0 || k >= std::max(self.layout().outputs, 1)) throw nb::index_error("no such target");
    return action(self, arguments..., k);
  };
}

void bind_scaling(nb::module_& m) {
  using Self = Saved<Scaling>;
  const auto expect_rows = [](const Floats& rows, int width) {
    expect(rows, {rows.shape(0), std::size_t(width)});
  };
  bind_object<Scaling, make_scaling>(m, "Scaling")
      .def("fit_inputs",  // from first rows X (n, inputs)
           [=](Self& self, Floats X) {
             expect_rows(X, self.layout().inputs);
             self.fit_inputs(X.data(), int(X.shape(0)));
           },
           "X"_a)
      .def("fit_target", for_target<Floats>([](Self& self, Floats y, int k) {
             self.target(k).fit(y.data(), int(y.size()));
           }), "y"_a, "k"_a = 0)
      .def("scale_rows",
           [=](Self& self, Floats X, Floats past) {
             expect_rows(X, self.layout().inputs);
             expect(past, {X.shape(0), std::size_t(self.layout().past())});
             return new_rows(X.shape(0), self.layout().width, [&](std::size_t t, double* out) {
               self.scale(X.data() + t * X.shape(1), past.data() + t * past.shape(1), out);
             });
           },
           "X"_a, "past"_a)
      .def("scale_targets", for_target<Floats>([](Self& self, Floats y, int k) {
             return filled({y.size()}, [&](double* out) {
               for (std::size_t i = 0; i < y.size(); ++i) out[i] = self.scaled_target(y.data()[i], k);
             });
           }), "y"_a, "k"_a = 0)
      .def("add_inputs",  // -> the columns that have a new level
           [](Self& self, Floats x) {
             expect(x, {std::size_t(self.layout().inputs)});
             std::vector<int> levels;
             self.add_inputs(x.data(), levels);
             return levels;
           },
           "x"_a)
      .def("outlier_level", for_target<double>([](Self& self, double y, int k) {
             return self.outlier_level(y, k);
           }), "y"_a, "k"_a = 0)
      .def("add_target", for_target<double>([](Self& self, double y, int k) {
             self.add_target(y, k);
           }), "y"_a, "k"_a = 0)
      .def("hold_target", for_target<double>([](Self& self, double y, int k) {
             return self.hold_target(y, k);
           }), "y"_a, "k"_a = 0)
      .def("shift_target", for_target<double>([](Self& self, double shift, int k) {
             self.shift_target(shift, k);
           }), "shift"_a, "k"_a = 0)
      .def("widen_target", for_target<>([](Self& self, int k) { self.widen_target(k); }), "k"_a = 0)
      .def("restart_target", for_target<>([](Self& self, int k) { self.restart_target(k); }),
           "k"_a = 0)
      .def("target_scale", for_target<>([](Self& self, int k) {  // -> center and scale
             const Column target = self.target(k);
             return std::pair<double, double>(target.center, target.scale);
           }), "k"_a = 0)
      .def("target_shift", for_target<>([](Self& self, int k) { return self.target_shift[k]; }),
           "k"_a = 0)
      .def("set_target_shift", for_target<double>([](Self& self, double shift, int k) {
             self.target_shift[k] = shift;
           }), "shift"_a, "k"_a = 0)
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

SeasonHistory make_seasons(const nb::dict& settings) {
  return {take<int>(settings, "size"), take<int>(settings, "places")};
}

void bind_seasons(nb::module_& m) {
  using Self = Saved<SeasonHistory>;
  bind_object<SeasonHistory, make_seasons>(m, "SeasonHistory")
      .def("set_periods",  // those that are not 0 come first
           [](Self& self, const std::vector<std::int64_t>& periods) { set_periods(self, periods); },
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

// --- intervals, probabilities and changes --------------------------------------------------------

Intervals make_intervals(const nb::dict& settings) { return Intervals(read_bounds(settings)); }

void bind_intervals(nb::module_& m) {
  using Self = Saved<Intervals>;
  bind_object<Intervals, make_intervals>(m, "Intervals")
      .def("predict",  // -> a prediction and the ends of its interval
           [](Self& self, double score, double deviation, double mean, double sd, double tail) {
             return parts_of(self.predict(score, deviation, mean, sd, tail));
           },
           "score"_a, "deviation"_a, "mean"_a, "sd"_a, "tail"_a)
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
             return filled({INTERVAL_ENDS}, [&](double* out) { self.write_ends(out); });
           })
      .def("skip", &Intervals::skip, "y"_a, "mean"_a, "sd"_a);
}

Probabilities make_probabilities(const nb::dict& settings) {
  return Probabilities(take<int>(settings, "scores"));
}

void bind_probabilities(nb::module_& m) {
  using Self = Saved<Probabilities>;
  bind_object<Probabilities, make_probabilities>(m, "Probabilities")
      .def("predict",  // -> (classes,)
           [](Self& self, Floats scores) {
             expect(scores, {std::size_t(self.scores())});
             return filled({std::size_t(self.classes())},
                           [&](double* out) { self.predict(scores.data(), out); });
           },
           "scores"_a)
      .def("update",
           [](Self& self, Floats scores, int label, double delay) {
             expect(scores, {std::size_t(self.scores())});
             if (label < 0 || label >= self.classes()) throw std::invalid_argument("no such class");
             self.update(scores.data(), label, delay);
           },
           "scores"_a, "label"_a, "delay"_a = 0.0);
}

ChangeDetector make_detector(const nb::dict& settings) {
  return {take<int>(settings, "slots"), take<int>(settings, "recent"),
          take<double>(settings, "limit")};
}

void bind_detector(nb::module_& m) {
  using Self = Saved<ChangeDetector>;
  bind_object<ChangeDetector, make_detector>(m, "ChangeDetector")
      .def("see_error", &ChangeDetector::see_error, "error"_a)
      .def("see_weights",
           [](Self& self, Floats weights) {
             expect(weights, {std::size_t(self.slots())});
             return self.see_weights(weights.data());
           },
           "weights"_a);
}

// --- forecasts -----------------------------------------------------------------------------------

HorizonIntervals make_horizon_intervals(const nb::dict& settings) {
  return {take<std::vector<int>>(settings, "horizons"), read_bounds(settings),
          take<bool>(settings, "in_range")};
}

void bind_horizon_intervals(nb::module_& m) {
  using Self = Saved<HorizonIntervals>;
  bind_object<HorizonIntervals, make_horizon_intervals>(m, "HorizonIntervals")
      .def("forecast",  // -> (H, 3): forecasts and the ends of their intervals
           [](Self& self, Floats points, Floats deviations, double tail) {
             const std::size_t outputs = self.outputs();
             expect(points, {outputs});
             expect(deviations, {outputs});
             return new_rows(outputs, 3, [&](std::size_t k, double* out) {
               std::tie(out[0], out[1], out[2]) =
                   parts_of(self.forecast(int(k), points.data()[k], deviations.data()[k], tail));
             });
           },
           "points"_a, "deviations"_a, "tail"_a)
      .def("issue",  // forecasts (H, 3), baselines (H, 2)
           [](Self& self, std::int64_t moment, Floats forecasts, Floats baselines) {
             const std::size_t outputs = self.outputs();
             expect(forecasts, {outputs, 3});
             expect(baselines, {outputs, 2});
             for (std::size_t k = 0; k < outputs; ++k) {
               const double* row = forecasts.data() + 3 * k;
               self.issue(int(k), moment, {row[0], row[1], row[2]}, baselines.data() + 2 * k);
             }
           },
           "moment"_a, "forecasts"_a, "baselines"_a)
      .def("score",  // y (H,), which is `spike` more than what is believed
           [](Self& self, std::int64_t moment, Floats y, double target, std::int64_t waiting,
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
                   [](Self& self) {
                     return nb::cast(new_rows(self.outputs(), 7, [&](std::size_t k, double* out) {
                       out[0] = self.stats(int(k)).rows;
                       out[1] = self.stats(int(k)).loss;
                       std::copy_n(self.totals(int(k)), int(HorizonIntervals::TOTALS), out + 2);
                     }));
                   })
      .def("set_range",
           [](Self& self, double low, double high) {
             for (int k = 0; k < self.outputs(); ++k)
               self.stats(k).low = low, self.stats(k).high = high;
           },
           "low"_a, "high"_a);
}

HorizonStacking make_horizon_stacking(const nb::dict& settings) {
  const auto prices = take<std::vector<double>>(settings, "prices");
  return {take<std::vector<int>>(settings, "horizons"), {prices.begin(), prices.end()},
          take<int>(settings, "known")};
}

void bind_horizon_stacking(nb::module_& m) {
  using Self = Saved<HorizonStacking>;
  const auto expect_forecasts = [](const Self& self, const Floats& forecasts) {
    expect(forecasts, {std::size_t(self.outputs()), std::size_t(self.slots())});
  };
  bind_object<HorizonStacking, make_horizon_stacking>(m, "HorizonStacking")
      .def("learn",  // left (H,)
           [](Self& self, std::int64_t moment, std::int64_t waiting, Floats left, double target) {
             expect(left, {std::size_t(self.outputs())});
             for (int k = 0; k < self.outputs(); ++k)
               self.learn(k, moment, std::min(waiting, moment), left.data()[k], target);
           },
           "moment"_a, "waiting"_a, "left"_a, "target"_a)
      .def("combine",  // (H, slots) -> (H, 2): combined forecasts, deviations of the slots around them
           [=](const Self& self, Floats forecasts) {
             expect_forecasts(self, forecasts);
             return new_rows(self.outputs(), 2, [&](std::size_t k, double* out) {
               const auto combined = self.combine(int(k), forecasts.data() + k * self.slots());
               out[0] = combined.value, out[1] = combined.deviation;
             });
           },
           "forecasts"_a)
      .def("keep",
           [=](Self& self, std::int64_t moment, Floats forecasts) {
             expect_forecasts(self, forecasts);
             for (int k = 0; k < self.outputs(); ++k)
               self.keep(k, moment, forecasts.data() + k * self.slots());
           },
           "moment"_a, "forecasts"_a)
      .def("forecasts",  // (H, slots): those that were made at a moment
           [](const Self& self, std::int64_t moment) {
             return new_rows(self.outputs(), self.slots(), [&](std::size_t k, double* out) {
               std::copy_n(self.forecasts(int(k), moment), self.slots(), out);
             });
           },
           "moment"_a)
      .def_prop_ro("share",  // (H,)
                   [](const Self& self) {
                     Array<double> shares;
                     for (int k = 0; k < self.outputs(); ++k) shares.push_back(self.share(k));
                     return copied(shares);
                   })
      .def("shares_due",  // (H,): those of the forecasts whose target is that of a moment, 0 if none
           [](const Self& self, std::int64_t moment) {
             Array<double> shares;
             for (int k = 0; k < self.outputs(); ++k) shares.push_back(self.share_due(k, moment));
             return copied(shares);
           },
           "moment"_a);
}

}  // namespace

void kb::set_periods(SeasonHistory& history, const std::vector<std::int64_t>& periods) {
  if (periods.size() > history.periods.size())
    throw std::invalid_argument("there are too many periods");
  std::fill(history.periods.begin(), history.periods.end(), 0);
  std::copy(periods.begin(), periods.end(), history.periods.begin());
}

void kb::bind_auto(nb::module_& m) {
  bind_scaling(m);
  bind_seasons(m);
  bind_intervals(m);
  bind_probabilities(m);
  bind_detector(m);
  bind_horizon_intervals(m);
  bind_horizon_stacking(m);
  m.def("is_within",  // whether all numbers are at most so large; NaN is not
        [](Floats numbers, double most) {
          return std::all_of(numbers.data(), numbers.data() + numbers.size(),
                             [most](double number) { return std::fabs(number) <= most; });
        },
        "numbers"_a, "most"_a);
  m.attr("TAILS") = copied(TAILS, {TRACKED});
  m.attr("CHANGE_AFTER") = CHANGE_AFTER;
  m.attr("LEAST_SHIFT") = LEAST_SHIFT;
  m.attr("SEASON_PAST") = SEASON_PAST;
  m.attr("SEASON_INPUTS") = SEASON_INPUTS;
  m.attr("RECALLED") = RECALLED;
}
