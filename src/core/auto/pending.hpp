// Predictions of single rows, kept until their targets come.
#pragma once
#include <cstring>
#include <deque>
#include <optional>

#include "prediction.hpp"

namespace kb {

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

}  // namespace kb
