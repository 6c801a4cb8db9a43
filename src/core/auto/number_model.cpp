#include "number_model.hpp"

namespace kb {

/// Root mean square of the inputs, in standard deviations, beyond which they may explain a far target.
static constexpr double UNUSUAL = 3.0;
/// Intervals after a far target leave this share of the tails that are asked for.
static constexpr double UNCLEAR = 0.25;

void TargetTrack::visit(Archive& archive) {
  archive.part("intervals", intervals);
  archive.part("changes", detector);
  archive("unscored", unscored);
}

NumberModel::NumberModel(int outputs, Past past, Replay replay, Bounds bounds,
                         std::vector<double> levels, int recent, double limit)
    : past(std::move(past)),
      replay(std::move(replay)),
      held(outputs),
      tracks(outputs, TargetTrack(bounds, recent, limit)),
      levels_(std::move(levels)) {}

void NumberModel::use_slots(int pool, std::vector<int> members) {
  running_ = {pool, std::move(members)};
  pool_row_.resize(pool);
  for (TargetTrack& track : tracks)
    if (track.detector.slots() != pool) track.detector.restart_weights(pool);
}

void NumberModel::add_inputs(int count) {
  replay.add_inputs(count);
  held.add_inputs(count);
}

void NumberModel::write_weights(double* out) const {
  const std::size_t slots = running_.size();
  Array<double> weights(targets() * slots, 1.0 / double(slots));
  if (bank) bank->write_weights(weights.data());
  for (int k = 0; k < targets(); ++k, out += pool()) running_.scatter(weights.data() + k * slots, 0.0, out);
}

// --- predicting ----------------------------------------------------------------------------------

/// The center of target k; before there is a bank its mean so far, NaN if it was never known.
double NumberModel::center(int k) const {
  if (bank) return scaling->target(k).count > 0.0 ? scaling->target(k).center : NOT_A_NUMBER;
  double total = 0.0, count = 0.0;
  for (std::int64_t n = rows - replay.count(rows); n < rows; ++n) {
    const double y = replay.targets[replay.at(n)][k];
    if (!std::isnan(y)) total += y, count += 1.0;
  }
  return count > 0.0 ? total / count : NOT_A_NUMBER;
}

double NumberModel::scale(int k) const { return bank ? scaling->target(k).scale : 0.0; }

/// out (3 K), more (2, K, levels): from scores (K,), predictions of slots (K, P) and their weights (K, P).
/// The range of the targets is old if some of them come late: then slots that have half of the weight
/// agree on a prediction beyond it, whatever the others say.
void NumberModel::write_outputs(const double* scores, const double* slots, const double* weights,
                                bool late, double tail, double* out, double* more) {
  const int K = targets(), P = int(running_.size()), levels = int(levels_.size());
  for (int k = 0; k < K; ++k, out += 3) {
    const double mean = center(k), sd = scale(k);
    if (std::isnan(mean)) {
      std::fill_n(out, 3, NOT_A_NUMBER);
      continue;
    }
    double deviation = bank ? weighted_std(slots + k * P, scores[k], weights + k * P, P) : 0.0;
    if (bank && late) {
      const double middle = weighted_median(slots + k * P, weights + k * P, P);
      deviation = std::min(deviation, std::fabs(scores[k] - middle));
    }
    Intervals& intervals = tracks[k].intervals;
    const auto ends = [&](double tail) {
      return intervals.predict(bank ? scores[k] : 0.0, deviation, mean, sd, tail);
    };
    const Stay stay = held.expected(k, *scaling);
    const Interval interval = ends(stay.probability > 0.0 ? UNCLEAR * tail : tail);
    out[0] = interval.value, out[1] = interval.low, out[2] = interval.high;
    if (stay.probability > 0.0) expect_far(k, stay, tail, out);
    for (int i = 0; more && i < levels; ++i) {
      const Interval level = ends(std::min(levels_[i], 1.0 - levels_[i]));
      more[(K + k) * levels + i] = levels_[i] < 0.5 ? level.low : level.high;
    }
  }
}

/// out (3,): a prediction and its interval, while rows are held back. It is that of the bank unless far
/// targets are more likely to stay; the interval has both, unless one is less likely than a tail.
void NumberModel::expect_far(int k, const Stay& stay, double tail, double* out) {
  const Bounds& bounds = tracks[k].intervals.bounds();
  const double low = bounds.nearest(out[1] + stay.error), high = bounds.nearest(out[2] + stay.error);
  const bool stays = stay.probability > 0.5;
  if (stays) out[0] = bounds.nearest(out[0] + stay.error);
  if (stays && 1.0 - stay.probability <= tail) {
    out[1] = low, out[2] = high;
  } else if (stay.probability > tail) {
    out[1] = std::min(out[1], low), out[2] = std::max(out[2], high);
  }
}

void NumberModel::predict(const double* x, const double* row_past, bool late, double tail,
                          Prediction& out) {
  const int K = targets(), P = int(running_.size());
  out.rows_before = rows;
  out.past.assign(row_past, row_past + past.width());
  out.output.resize(3 * K);
  out.more.assign(2 * K * levels_.size(), NOT_A_NUMBER);
  out.ends.resize(K * INTERVAL_ENDS);
  for (int k = 0; k < K; ++k) tracks[k].intervals.write_ends(out.ends.data() + k * INTERVAL_ENDS);
  if (out.slots.rows() != (bank ? K : 0) || out.slots.columns() != pool())
    out.slots = Matrix<double>(bank ? K : 0, pool());
  ask_bank(x, row_past, 1);
  out.scores.assign(predictions_.begin(), predictions_.end());
  for (int k = 0; bank && k < K; ++k) {
    running_.scatter(slots_.data() + k * P, NOT_A_NUMBER, out.slots[k]);
    for (int p = 0; p < pool(); ++p) out.slots[k][p] = center(k) + scale(k) * out.slots[k][p];
  }
  write_outputs(out.scores.data(), slots_.data(), weights_.data(), late, tail, out.output.data(),
                out.more.data());
}

/// predictions_ (n, K), slots_ (n, K, P) and weights_ (K, P) of rows X (n, inputs); zeros without a bank.
void NumberModel::ask_bank(const double* X, const double* pasts, int n) {
  const std::size_t K = targets(), P = running_.size();
  predictions_.assign(n * K, 0.0), slots_.resize(n * K * P), weights_.resize(K * P);
  if (!bank) return;
  const RowLayout& layout = scaling->layout();
  make_room(rows_, n, layout.width);
  for (std::size_t t = 0; t < std::size_t(n); ++t)
    scaling->scale(X + t * layout.inputs, pasts + t * past.width(), rows_[int(t)]);
  bank->predict(rows_[0], n, predictions_.data(), slots_.data());
  bank->write_weights(weights_.data());
}

void NumberModel::predict_rows(const double* X, const double* pasts, int n, bool late, double tail,
                               double* outputs) {
  const int K = targets(), P = int(running_.size());
  ask_bank(X, pasts, n);
  for (int t = 0; t < n; ++t)
    write_outputs(predictions_.data() + t * K, slots_.data() + std::size_t(t) * K * P, weights_.data(),
                  late, tail, outputs + t * 3 * K, nullptr);
}

// --- a step --------------------------------------------------------------------------------------

int NumberModel::step(const double* X, const double* y, int n, double tail, const Prediction* made,
                      const StepRecord& record) {
  const std::int64_t first = rows;
  const bool delayed = made && made->rows_before < rows && made->slots.rows() > 0;
  readings.clear();
  // 1. Scale rows with usual targets, and let the running statistics follow.
  const int usual = bank && held.rows.empty() ? scale_rows(X, y, made ? 1 : n, made) : 0;
  if (usual > 0 && !made) {
    // 2. The bank predicts each, and learns it. 3. Predictions are calibrated, scored, and watched.
    const std::size_t K = targets(), each = K * running_.size();
    predictions_.resize(usual * K), weights_.resize(usual * each), slots_.resize(usual * each);
    bank->learn(rows_[0], scaled_[0], usual, nullptr, predictions_.data(), weights_.data(),
                slots_.data());
    calibrate_block(y, usual, first, tail, record);
    for (int k = 0; k < targets(); ++k) rescale(k, scales_[usual - 1]);
    if (usual > 1) release(rows_, scaled_, scales_, predictions_, weights_, slots_);
    return usual;
  }
  // The same for one row, which was predicted before, or is not learned at once.
  if (!made) {
    make_room(pasts_, 1, past.width());
    past.write(rows, 0, pasts_[0]);
    predict(X, pasts_[0], false, tail, made_);
    made = &made_;
    write_record(made_, record);
  }
  if (usual > 0) {
    score(rows, *made, y, scales_[0], std::vector<bool>(targets()));
    const double* earlier = delayed ? past_slots(*made, scales_[0]) : nullptr;
    bank->learn(rows_[0], scaled_[0], 1, earlier, nullptr, nullptr, nullptr);
    for (int k = 0; k < targets(); ++k) rescale(k, scales_[0]);
    return 1;
  }
  const int K = targets();
  Array<double> scales(2 * K), predicted(K), believed(y, y + K);
  const std::vector<bool> far = far_targets(X, made->past.data(), y);
  for (int k = 0; k < K; ++k) {
    scales[2 * k] = scaling->target(k).center;
    scales[2 * k + 1] = scaling->target(k).scale;
    predicted[k] = scales[2 * k] + scales[2 * k + 1] * made->scores[k];
    if (far[k]) believed[k] = tracks[k].intervals.believed(y[k], predicted[k]);
  }
  score(rows + 1, *made, y, scales.data(), far);
  count_row(X, made->past.data(), believed.data(), made->rows_before);
  if (bank)
    learn_or_hold({{X, X + scaling->layout().inputs}, made->past, {y, y + K}, predicted, believed},
                  far, scales.data(), delayed ? past_slots(*made, scales.data()) : nullptr);
  return 1;
}

/// Which targets (K,) of a row are far, though its inputs are usual.
std::vector<bool> NumberModel::far_targets(const double* x, const double* row_past, const double* y) {
  std::vector<bool> far(targets());
  bool any = false;
  for (int k = 0; bank && k < targets(); ++k)
    any |= far[k] = scaling->outlier_level(y[k], k) != USUAL;
  if (!any) return far;
  Array<double> row(scaling->layout().width);
  scaling->scale(x, row_past, row.data());
  if (scaling->mean_square(row.data()) > UNUSUAL * UNUSUAL) far.assign(targets(), false);
  return far;
}

/// Scale rows and count them, up to the first with a far target, or after which targets have another
/// center or scale; how many. made : the prediction of the first, if it was made before.
int NumberModel::scale_rows(const double* X, const double* y, int n, const Prediction* made) {
  const RowLayout& layout = scaling->layout();
  const int K = targets();
  make_room(rows_, n, layout.width);
  make_room(pasts_, 1, past.width());
  make_room(scaled_, n, K);
  make_room(scales_, n, 2 * K);
  std::vector<int> levels;
  for (int t = 0; t < n; ++t, X += layout.inputs, y += K) {
    const double* row_past = made ? made->past.data() : pasts_[0];
    if (!made) past.write(rows, 0, pasts_[0]);
    if (!scaling->scale_and_add(X, row_past, y, rows_[t], scaled_[t], scales_[t], levels)) return t;
    count_row(X, row_past, y, made ? made->rows_before : rows);
    for (int column : levels) note(rows, Change::input_level, column);
    levels.clear();
    for (int k = 0; k < K; ++k)
      if (has_moved(k, scales_[t])) return t + 1;
  }
  return n;
}

/// Whether target k has another center or scale than those among `scales` (2 K).
bool NumberModel::has_moved(int k, const double* scales) {
  const double mean = scales[2 * k], sd = scales[2 * k + 1];
  const Column target = scaling->target(k);
  return !std::isnan(mean) && (target.center != mean || target.scale != sd);
}

/// What slots have learned of target k goes on in its present units, if these have changed.
void NumberModel::rescale(int k, const double* scales) {
  const double mean = scales[2 * k], sd = scales[2 * k + 1];
  const Column target = scaling->target(k);
  if (!has_moved(k, scales) || sd == 0.0 || target.scale == 0.0) return;
  bank->rescale(k, sd / target.scale, (mean - target.center) / target.scale);
}

/// Count a learned row, keep it for replays, and let its targets be the last ones.
void NumberModel::count_row(const double* x, const double* row_past, const double* y,
                            std::int64_t predicted_at) {
  rows += 1;
  replay.add(rows, x, row_past, y, predicted_at);
  Array<double> last_targets(past.targets());  // of several outputs with the same target, the first
  for (int k = 0; k < past.targets(); ++k) last_targets[k] = y[k * (targets() / past.targets())];
  past.add(rows, x, last_targets.data());
}

void NumberModel::add_newest(int count) {
  const int K = targets();
  Array<double> row(scaling->layout().width), scales(2 * K);
  std::vector<int> levels;  // of which the model has told already
  for (std::int64_t n = rows - count; n < rows; ++n) {
    const int i = replay.at(n);
    scaling->scale(replay.inputs[i], replay.past[i], row.data());
    scaling->add_inputs(replay.inputs[i], levels);
    for (int k = 0; k < K; ++k) {
      scales[2 * k] = scaling->target(k).center;
      scales[2 * k + 1] = scaling->target(k).scale;
      const double y = replay.targets[i][k];
      if (scaling->outlier_level(y, k) != EXTREME) scaling->add_usual(y, k);
      rescale(k, scales.data());
    }
  }
}

/// Calibrate and score the predictions of n rows that the bank has just learned; see `step`.
void NumberModel::calibrate_block(const double* y, int n, std::int64_t first, double tail,
                                  const StepRecord& record) {
  const int K = targets(), P = int(running_.size());
  for (int t = 0; t < n; ++t)
    for (int k = 0; k < K; ++k) {
      const std::size_t i = std::size_t(t) * K + k;
      const double mean = scales_[t][2 * k], sd = scales_[t][2 * k + 1];
      const double *weights = weights_.data() + i * P, *slots = slots_.data() + i * P;
      Interval interval{NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
      if (!std::isnan(mean)) {
        const double deviation = weighted_std(slots, predictions_[i], weights, P);
        interval = tracks[k].intervals.predict(predictions_[i], deviation, mean, sd, tail);
      }
      if (record.outputs) {
        double* out = record.outputs + 3 * i;
        out[0] = interval.value, out[1] = interval.low, out[2] = interval.high;
      }
      if (record.weights) running_.scatter(weights, 0.0, record.weights + i * pool());
      if (record.slots) {
        double* out = record.slots + i * pool();
        running_.scatter(slots, 0.0, out);
        for (int p = 0; p < pool(); ++p) out[p] = mean + sd * out[p];
      }
      score(k, first + t + 1, interval.value, y[i], mean, sd, weights, false);
    }
}

/// Score the prediction of a row, made before. scales (2 K): centers and scales of the targets before it.
void NumberModel::score(std::int64_t row, const Prediction& prediction, const double* y,
                        const double* scales, const std::vector<bool>& far) {
  const std::size_t P = running_.size();
  weights_.resize(targets() * P);
  if (bank) bank->write_weights(weights_.data());
  const auto delay = double(row - 1 - prediction.rows_before);
  for (int k = 0; k < targets(); ++k)
    score(k, row, prediction.output[3 * k], y[k], scales[2 * k], scales[2 * k + 1],
          weights_.data() + k * P, far[k], delay, prediction.ends.data() + k * INTERVAL_ENDS);
}

/// Score what was predicted for target k, if both are known, and look for changes; a far target is none
/// before it is clear that it stays.
void NumberModel::score(int k, std::int64_t row, double predicted, double y, double mean, double sd,
                        const double* weights, bool far, double delay, const double* ends) {
  if (std::isnan(y)) return;
  Intervals& intervals = tracks[k].intervals;
  if (std::isnan(predicted)) {
    intervals.skip(y, std::isnan(mean) ? 0.0 : mean, std::isnan(mean) ? 0.0 : sd);
    tracks[k].unscored += 1;
    return;
  }
  const double error = intervals.score(predicted, y, mean, sd, far, delay, ends);
  if (bank && !far) detect(k, row, error, weights);
}

/// Look for changes in an error, and in the weights (P,) of target k.
void NumberModel::detect(int k, std::int64_t row, double error, const double* weights) {
  ChangeDetector& detector = tracks[k].detector;
  const int signal = detector.see_error(error);
  if (signal != 0) note(row, signal > 0 ? Change::error_grew : Change::error_fell, k);
  running_.scatter(weights, 0.0, pool_row_.data());
  if (detector.see_weights(pool_row_.data())) note(row, Change::weights, k);
}

void NumberModel::write_record(const Prediction& prediction, const StepRecord& record) const {
  if (record.outputs) std::copy(prediction.output.begin(), prediction.output.end(), record.outputs);
  if (record.weights) write_weights(record.weights);
  if (!record.slots) return;
  const bool has_slots = prediction.slots.rows() > 0;
  for (int k = 0; k < targets(); ++k) {
    double* out = record.slots + k * pool();
    std::fill_n(out, pool(), has_slots ? scaling->target(k).center : prediction.output[3 * k]);
    for (int member : running_.members)
      if (has_slots) out[member] = prediction.slots[k][member];
  }
}

/// (K, P): what the slots that run now predicted then, scaled; the bank's prediction for those that did
/// not run.
const double* NumberModel::past_slots(const Prediction& prediction, const double* scales) {
  const std::size_t P = running_.size();
  earlier_.resize(targets() * P);
  for (int k = 0; k < targets(); ++k)
    for (std::size_t p = 0; p < P; ++p) {
      const double value = prediction.slots[k][running_.members[p]], sd = scales[2 * k + 1];
      const double z = sd == 0.0 ? 0.0 : clipped((value - scales[2 * k]) / sd, FAR_DEVIATIONS);
      earlier_[k * P + p] = std::isnan(value) ? prediction.scores[k] : z;
    }
  return earlier_.data();
}

// --- far targets ---------------------------------------------------------------------------------

/// Inputs (n, width) and targets (n, K) of rows, scaled by the present statistics.
NumberModel::ScaledRows NumberModel::scaled(const std::vector<HeldRow>& held_rows) {
  const int n = int(held_rows.size()), K = targets();
  ScaledRows scaled_rows{Matrix<double>(n, scaling->layout().width), Matrix<double>(n, K)};
  for (int t = 0; t < n; ++t) {
    scaling->scale(held_rows[t].x.data(), held_rows[t].past.data(), scaled_rows.inputs[t]);
    for (int k = 0; k < K; ++k)
      scaled_rows.targets[t][k] = scaling->scaled_target(held_rows[t].believed[k], k);
  }
  return scaled_rows;
}

/// Learn a far row, or one after such rows, or hold it back. far (K,): which of its targets are far;
/// scales (2 K): centers and scales before it; earlier (K, P): what the slots predicted, if the target
/// was delayed, else null.
void NumberModel::learn_or_hold(HeldRow row, const std::vector<bool>& far, const double* scales,
                                const double* earlier) {
  const int K = targets();
  held.rows.push_back(std::move(row));
  const HeldRow& newest = held.rows.back();
  ScaledRows scaled_rows = scaled(held.rows);
  std::vector<int> levels;
  scaling->add_inputs(newest.x.data(), levels);
  for (int column : levels) note(rows, Change::input_level, column);
  bool unclear = false, change = false;
  std::vector<bool> changed(K);
  for (int k = 0; k < K; ++k) {
    if (!far[k]) {
      if (!std::isnan(newest.y[k])) scaling->replace_held(held.believed(k), k);
      scaling->add_usual(newest.y[k], k);
      continue;
    }
    held.count_streak(k, int(scaling->target(k).streak));
    changed[k] = scaling->hold_target(newest.y[k], k);
    unclear = true, change = change || changed[k];
    read_held(k, changed[k] || held.expected(k, *scaling).probability > 0.5);
  }
  const bool waits = unclear && !change && held.rows.size() < CHANGE_AFTER;  // it is not clear yet
  for (int k = 0; k < K; ++k) {
    if (changed[k])
      follow_change(k, scales);
    else if (waits || change)
      rescale(k, scales);
  }
  if (waits) return;
  if (change) scaled_rows = scaled(held.rows);
  learn_held(scaled_rows, changed, earlier);
  for (int k = 0; k < K && !change; ++k) rescale(k, scales);
}

/// Learn the rows that were held back, and the one after them; see `learn_or_hold`.
void NumberModel::learn_held(ScaledRows& scaled_rows, const std::vector<bool>& changed,
                             const double* earlier) {
  const int K = targets();
  if (held.rows.size() == 1) {
    held.rows.clear();
    return bank->learn(scaled_rows.inputs[0], scaled_rows.targets[0], 1, earlier, nullptr, nullptr,
                       nullptr);
  }
  // The others of these rows were spikes: extreme ones are not learned.
  int learned = 0;
  for (std::size_t t = 0; t < held.rows.size(); ++t) {
    bool has_target = false;
    for (int k = 0; k < K; ++k) {
      double& target = scaled_rows.targets[int(t)][k];
      if (!changed[k] && scaling->outlier_level(held.rows[t].y[k], k) == EXTREME) target = NOT_A_NUMBER;
      has_target = has_target || !std::isnan(target);
    }
    if (!has_target) continue;
    std::copy_n(scaled_rows.inputs[int(t)], scaled_rows.inputs.columns(), scaled_rows.inputs[learned]);
    std::copy_n(scaled_rows.targets[int(t)], K, scaled_rows.targets[learned++]);
  }
  held.rows.clear();
  if (learned > 0)
    bank->learn(scaled_rows.inputs[0], scaled_rows.targets[0], learned, nullptr, nullptr, nullptr,
                nullptr);
}

/// The newest row is far in target k: what the baseline and forecasts take for its last values.
void NumberModel::read_held(int k, bool stays) {
  if (stays) tracks[k].intervals.stats().last_target = held.rows.back().y[k];
  for (const HeldRow& row : held.rows)
    if (k == 0) readings.push_back(stays ? row.y[k] : row.believed[k]);
}

/// Five values of target k in a row were far: its statistics and the range of predictions follow. After a
/// new level what slots have learned holds in the new units as it is. scales (2 K): those before.
void NumberModel::follow_change(int k, const double* scales) {
  if (held.adapt(k, *scaling))
    note(rows, Change::target_level, k);
  else
    rescale(k, scales);
  const int outputs = targets() / past.targets(), count = int(held.rows.size());
  held.believe(k, past.targets());
  for (int i = 0; i < count; ++i) {
    replay.replace(rows - count + i, k, held.rows[i].y[k]);
    if (k % outputs == 0) past.replace(rows, count - 1 - i, k / outputs, held.rows[i].y[k]);
  }
  ErrorStats stats = tracks[k].intervals.stats();
  const double mean = scaling->target(k).center, sd = scaling->target(k).scale;
  stats.low = mean - sd, stats.high = mean + sd;
  for (const HeldRow& row : held.rows) {
    stats.low = std::min(stats.low, row.y[k]);
    stats.high = std::max(stats.high, row.y[k]);
  }
}

// --- state ---------------------------------------------------------------------------------------

void NumberModel::allocate(int held_rows) {
  const int inputs = scaling->layout().inputs;
  if (held_rows < 0 || held_rows >= CHANGE_AFTER) throw StateRefused("five held rows are a change");
  held.rows.assign(held_rows, HeldRow{Array<double>(inputs), Array<double>(past.width()),
                                      Array<double>(targets()), Array<double>(targets()),
                                      Array<double>(targets())});
}

void NumberModel::visit(Archive& archive) {
  archive("rows", rows);
  archive.part("scaling", *scaling);
  archive.part("past", past);
  archive.part("replay", replay);
  archive.part("held", held);
  for (int k = 0; k < targets(); ++k) {
    archive.part("target" + std::to_string(k), tracks[k]);
    const Column target = scaling->target(k);
    archive.require(target.count == 0.0 || target.streak <= double(held.rows.size()),
                    "far targets are held back");
    archive.require(0 <= tracks[k].unscored && tracks[k].unscored <= rows, "counts are of rows");
  }
  archive.require(rows >= 0, "counts are of rows");
}

}  // namespace kb
