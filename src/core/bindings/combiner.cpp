// A combiner alone, on evidence that is given: for those who study one without a bank.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "module.hpp"
#include "specs.hpp"
#include "state.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

class PyCombiner {
 public:
  PyCombiner(const nb::tuple& rule, int slots, int window, double regularization, nb::handle loss)
      : slots_(slots),
        window_(window),
        regularization_(regularization),
        loss_(read_loss(loss)),
        combiner_(make_combiner(nb::cast<std::string>(rule[0]),
                                {read_settings(nb::cast<nb::dict>(rule[1])), slots, window,
                                 regularization, loss_})) {}

  /// (n, P): the weights after each sample. weights (P,) : those before; targets (window - 1 + n,);
  /// values (n, window, P), if the rule needs them; all else (n, P).
  Result choose(std::int64_t first, Floats weights, Floats targets, Floats curvature,
                Floats window_loss, Floats slot_cost, Floats slot_loss, Floats slot_predictions,
                std::optional<Floats> values) {
    const std::size_t n = curvature.shape(0), slots = std::size_t(slots_);
    bool fits = weights.size() == slots && targets.size() == std::size_t(window_ - 1) + n &&
                (!values || values->size() == n * window_ * slots);
    for (const Floats* rows : {&curvature, &window_loss, &slot_cost, &slot_loss, &slot_predictions})
      fits = fits && rows->ndim() == 2 && rows->shape(0) == n && rows->shape(1) == slots;
    if (!fits) throw nb::value_error("arrays do not fit together");
    double* chosen;
    Result result = new_array({n, slots}, &chosen);
    const Evidence evidence{first,
                            int(n),
                            slots_,
                            window_,
                            0,
                            nullptr,
                            targets.data(),
                            curvature.data(),
                            window_loss.data(),
                            slot_cost.data(),
                            slot_loss.data(),
                            slot_predictions.data(),
                            values ? values->data() : nullptr,
                            loss_.get(),
                            regularization_};
    combiner_->choose(evidence, weights.data(), chosen);
    return result;
  }
  nb::dict state() { return state_arrays(*combiner_); }

 private:
  int slots_, window_;
  double regularization_;
  std::shared_ptr<const Loss> loss_;
  std::unique_ptr<Combiner> combiner_;
};

}  // namespace

void kb::bind_combiner(nb::module_& m) {
  nb::class_<PyCombiner>(m, "Combiner")
      .def(nb::init<const nb::tuple&, int, int, double, nb::handle>(), "rule"_a, "slots"_a,
           "window"_a, "regularization"_a, "loss"_a)
      .def("choose", &PyCombiner::choose, "first"_a, "weights"_a, "targets"_a, "curvature"_a,
           "window_loss"_a, "slot_cost"_a, "slot_loss"_a, "slot_predictions"_a, "values"_a.none())
      .def("state", &PyCombiner::state);
}
