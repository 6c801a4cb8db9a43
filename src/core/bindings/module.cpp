// The module that Python sees; and kernels, losses, transforms, random features, combiners and the
// paper's quadratic program on arrays, for those who study them without a bank.
#include "../combiners/simplex_qp.hpp"
#include "../learners/features.hpp"
#include "convert.hpp"

using namespace nb::literals;
using namespace kb;

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require_fit(bool fits) {
  if (!fits) throw nb::value_error("arrays do not fit together");
}

/// (n, m): the kernel values of X (n, d) and Z (m, d), as the slots of a bank compute them.
Result kernel_matrix(nb::handle spec, Rows X, Rows Z) {
  const std::size_t n = X.shape(0), m = Z.shape(0), d = X.shape(1);
  require_fit(Z.shape(1) == d);
  if (n == 0 || m == 0) return filled({n, m}, [](double*) {});
  TermKernel kernel({read_kernel(spec, int(d))});
  Matrix<double> terms{int(d), int(m)};
  for (std::size_t k = 0; k < d; ++k)
    for (std::size_t j = 0; j < m; ++j) terms[int(k)][j] = Z.data()[j * d + k];
  return filled({n, m}, [&](double* values) {
    nb::gil_scoped_release unlocked;
    Array<Lanes> row(m);
    for (std::size_t i = 0; i < n; ++i) {
      kernel.write(X.data() + i * d, terms[0], m, int(m), row.data());
      for (std::size_t j = 0; j < m; ++j) values[i * m + j] = row[j][0];
    }
  });
}

/// Numbers in rows of four; the last row is filled up with ones.
Array<Lanes> in_lanes(Vector numbers) {
  Array<Lanes> rows((numbers.size() + WIDTH - 1) / WIDTH, Lanes(1.0));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    rows[i / WIDTH].set(int(i % WIDTH), numbers.data()[i]);
  return rows;
}

Result from_lanes(const Array<Lanes>& rows, std::size_t size) {
  return filled({size}, [&](double* numbers) {
    for (std::size_t i = 0; i < size; ++i) numbers[i] = rows[i / WIDTH][int(i % WIDTH)];
  });
}

/// The values of a loss, or its derivatives.
template <void (Loss::*function)(const Lanes*, const Lanes*, int, Lanes*) const>
Result loss_at(nb::handle spec, Vector f, Vector y) {
  require_fit(f.size() == y.size());
  Array<Lanes> predictions = in_lanes(f);
  ((*read_loss(spec)).*function)(predictions.data(), in_lanes(y).data(), int(predictions.size()),
                                 predictions.data());
  return from_lanes(predictions, f.size());
}

template <Lanes (ShiftedLog::*function)(Lanes) const>
Result transformed(nb::handle spec, Vector numbers) {
  const ShiftedLog transform = read_transform(spec).value();
  Array<Lanes> rows = in_lanes(numbers);
  for (Lanes& row : rows) row = (transform.*function)(row);
  return from_lanes(rows, numbers.size());
}

/// (B, P): the minimiser of each row's program. method : 0 sort, 1 pivot, 2 the faster one.
Result simplex_qp(Rows a, Rows b, int method) {
  const std::size_t rows = a.shape(0), size = a.shape(1);
  require_fit(b.shape(0) == rows && b.shape(1) == size && method >= 0 && method <= 2);
  double* weights;
  Result result = new_array({rows, size}, &weights);
  nb::gil_scoped_release unlocked;
  QuadraticProgram program;
  for (std::size_t i = 0; i < rows * size; i += size)
    program.solve(a.data() + i, b.data() + i, int(size), weights + i,
                  QuadraticProgram::Method(method));
  return result;
}

/// Random features as Python has drawn them, of points that have only their coordinates.
FourierFeatures features_of(Rows frequencies, Vector phases, Vector amplitudes, int trigonometric) {
  std::vector<int> coordinates(frequencies.shape(0));
  for (std::size_t k = 0; k < coordinates.size(); ++k) coordinates[k] = int(k);
  auto numbers = [](auto array) {
    return Array<double>(array.data(), array.data() + array.size());
  };
  return FourierFeatures(int(coordinates.size()), coordinates, trigonometric, numbers(frequencies),
                         numbers(phases), numbers(amplitudes));
}

/// (n, total): the features of points (n, d).
Result feature_rows(Rows frequencies, Vector phases, Vector amplitudes, int trigonometric,
                    Rows points) {
  FourierFeatures features = features_of(frequencies, phases, amplitudes, trigonometric);
  const std::size_t n = points.shape(0), d = points.shape(1), total = phases.size();
  require_fit(d == frequencies.shape(0));
  return new_rows(n, total,
                  [&](std::size_t t, double* row) { features.write(points.data() + t * d, row); });
}

/// (d,): the sum over points of (d f / d x_k)^2, f = weights . phi.
///
/// A block of eight has amplitude cos(angle) and amplitude sin(angle), whose derivatives by the
/// angle are minus the second and the first; all its slopes are put into the first half.
Result squared_gradients(Rows frequencies, Vector phases, Vector amplitudes, int trigonometric,
                         Rows points, Vector weights) {
  FourierFeatures features = features_of(frequencies, phases, amplitudes, trigonometric);
  const std::size_t n = points.shape(0), d = points.shape(1), total = phases.size();
  require_fit(d == frequencies.shape(0) && weights.size() == total);
  double* sums;
  Result result = new_array({d}, &sums);
  nb::gil_scoped_release unlocked;
  const double* w = weights.data();
  Array<double> phi(total), slopes(total);  // slopes: weights_m d phi_m / d angle_m
  for (std::size_t m = trigonometric; m < total; ++m) slopes[m] = w[m] * amplitudes.data()[m];
  for (std::size_t t = 0; t < n; ++t) {
    features.write(points.data() + t * d, phi.data());
    for (int m = 0; m < trigonometric; m += 2 * WIDTH)
      for (int i = m; i < m + WIDTH; ++i)
        slopes[i] = w[i + WIDTH] * phi[i] - w[i] * phi[i + WIDTH];
    for (std::size_t k = 0; k < d; ++k) {
      const double slope = dot(frequencies.data() + k * total, slopes.data(), int(total));
      sums[k] += slope * slope;
    }
  }
  return result;
}

/// A combiner alone, on evidence that is given.
class PyCombiner {
 public:
  PyCombiner(const nb::tuple& rule, int slots, int window, double regularization, nb::handle loss)
      : slots_(slots),
        objective_{window, regularization, {read_loss(loss)}},
        combiner_(read_combiner(rule, 0, slots, objective_)) {}

  /// (n, P): the weights after each sample. weights (P,) : those before; evidence : "first", "targets"
  /// (window - 1 + n,), "values" (n, window, P) if the rule needs them, all else (n, P).
  Result choose(Floats weights, const nb::dict& evidence) {
    const auto targets = take<Floats>(evidence, "targets");
    const auto values = take<Floats>(evidence, "values");
    const std::size_t slots = slots_, window = objective_.window;
    const std::size_t n = targets.size() - (window - 1);
    require_shape("weights", shape_of(weights), {slots});
    require_shape("targets", shape_of(targets), {window - 1 + n});
    require_shape("values", shape_of(values), {n, window, slots});
    EvidenceBlock e{take<std::int64_t>(evidence, "first"), int(n), slots_, objective_.window,
                    targets.data(), values.data(), {}, objective_.losses[0].get(), {}};
    for (int i = 0; i < EvidenceBlock::ROWS; ++i) {
      const auto array = take<Floats>(evidence, EvidenceBlock::NAMES[i]);
      require_shape(EvidenceBlock::NAMES[i], shape_of(array), {n, slots});
      e.rows[i] = array.data();
    }
    return filled({n, slots},
                  [&](double* chosen) { combiner_->choose_block(e, weights.data(), chosen); });
  }
  nb::dict state() { return state_arrays(*combiner_); }

 private:
  int slots_;
  Objective objective_;
  Cloned<Combiner> combiner_;
};

}  // namespace

static void bind_parts(nb::module_& m) {
  m.attr("SLIDE_PERIOD") = SLIDE_PERIOD;
  m.attr("WIDTH") = WIDTH;
  m.def("kernel_matrix", &kernel_matrix, "spec"_a, "X"_a, "Z"_a);
  m.def("loss_values", &loss_at<&Loss::values>, "spec"_a, "f"_a, "y"_a);
  m.def("loss_derivatives", &loss_at<&Loss::derivatives>, "spec"_a, "f"_a, "y"_a);
  m.def("transform_forward", &transformed<&ShiftedLog::forward>, "spec"_a, "y"_a);
  m.def("transform_inverse", &transformed<&ShiftedLog::inverse>, "spec"_a, "u"_a);
  m.def("simplex_qp", &simplex_qp, "a"_a, "b"_a, "method"_a);
  m.def("feature_rows", &feature_rows, "frequencies"_a, "phases"_a, "amplitudes"_a,
        "trigonometric"_a, "points"_a);
  m.def("squared_gradients", &squared_gradients, "frequencies"_a, "phases"_a, "amplitudes"_a,
        "trigonometric"_a, "points"_a, "weights"_a);
  nb::class_<PyCombiner>(m, "Combiner")
      .def(nb::init<const nb::tuple&, int, int, double, nb::handle>(), "rule"_a, "slots"_a,
           "window"_a, "regularization"_a, "loss"_a)
      .def("choose", &PyCombiner::choose, "weights"_a, "evidence"_a)
      .def("state", &PyCombiner::state);
}

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);
  bind_auto(m);
  bind_bank(m);
  bind_models(m);
  bind_parts(m);
}
