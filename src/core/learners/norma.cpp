// NORMA with a window and a budget, by exact recursions: up to four kernels side by side.
//
// One term joins per sample. At sample n the new term stands at position `newest` of the term arrays;
// the expansion has `budget` terms before it, and the window is the last `window` positions up to it.
// The term at newest - budget is dropped at the end of the step. A kernel row of x_n covers the
// positions newest - budget .. newest, so that k(x_i, x_j) with j <= i stands in the row of i at
// budget - (i - j). The rows of the last window + 1 samples are kept in a ring; of rows that repeat, as
// on a regular grid, only the first one is written until another follows, or the state is listed.
//
// *Tails* make dropping cheap: tail_j = sum of alpha_i k(x_i, x_j) over j itself and the newer terms i
// that have left the window. They only decay, so no Gram matrix and no second row is needed.
//
// *Scale*: all coefficients and tails decay by the same factor in every step. The arrays hold
// alpha / scale, and scale is multiplied in once per period of absolute sample numbers. With a rate
// that varies, the decay 1 - rate * regularization varies too, and each slot keeps its own scale.
//
// *Rounding*: norm^2 and the values on the window follow from those before by sums and differences. When
// large terms are dropped, what is left may be as small as the rounding of what was there. So each slot
// keeps the sizes of all that was added and subtracted, which bound the rounding, and computes a
// number anew from its terms when it has fallen far below them. Coefficients and tails need no
// such care: nothing is ever subtracted from them but a gradient, and a term is dropped whole.
#include <cmath>

#include "../learner.hpp"

namespace kb {

static constexpr int REFRESH_PERIOD = 32;  // norm^2 is then recomputed from the coefficients

/// sum_m coefficients[m] row[m] over four interleaved partial sums.
static Lanes expansion(const Lanes* coefficients, const Lanes* row, int terms) {
  Lanes a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  const int even = terms - terms % 4;
  for (int m = 0; m < even; m += 4) {
    a = fma(coefficients[m], row[m], a);
    b = fma(coefficients[m + 1], row[m + 1], b);
    c = fma(coefficients[m + 2], row[m + 2], c);
    d = fma(coefficients[m + 3], row[m + 3], d);
  }
  for (int m = even; m < terms; ++m) a = fma(coefficients[m], row[m], a);
  return (a + b) + (c + d);
}

class Norma final : public Learner {
 public:
  explicit Norma(const LearnerSpec& spec)
      : step_size_(spec.settings, spec.objective.regularization),
        regularization_(spec.objective.regularization),
        budget_(spec.settings.count("budget")),
        window_(spec.objective.window),
        first_sample_(spec.first_sample),
        kernels_(spec.kernels),
        kernel_(make_kernel(spec.kernels, *spec.statistics)) {
    if (budget_ < window_) throw std::invalid_argument("the budget is below the window");
    for (const auto& loss : spec.objective.losses) outputs_.emplace_back(loss, budget_, window_);
    double decay = 1.0 - step_size_.learning_rate * regularization_;
    if (step_size_.adapts()) decay = regularization_ > 0.0 ? 0.5 : 1.0;
    // Samples between two multiplications by the common decay, which stays >= 1e-6.
    for (period_ = SLIDE_PERIOD; period_ > 1 && std::pow(decay, period_) < 1e-6;) period_ /= 2;
    decays_.assign(1, 1.0);
    for (int n = 0; n < period_; ++n) decays_.push_back(decays_.back() * decay);
  }

  void visit(Archive& archive) override {
    write_repeats();
    archive("diagonals", diagonals_);
    archive("rows", rows_);
    archive.parts("output", outputs_);
  }

  void learn(const Block& block, Record* records) override {
    slide(block.first, budget_, diagonals_.data());
    for (Output& output : outputs_) {
      slide(block.first, budget_, output.coefficients.data());
      slide(block.first, budget_, output.tails.data());
    }
    for (int t = 0; t < block.count; ++t) {
      write_row(block, t);
      diagonals_[budget_ + int((block.first + t) % SLIDE_PERIOD)] = row_before_[0][budget_];
      for (std::size_t k = 0; k < outputs_.size(); ++k)
        step(outputs_[k], block.first + t, block.targets[k] + t, records[k], t);
    }
  }

  void predict(const Query& query, Lanes* out) override {
    const Lanes* row = query_row_.data();
    if (query.seen > 0 && kernel_->repeats(query.repeated))
      row = rows_[repeats_ > 0 ? first_of_repeats_ : place(query.seen - 1)];
    else
      kernel_->write(query.rows.from(query.length - budget_), budget_ + 1, query_row_.data());
    const int start = slide_start(query.seen);
    for (const Output& output : outputs_)
      *out++ = scale(output, query.seen) *
               expansion(output.coefficients.data() + start, row, budget_);
  }

  Lanes dropped(int k) const override { return outputs_[k].dropped; }
  int history() const override { return budget_; }

  /// From the largest g'Kg / g'g seen, a lower bound of the largest eigenvalue of K. A rate that
  /// decays or adapts gets below the bound by itself.
  Lanes step_ratio(int k) const override {
    const double curvature = outputs_[k].loss->curvature;
    if (!(curvature > 0.0) || !step_size_.constant()) return 0.0;
    return step_size_.learning_rate * (curvature * outputs_[k].steepness + regularization_) / 2.0;
  }

  void start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                  Record* records) override;

 private:
  /// What belongs to one output.
  struct Output {
    Output(std::shared_ptr<const Loss> loss, int budget, int window)
        : loss(std::move(loss)),
          coefficients(budget + SLIDE_PERIOD),
          tails(coefficients),
          value_changes(window + 1) {}
    void visit(Archive& archive) {
      archive("coefficients", coefficients);
      archive("tails", tails);
      archive("scale", scale);
      archive("squares", squares);
      archive("dropped", dropped);
      archive("steepness", steepness);
      archive("norm_changes", norm_changes);
      archive.numbers("value_changes", value_changes.data(), {value_changes.size() - 1});
    }
    std::shared_ptr<const Loss> loss;
    Array<Lanes> coefficients, tails;  // alpha / scale; tail / scale
    Lanes scale = 1.0;                 // of a rate that varies
    Lanes squares = 0.0;               // adagrad: sum of g'K g
    Lanes dropped = 0.0;               // norm^2 of all dropped terms
    Lanes steepness = 0.0;             // largest g'Kg / g'g
    // Sizes of what was added to norm^2 since it was computed anew, and of the dropped terms at the
    // window's samples since theirs were; the last one, of the next sample, is 0.
    Lanes norm_changes = 0.0;
    Array<Lanes> value_changes;
  };

  /// The place of a sample's kernel row in the ring.
  int place(std::int64_t number) const { return int((number + window_ + 1) % (window_ + 1)); }

  /// Write the rows of the newest samples that repeat the one before them.
  void write_repeats() {
    for (int age = 0; age < repeats_; ++age)
      if (const int at = place(newest_ - age); at != first_of_repeats_)
        std::copy_n(rows_[first_of_repeats_], budget_ + 1, rows_[at]);
    repeats_ = 0;
  }

  /// Kernel values of the new input, which need no new exponential if the input repeats; row_before.
  void write_row(const Block& block, int t) {
    const Samples& samples = block.samples;
    const std::int64_t number = block.first + t;
    if (kernel_->repeats(samples.repeated(t))) {
      if (repeats_ == 0) first_of_repeats_ = place(number - 1);
      repeats_ = std::min(repeats_ + 1, window_ + 1);
    } else {
      write_repeats();
      Lanes* row = rows_[place(number)];
      if (samples.uses_query)
        std::copy(query_row_.begin(), query_row_.end(), row);
      else
        kernel_->write(samples.rows(t).from(samples.length - budget_), budget_ + 1, row);
    }
    newest_ = number;
    for (int age = 0, at = place(number); age <= window_; ++age, at = at > 0 ? at - 1 : window_)
      row_before_[age] = rows_[age < repeats_ ? first_of_repeats_ : at];
  }

  /// What coefficients and tails are to be multiplied by after `seen` samples.
  Lanes scale(const Output& output, std::int64_t seen) const {
    return step_size_.constant() ? Lanes(decays_[seen % period_]) : output.scale;
  }

  void step(Output& output, std::int64_t number, const Lanes* targets, Record& record, int t) {
    const int window = window_, budget = budget_;
    const int newest = budget + int(number % SLIDE_PERIOD), oldest = newest - budget;
    const int seen = int(std::min<std::int64_t>(number + 1 - first_sample_, window));
    const int unseen = window - seen;
    const Lanes scale_before = scale(output, number);
    Lanes *coefficients = output.coefficients.data(), *tails = output.tails.data();
    Lanes *old_values = old_values_.data(), *gradient = gradient_.data(), *k_g = k_g_.data();
    const Lanes* const* row_before = row_before_.data();

    // f(x) = sum_j alpha_j k(x_j, x); f on the window; g there, all at the same f.
    const Lanes prediction = scale_before * expansion(coefficients + oldest, row_before[0], budget);
    record.predictions[t] = prediction;
    std::copy_n(record.values[t] + 1, window - 1, old_values);
    old_values[window - 1] = prediction;
    std::fill_n(gradient, unseen, Lanes(0.0));
    output.loss->derivatives(old_values + unseen, targets - seen + 1, seen, gradient + unseen);
    if (std::isnan((*targets)[0])) gradient[window - 1] = 0.0;  // missing, in a window of 1

    // The term i that leaves the window joins the tails: tail_j += alpha_i k(x_i, x_j).
    const int leaving = newest - window;
    const Lanes left_alpha = coefficients[leaving];
    const Lanes* left = row_before[window] + window;
    for (int j = oldest; j < leaving; ++j)
      tails[j] = fma(left_alpha, left[j - oldest], tails[j]);
    tails[leaving] = left_alpha * diagonals_[leaving];

    // K g on the window; g'f, g'K g, g'g.
    std::fill_n(k_g, unseen, Lanes(0.0));
    for (int i = unseen; i < window; ++i) {
      const Lanes* kernel_row = row_before[window - 1 - i] + budget - i;
      Lanes total = 0.0;
      for (int j = unseen; j <= i; ++j) total = fma(gradient[j], kernel_row[j], total);
      for (int j = i + 1; j < window; ++j)  // K_ij is in the row of the newer sample
        total = fma(gradient[j], row_before[window - 1 - j][budget - j + i], total);
      k_g[i] = total;
    }
    Lanes g_f = 0.0, g_k_g = 0.0, g_g = 0.0;
    for (int i = unseen; i < window; ++i) {
      const Lanes g = gradient[i];
      g_f = fma(g, old_values[i], g_f);
      g_k_g = fma(g, k_g[i], g_k_g);
      g_g = fma(g, g, g_g);
    }

    // The rate, the decay 1 - rate * regularization, and alpha <- decay alpha - rate g on the window.
    if (step_size_.adapts()) output.squares = output.squares + where_less(g_k_g, 0.0, 0.0, g_k_g);
    const Lanes rate = step_size_.rate(number + 1, output.squares);
    Lanes decay, scale_after;
    if (step_size_.constant()) {
      decay = decays_[1];
      scale_after = decays_[number % period_ + 1];
    } else {
      decay = 1.0 - rate * regularization_;
      scale_after = scale_before * decay;
    }
    const Lanes step = -rate / scale_after;
    coefficients[newest] = 0.0;
    for (int i = unseen; i < window; ++i) {
      Lanes& alpha = coefficients[newest - (window - 1 - i)];
      alpha = fma(step, gradient[i], alpha);
    }

    // |decay f - rate sum_i g_i k(x_i, .)|^2, before anything is dropped.
    const Lanes decayed = decay * decay * record.norms[t], learned = 2.0 * decay * rate * g_f,
                added = rate * rate * g_k_g;
    Lanes norm2 = decayed - learned + added;
    const Lanes quotient = g_k_g / g_g;
    output.steepness = where_less(output.steepness, quotient, quotient, output.steepness);

    // Drop the oldest term: |f - alpha k(x_j, .)|^2 = |f|^2 - 2 alpha f(x_j) + alpha^2 k(x_j, x_j).
    const Lanes alpha = scale_after * coefficients[oldest];
    Lanes value = tails[oldest];
    for (int i = unseen; i < window; ++i) {
      const int age = window - 1 - i;
      value = fma(coefficients[newest - age], row_before[age][age], value);
    }
    const Lanes lost = alpha * alpha * diagonals_[oldest];
    const Lanes shared = 2.0 * alpha * (scale_after * value);
    norm2 = norm2 - shared + lost;
    norm2 = where_less(norm2, 0.0, 0.0, norm2);
    output.norm_changes = decay * decay * output.norm_changes + decayed + absolute(learned) +
                          absolute(added) + absolute(shared) + lost;
    output.dropped = output.dropped + lost;

    // f(x_i) <- decay f(x_i) - rate (K g)_i, then without the dropped term.
    Lanes *after = record.values[t + 1], *changes = output.value_changes.data();
    Lanes moved = 0.0, largest = 0.0, cancelled = 0.0;
    std::fill_n(after, unseen, Lanes(0.0));
    for (int i = unseen; i < window; ++i) {
      const int age = window - 1 - i;
      const Lanes full = fma(-rate, k_g[i], decay * old_values[i]);
      const Lanes change = alpha * row_before[age][age];
      after[i] = full - change;
      changes[i] = changes[i + 1] + absolute(change);
      const Lanes above = excess(changes[i], after[i], targets[-age]);
      cancelled = where_less(cancelled, above, above, cancelled);
      moved = where_less(moved, absolute(change), absolute(change), moved);
      largest = where_less(largest, absolute(full), absolute(full), largest);
    }
    record.effects[t] = where_less(0.0, moved, moved / largest, 0.0);

    if (!all_less(cancelled, std::numeric_limits<double>::denorm_min()))  // one is above 0
      mend_values(output, newest, targets, seen, scale_after, after);
    const Lanes fallen = where_less(CANCELLED * norm2, output.norm_changes, 1.0, 0.0);
    const bool refreshed = (number + 1) % REFRESH_PERIOD == 0;
    if (refreshed || !all_less(fallen, 1.0)) {
      const Lanes fresh = (scale_after * scale_after) * exact_norm(output, newest);
      norm2 = refreshed ? fresh : where_less(0.0, fallen, fresh, norm2);
      output.norm_changes = refreshed ? Lanes(0.0)
                                      : where_less(0.0, fallen, 0.0, output.norm_changes);
    }
    record.norms[t + 1] = norm2;
    if ((number + 1) % period_ == 0) {
      for (int m = oldest + 1; m <= newest; ++m) {
        coefficients[m] = coefficients[m] * scale_after;
        tails[m] = tails[m] * scale_after;
      }
      scale_after = 1.0;
    }
    if (!step_size_.constant()) output.scale = scale_after;
  }

  /// Positive if the changes of a value on the window are far above it and its target: the slot learns
  /// of their difference.
  static Lanes excess(Lanes changes, Lanes value, Lanes target) {
    return fma(-CANCELLED, absolute(target), fma(-CANCELLED, absolute(value), changes));
  }

  /// The values on the window that have fallen far below what was dropped, computed anew.
  [[gnu::noinline]] void mend_values(Output& output, int newest, const Lanes* targets, int seen,
                                     Lanes scale, Lanes* values) const {
    for (int age = 0; age < seen; ++age) {
      Lanes &value = values[window_ - 1 - age], &changes = output.value_changes[window_ - 1 - age];
      const Lanes above = excess(changes, value, targets[-age]);
      value = where_less(0.0, above, scale * exact_value(output, newest, age), value);
      changes = where_less(0.0, above, 0.0, changes);
    }
  }

  /// f / scale at the window's sample of this age, from the coefficients.
  Lanes exact_value(const Output& output, int newest, int age) const {
    const Lanes* coefficients = output.coefficients.data() + newest - age;
    const Lanes* row = row_before_[age] + budget_;
    Lanes total = 0.0;
    for (int j = budget_ - 1 - age; j >= 0; --j) total = fma(coefficients[-j], row[-j], total);
    for (int j = 1; j <= age; ++j)  // the newer ones
      total = fma(coefficients[j], row_before_[age - j][budget_ - j], total);
    return total;
  }

  /// norm^2 / scale^2 = sum_j alpha_j f(x_j) from coefficients and tails, at least 0.
  [[gnu::noinline]] Lanes exact_norm(const Output& output, int newest) const {
    Lanes total = 0.0;
    const Lanes* coefficients = output.coefficients.data();
    for (int j = newest - budget_ + 1; j <= newest - window_; ++j) {  // outside the window
      const Lanes alpha = coefficients[j];
      Lanes others = 2.0 * output.tails[j] - alpha * diagonals_[j];
      for (int i = 0; i < window_; ++i) {
        const Lanes k = row_before_[i][budget_ - (newest - i - j)];
        others = fma(2.0 * coefficients[newest - i], k, others);
      }
      total = fma(alpha, others, total);
    }
    for (int i = 0; i < window_; ++i) {  // terms of the window, by age
      const Lanes* row = row_before_[i];
      const Lanes alpha = coefficients[newest - i];
      Lanes value = alpha * row[budget_];
      for (int j = i + 1; j < window_; ++j)
        value = fma(2.0 * coefficients[newest - j], row[budget_ - (j - i)], value);
      total = fma(alpha, value, total);
    }
    return where_less(total, 0.0, 0.0, total);
  }

  // settings
  StepSize step_size_;
  double regularization_;
  int budget_, window_, period_;
  std::int64_t first_sample_;
  std::vector<KernelSpec> kernels_;
  Cloned<Kernel> kernel_;
  std::vector<double> decays_;  // decays[n] = decay^n, of a constant rate
  // state
  Array<Lanes> diagonals_ = Array<Lanes>(budget_ + SLIDE_PERIOD);  // k(x_j, x_j)
  Matrix<Lanes> rows_{window_ + 1, budget_ + 1};                   // the ring of kernel rows
  std::vector<Output> outputs_;
  // rows that are not written yet: those of the newest samples, up to number `newest`
  int repeats_ = 0, first_of_repeats_ = 0;  // how many; the place of the row that they repeat
  std::int64_t newest_ = 0;
  // scratch
  std::vector<const Lanes*> row_before_ = std::vector<const Lanes*>(window_ + 1);  // by age
  Array<Lanes> query_row_ = Array<Lanes>(budget_ + 1);
  Array<Lanes> old_values_ = Array<Lanes>(window_), gradient_ = old_values_, k_g_ = old_values_;
};

/// The points are the newest samples before the stream: the state is as if they had passed. Point j
/// stands at position first + j. Terms from budget - window on are still in the window, and have
/// their rows in the ring. All sums are exact, rounded once.
void Norma::start_from(const Matrix<double>& points, const Array<Lanes>& coefficients,
                       Record* records) {
  const int m = points.rows(), first = budget_ - m;
  if (first < 0) throw std::invalid_argument("more terms than the budget");
  const Matrix<Lanes> gram = gram_matrix(kernels_, points);
  const int passed = std::max(budget_ - window_ - first, 0);  // points that have left the window
  for (int j = 0; j < m; ++j) diagonals_[first + j] = gram[j][j];
  for (int i = passed; i < m; ++i) {  // the row of sample number i - m
    Lanes* row = rows_[((i - m) % (window_ + 1) + window_ + 1) % (window_ + 1)];
    std::copy_n(gram[i], i + 1, row + budget_ - i);
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    std::copy(coefficients.begin(), coefficients.end(), outputs_[k].coefficients.begin() + first);
    for (int j = 0; j < passed; ++j) {  // tail_j = sum of alpha_i k(x_i, x_j), j <= i < passed
      ExactLanes tail;
      for (int i = j; i < passed; ++i) tail.add(coefficients[i] * gram[i][j]);
      outputs_[k].tails[first + j] = tail.value();
    }
    records[k].norms[0] = expansion_norm(coefficients, gram);
  }
}

std::vector<NamedLearner> norma_family() { return {{"Norma", make<Norma>, true}}; }

}  // namespace kb
