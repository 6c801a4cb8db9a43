// What a model says of a row, kept until the row's target comes; and the bank that says it.
#pragma once
#include <cstring>
#include <deque>
#include <optional>

#include "../arrays.hpp"

namespace kb {

/// The prediction of one row.
struct Prediction {
  std::int64_t rows_before = 0;  // how many rows had been learned
  Array<double> past;            // (past,): what the row knew of those before it
  Array<double> scores;          // (outputs,): of the bank, scaled
  /// (outputs, slots of the pool): in the units of the target, NaN where a slot did not run; no rows
  /// before there is a bank.
  Matrix<double> slots;
  Array<double> output;          // (targets, 3): prediction, lower, upper; or (classes,): probabilities
  Array<double> more;            // (2, K, levels): quantiles and calibrated ends, if they are asked for
  Array<double> ends;            // (targets, INTERVAL_ENDS): see `Intervals`; nothing for classes
};

/// Which slots of a pool run.
struct RunningSlots {
  int pool = 0;
  std::vector<int> members;  // of each that runs, its index in the pool

  std::size_t size() const { return members.size(); }
  /// out (pool,): values (size,) of the slots that run, `others` elsewhere.
  void scatter(const double* values, double others, double* out) const {
    std::fill_n(out, pool, others);
    for (std::size_t p = 0; p < size(); ++p) out[members[p]] = values[p];
  }
};

/// The newest predictions, the oldest first, each with its row as it was given. Predicting the same row
/// twice before anything is learned counts once.
class Pending {
 public:
  struct Item {
    Array<double> row;
    Prediction prediction;
  };

  std::deque<Item> items;
  std::size_t limit = 1000;  // how many are kept
  /// How many, the oldest, were made before the row that was learned last: their targets may never come.
  std::size_t expired = 0;

  std::size_t fresh() const { return items.size() - expired; }

  /// How many fresh ones are older than that of this row, after so many learned rows.
  std::size_t waiting_before(const Array<double>& row, std::int64_t rows) const {
    const std::size_t i = find(row, rows);
    return i == items.size() ? fresh() : i - std::min(i, expired);
  }

  /// Keep a prediction. distinct : it is a row of its own, even where the row is equal.
  void add(Array<double> row, Prediction prediction, bool distinct) {
    const std::size_t i = distinct ? items.size() : find(row, prediction.rows_before);
    if (i < items.size()) {
      items[i].prediction = std::move(prediction);
      return;
    }
    items.push_back({std::move(row), std::move(prediction)});
    for (; items.size() > limit; items.pop_front()) expired -= std::min<std::size_t>(expired, 1);
  }

  /// Remove the oldest prediction of this row, which is learned now: those before it have expired.
  std::optional<Prediction> pop(const Array<double>& row) {
    expired = 0;
    while (expired < items.size() && !equal(items[expired].row, row)) ++expired;
    if (expired == items.size()) return {};
    std::optional<Prediction> prediction = std::move(items[expired].prediction);
    items.erase(items.begin() + std::ptrdiff_t(expired));
    return prediction;
  }

  void clear() {
    items.clear();
    expired = 0;
  }

  /// Add columns, which were missing when the predictions were made.
  void add_inputs(int count) {
    for (Item& item : items) item.row.resize(item.row.size() + count, NOT_A_NUMBER);
  }

 private:
  /// By their bytes: NaN is equal to NaN.
  static bool equal(const Array<double>& a, const Array<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  }
  /// Where the newest prediction of this row is, if it was made after so many learned rows; else the end.
  std::size_t find(const Array<double>& row, std::int64_t rows) const {
    for (std::size_t i = items.size(); i-- > 0 && items[i].prediction.rows_before == rows;)
      if (equal(items[i].row, row)) return i;
    return items.size();
  }
};

/// The bank of a model: here, or in other processes.
class ModelBank {
 public:
  virtual ~ModelBank() = default;
  virtual int outputs() const = 0;
  virtual int slots() const = 0;
  /// Learn n rows X (n, width) with targets y (n, K); past (n, K, P) are what slots predicted earlier, or
  /// null. predictions (n, K), weights and slot predictions (n, K, P): those before each row is learned,
  /// where they are not null. delay : of late targets, in rows, if the weights shall allow for it.
  virtual void learn(const double* X, const double* y, int n, const double* past, double* predictions,
                     double* weights, double* slots, double delay = 0.0) = 0;
  /// predictions (n, K) and those of slots (n, K, P) at rows X (n, width). Learns nothing.
  virtual void predict(const double* X, int n, double* predictions, double* slots) = 0;
  /// The targets of an output are in other units from now on: y' = factor y + offset.
  virtual void rescale(int output, double factor, double offset) = 0;
  /// (K, P): the weights of the next prediction.
  virtual void write_weights(double* weights) = 0;
  /// Whether it learns here alone: no process and no function of the user's is called.
  virtual bool is_local() const = 0;
  /// Warn of what the rows have shown that were learned since this was last called.
  virtual void warn() = 0;
};

/// What a step writes of each of its rows; null where nobody asks. Axes: row, output, slot of the pool.
struct StepRecord {
  double* outputs;     // (n, 3 K), or (n, classes)
  double* weights;     // (n, K, pool)
  double* slots;       // (n, K, pool): predictions of the slots
};

enum class Change { error_grew, error_fell, weights, target_level, input_level };

/// A signal of change: after so many rows, of which target or which column.
struct Signal {
  std::int64_t row;
  Change what;
  int of;
};

}  // namespace kb
