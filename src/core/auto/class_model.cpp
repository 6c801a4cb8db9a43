#include "class_model.hpp"

#include "past.hpp"

namespace kb {

int best_class(const double* probabilities, int classes) {
  int best = classes > 0 ? 0 : -1;
  for (int c = 1; c < classes; ++c)
    if (probabilities[c] > probabilities[best]) best = c;
  return best;
}

int ClassModel::outputs() const {
  int total = 0;
  for (const auto& bank : banks) total += bank->outputs();
  return total;
}

void ClassModel::use_slots(int pool, std::vector<int> members) {
  running_ = {pool, std::move(members)};
  pool_row_.resize(pool);
  if (detector.slots() != pool) detector.restart_weights(pool);
}

void ClassModel::write_weights(double* out) const {
  const std::size_t P = running_.size();
  Array<double> weights(P, 1.0 / double(P));
  if (!banks.empty()) {
    weights.resize(banks[0]->outputs() * P);
    banks[0]->write_weights(weights.data());
  }
  running_.scatter(weights.data(), 0.0, out);
}

void ClassModel::write_labels(const double* scaled, const double* pasts, int n, int positive,
                              double* out) const {
  const RowLayout& layout = scaling->layout();
  const auto label = [&](double past) {
    return std::isnan(past) ? 0.0 : past == double(positive) ? 1.0 : -1.0;
  };
  std::copy_n(scaled, std::size_t(n) * layout.width, out);
  for (int t = 0; t < n; ++t, pasts += past.width(), out += layout.width) {
    for (int s = 0; s < SCALINGS; ++s)
      for (int i = 0; i < lags_; ++i) {
        const std::int64_t column = layout.places[s][layout.inputs + i];
        if (column >= 0) out[column] = label(pasts[i]);
      }
    for (int place = 0; place < layout.seasons; ++place) {
      const double* recalled = pasts + past.known_targets() + place * SEASON_PAST;
      double* columns = out + layout.season_column + place * SEASON_INPUTS;
      double total = 0.0, count = 0.0;
      for (int i = 0; i < RECALLED; ++i) {
        total += label(recalled[i]);
        count += label(recalled[i]) != 0.0;
      }
      columns[0] = label(recalled[0]);
      columns[1] = total / std::max(count, 1.0);
    }
  }
}

// --- predicting ----------------------------------------------------------------------------------

/// out (classes,): from scores (outputs,); without banks the shares of the classes so far, each counted
/// once more. There is one class more, which was not seen, as long as there are fewer than two.
void ClassModel::write_probabilities(const double* scores, double* out) {
  if (!banks.empty()) return probabilities.predict(scores, out);
  double total = 0.0;
  for (double count : counts) total += count;
  total += std::max(classes(), 2);
  for (int c = 0; c < classes(); ++c) out[c] = (counts[c] + 1.0) / total;
}

void ClassModel::predict(const double* x, const double* row_past, Prediction& out) {
  const std::size_t P = running_.size();
  out.rows_before = rows;
  out.past.assign(row_past, row_past + past.width());
  out.output.resize(classes());
  out.more.clear();
  out.slots = Matrix<double>(outputs(), pool());
  ask_banks(x, row_past, 1);
  out.scores.assign(scores_[0], scores_[0] + outputs());
  for (int k = 0; k < outputs(); ++k)
    running_.scatter(all_slots_.data() + k * P, NOT_A_NUMBER, out.slots[k]);
  write_probabilities(out.scores.data(), out.output.data());
}

/// scores_ (n, outputs) and all_slots_ (n, outputs, P) of rows X (n, inputs).
void ClassModel::ask_banks(const double* X, const double* pasts, int n) {
  const RowLayout& layout = scaling->layout();
  make_room_for(n);
  for (std::size_t t = 0; !banks.empty() && t < std::size_t(n); ++t)
    scaling->scale(X + t * layout.inputs, pasts + t * past.width(), rows_[int(t)]);
  int first = 0;
  for (const auto& bank : banks) {
    const std::size_t size = std::size_t(n) * bank->outputs();
    predictions_.resize(size), slots_.resize(size * running_.size());
    write_labels(rows_[0], pasts, n, positive(first), labelled_[0]);
    bank->predict(labelled_[0], n, predictions_.data(), slots_.data());
    first = keep_answers(n, first, bank->outputs());
  }
}

/// Room for n rows, scaled and labelled, and for the scores of all outputs and slots.
void ClassModel::make_room_for(int n) {
  make_room(rows_, n, scaling->layout().width);
  make_room(labelled_, n, scaling->layout().width);
  scores_ = Matrix<double>(n, outputs());
  all_slots_.resize(std::size_t(n) * outputs() * running_.size());
}

/// Copy predictions_ (n, K) and slots_ (n, K, P) of a bank to where those of all outputs are, from the
/// output `first` on; the first output of the next bank.
int ClassModel::keep_answers(int n, int first, int K) {
  const std::size_t P = running_.size(), all = outputs();
  for (int t = 0; t < n; ++t) {
    const std::size_t i = std::size_t(t) * K;
    std::copy_n(predictions_.data() + i, K, scores_[t] + first);
    std::copy_n(slots_.data() + i * P, K * P, all_slots_.data() + (t * all + first) * P);
  }
  return first + K;
}

void ClassModel::predict_rows(const double* X, const double* pasts, int n, double* out) {
  ask_banks(X, pasts, n);
  for (int t = 0; t < n; ++t) write_probabilities(scores_[t], out + std::size_t(t) * classes());
}

// --- a step --------------------------------------------------------------------------------------

int ClassModel::step(const double* X, const double* y, int n, bool learns, const Prediction* made,
                     const StepRecord& record) {
  const RowLayout& layout = scaling->layout();
  const int P = int(running_.size());
  std::vector<int> levels;
  if (!banks.empty() && !made) {
    // 1. Scale rows, and let the running statistics follow.
    const std::int64_t first = rows;
    rows_ = Matrix<double>(n, layout.width);
    pasts_ = Matrix<double>(n, past.width());
    for (int t = 0; t < n; ++t) {
      const double* x = X + std::size_t(t) * layout.inputs;
      past.write(rows, 0, pasts_[t]);
      scaling->scale_and_add(x, pasts_[t], nullptr, rows_[t], nullptr, nullptr, levels);
      count_row(x, pasts_[t], y[t], rows);
      note_levels(levels);
      levels.clear();
    }
    // 2. The banks predict each, and learn it.
    learn_block(y, n);
    // 3. Scores become probabilities, which are scored and watched.
    Array<double> row_output(classes());
    for (int t = 0; t < n; ++t) {
      write_probabilities(scores_[t], row_output.data());
      probabilities.update(scores_[t], int(y[t]));
      if (record.outputs)
        std::copy(row_output.begin(), row_output.end(), record.outputs + std::size_t(t) * classes());
      running_.scatter(first_weights_.data() + std::size_t(t) * P, 0.0, pool_row_.data());
      if (record.weights)
        std::copy(pool_row_.begin(), pool_row_.end(), record.weights + std::size_t(t) * pool());
      for (int k = 0; record.slots && k < outputs(); ++k) {
        const std::size_t i = std::size_t(t) * outputs() + k;
        running_.scatter(all_slots_.data() + i * P, 0.0, record.slots + i * pool());
      }
      score(first + t + 1, best_class(row_output.data(), classes()), int(y[t]), true, pool_row_.data());
    }
    return n;
  }
  // The same for one row, which was predicted before, or when there is no bank.
  if (!made) {
    pasts_ = Matrix<double>(1, past.width());
    past.write(rows, 0, pasts_[0]);
    predict(X, pasts_[0], made_);
    made = &made_;
    write_record(made_, record);
  }
  // Outputs that were added after the prediction have no score of it: NaN, for which the softmax leaves
  // the row out. That of two classes is now the second.
  const auto delay = double(rows - made->rows_before);
  const int earlier = int(made->scores.size()), offset = earlier == 1 && outputs() > 1 ? 1 : 0;
  if (!banks.empty()) {
    Array<double> scores(outputs(), outputs() == 1 ? 0.0 : NOT_A_NUMBER);
    for (int k = 0; k < earlier && k + offset < outputs(); ++k) scores[k + offset] = made->scores[k];
    probabilities.update(scores.data(), int(y[0]), delay);
    write_weights(pool_row_.data());
  }
  const int guess = best_class(made->output.data(), int(made->output.size()));
  score(rows + 1, guess, int(y[0]), made->rows_before > 0, pool_row_.data());
  const bool delayed = delay > 0.0;
  Array<double> past_of_slots;
  if (delayed && !banks.empty()) {
    past_of_slots.resize(std::size_t(outputs()) * P);
    past_slots(*made, offset, past_of_slots.data());
  }
  count_row(X, made->past.data(), y[0], made->rows_before);
  if (!learns) return 1;
  rows_ = Matrix<double>(1, layout.width);
  labelled_ = rows_;
  scaling->scale(X, made->past.data(), rows_[0]);
  scaling->add_inputs(X, levels);
  note_levels(levels);
  int first = 0;
  for (const auto& bank : banks) {
    const int K = bank->outputs();
    labels_.resize(K);
    for (int k = 0; k < K; ++k) labels_[k] = int(y[0]) == positive(first + k) ? 1.0 : -1.0;
    write_labels(rows_[0], made->past.data(), 1, positive(first), labelled_[0]);
    bank->learn(labelled_[0], labels_.data(), 1, delayed ? past_of_slots.data() + first * P : nullptr,
                nullptr, nullptr, nullptr, delay);
    first += K;
  }
  return 1;
}

/// Let the banks learn n rows, which are scaled: scores_ (n, outputs), all_slots_ (n, outputs, P),
/// first_weights_ (n, P).
void ClassModel::learn_block(const double* y, int n) {
  const std::size_t P = running_.size();
  make_room_for(n);
  first_weights_.resize(n * P);
  int first = 0;
  for (const auto& bank : banks) {
    const int K = bank->outputs();
    const std::size_t size = std::size_t(n) * K;
    labels_.resize(size), predictions_.resize(size), weights_.resize(size * P), slots_.resize(size * P);
    for (int t = 0; t < n; ++t)
      for (int k = 0; k < K; ++k)
        labels_[std::size_t(t) * K + k] = int(y[t]) == positive(first + k) ? 1.0 : -1.0;
    write_labels(rows_[0], pasts_[0], n, positive(first), labelled_[0]);
    bank->learn(labelled_[0], labels_.data(), n, nullptr, predictions_.data(), weights_.data(),
                slots_.data());
    for (std::size_t t = 0; first == 0 && t < std::size_t(n); ++t)
      std::copy_n(weights_.data() + t * K * P, P, first_weights_.data() + t * P);
    first = keep_answers(n, first, K);
  }
}

/// Count a label and a wrong prediction, and look for changes. counted : whether the prediction was made
/// after a label was known; weights (pool,).
void ClassModel::score(std::int64_t row, int predicted, int label, bool counted, const double* weights) {
  counts[label] += 1.0;
  if (counted)
    wrong += predicted != label;
  else
    unscored += 1;
  last_wrong += last_class >= 0 && last_class != label;
  last_class = label;
  if (banks.empty()) return;
  const int signal = detector.see_error(predicted != label ? 1.0 : 0.0);
  if (signal != 0) signals.push_back({row, signal > 0 ? Change::error_grew : Change::error_fell, -1});
  if (detector.see_weights(weights)) signals.push_back({row, Change::weights, -1});
}

void ClassModel::note_levels(const std::vector<int>& levels) {
  for (int column : levels) signals.push_back({rows, Change::input_level, column});
}

/// Count a learned row, keep it for replays, and let its label be the last one.
void ClassModel::count_row(const double* x, const double* row_past, double y,
                           std::int64_t predicted_at) {
  rows += 1;
  replay.add(rows, x, row_past, &y, predicted_at);
  past.add(rows, x, &y);
}

void ClassModel::write_record(const Prediction& prediction, const StepRecord& record) const {
  if (record.outputs) std::copy(prediction.output.begin(), prediction.output.end(), record.outputs);
  if (record.weights) write_weights(record.weights);
  for (int k = 0; record.slots && k < prediction.slots.rows(); ++k) {
    std::fill_n(record.slots + k * pool(), pool(), 0.0);
    for (int member : running_.members) record.slots[k * pool() + member] = prediction.slots[k][member];
  }
}

/// out (outputs, P): what the slots that run now predicted then, NaN where it is not known. offset : the
/// output that was the first when the prediction was made.
void ClassModel::past_slots(const Prediction& prediction, int offset, double* out) const {
  const int P = int(running_.size());
  std::fill_n(out, std::size_t(outputs()) * P, NOT_A_NUMBER);
  for (int k = 0; k < prediction.slots.rows() && k + offset < outputs(); ++k)
    for (int p = 0; p < P; ++p) {
      const double score = prediction.slots[k][running_.members[p]];
      out[(k + offset) * P + p] = std::isnan(score) ? prediction.scores[k] : score;
    }
}

// --- state ---------------------------------------------------------------------------------------

void ClassModel::visit(Archive& archive) {
  archive("rows", rows);
  archive("unscored", unscored);
  archive("counts", counts);
  archive("wrong", wrong);
  archive("last_wrong", last_wrong);
  archive("last_class", last_class);
  archive.part("scaling", *scaling);
  archive.part("past", past);
  archive.part("replay", replay);
  archive.part("probabilities", probabilities);
  archive.part("changes", detector);
  if (!archive.loaded) return;
  archive.require(rows >= 0 && 0 <= unscored && unscored <= rows, "counts are of rows");
  archive.require(-1 <= last_class && last_class < classes(), "the last class is one of them");
  archive.require(is_count(wrong) && is_count(last_wrong), "counts are whole");
  for (double count : counts) archive.require(is_count(count), "counts are whole");
  for (std::int64_t n = rows - replay.count(rows); n < rows; ++n) {
    const double label = replay.targets[replay.at(n)][0];
    archive.require(is_count(label, classes() - 1.0), "rows have one of the classes");
  }
}

}  // namespace kb
