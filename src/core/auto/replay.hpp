// The newest rows of a stream, from which slots that start later learn again.
#pragma once
#include <algorithm>

#include "../arrays.hpp"

namespace kb {

/// The newest `size` rows, kept as long as slots may start from them: up to row `until`. Row n is at
/// n % size.
class Replay {
 public:
  Replay(int size, std::int64_t until, int inputs, int past, int targets)
      : inputs(size, inputs),
        past(size, past),
        targets(size, targets),
        predicted_at(size),
        until_(until) {}

  Matrix<double> inputs, past, targets;
  /// How many rows were learned when each was predicted: fewer than its number if its target was delayed.
  Array<std::int64_t> predicted_at;

  int size() const { return inputs.rows(); }
  /// The index of row n.
  int at(std::int64_t n) const { return int(n % size()); }
  /// How many are kept after so many rows.
  int count(std::int64_t rows) const { return int(std::min<std::int64_t>(rows, size())); }

  /// Add the newest row of a stream of `rows` rows.
  void add(std::int64_t rows, const double* x, const double* row_past, const double* y,
           std::int64_t predicted) {
    if (rows > until_) return;
    const int i = at(rows - 1);
    std::copy_n(x, inputs.columns(), inputs[i]);
    std::copy_n(row_past, past.columns(), past[i]);
    std::copy_n(y, targets.columns(), targets[i]);
    predicted_at[i] = predicted;
  }
  /// Add inputs, which were missing so far.
  void add_inputs(int count) {
    Matrix<double> wider(size(), inputs.columns() + count, NOT_A_NUMBER);
    for (int i = 0; i < size(); ++i) std::copy_n(inputs[i], inputs.columns(), wider[i]);
    inputs = std::move(wider);
  }
  void visit(Archive& archive) {
    archive("inputs", inputs);
    archive("past", past);
    archive("targets", targets);
    archive("predicted_at", predicted_at);
  }

 private:
  std::int64_t until_;
};

}  // namespace kb
