// The newest samples of a stream, and how new inputs compare with them. All slots share them.
#pragma once
#include <algorithm>

#include "kernels.hpp"

namespace kb {

/// Samples between two slides of the arrays that hold the newest samples. Every position follows
/// from the absolute number of a sample and this period: a state needs no offsets, and blocks of
/// any lengths leave the same numbers behind. No block goes beyond a multiple of it.
inline constexpr int SLIDE_PERIOD = 256;

/// Where the terms before sample `number` begin, in an array of `length` + SLIDE_PERIOD terms.
inline int slide_start(std::int64_t number) {
  return number == 0 ? 0 : int((number - 1) % SLIDE_PERIOD) + 1;
}

/// The newest `length` terms move to the front, when sample `first` begins a period.
template <class T>
void slide(std::int64_t first, int length, T* terms) {
  if (first > 0 && first % SLIDE_PERIOD == 0) std::copy_n(terms + SLIDE_PERIOD, length, terms);
}

/// An input that slots are to predict at.
struct Query {
  const double* x;           // (dimension,)
  std::int64_t seen;         // how many samples have been learned
  StatisticRows rows;        // of x with the last `length` inputs, oldest first, and with itself
  const char* repeated;      // of each statistic: whether the row is that of the last sample
  int length;
};

class Samples {
 public:
  /// length : how many past inputs slots read. block : the longest block.
  Samples(int length, int dimension, int outputs, Statistics statistics, int block)
      : length(length),
        dimension(dimension),
        targets(outputs, Array<Lanes>(length + SLIDE_PERIOD, Lanes(0.0))),
        statistics_(std::move(statistics)),
        inputs_(dimension, length + SLIDE_PERIOD),
        rows_((block + 1) * count(), length + 1, NOT_A_NUMBER),
        repeated_(std::size_t(block + 1) * count()),
        query_point_(dimension),
        query_terms_(dimension, length + 1),
        query_rows_(count(), length + 1) {}

  const int length, dimension;
  std::vector<Array<Lanes>> targets;  // of each output; the same number in all lanes
  bool uses_query = false;            // whether the block is the one point of the last query

  void visit(Archive& archive) {
    archive("inputs", inputs_);
    for (std::size_t k = 0; k < targets.size(); ++k)
      archive(("output" + std::to_string(k) + "/targets").c_str(), targets[k]);
    if (archive.loaded) forget();
  }

  /// Have room for blocks of this length.
  void reserve(int block) {
    BlockRows<double> rows((block + 1) * count(), length + 1, NOT_A_NUMBER);
    for (int s = 0; s < count(); ++s) std::copy_n(rows_[s], length + 1, rows[s]);
    rows_ = std::move(rows);
    repeated_ = std::vector<char>(std::size_t(block + 1) * count());
  }

  /// Continue from the newest samples of a bank with other slots, which may need fewer or more, or
  /// with fewer inputs: the new ones were 0.
  void continue_from(const Samples& before) {
    const int count = std::min(length, before.length) + SLIDE_PERIOD;
    const int at = length + SLIDE_PERIOD - count, from = before.length + SLIDE_PERIOD - count;
    for (int k = 0; k < dimension; ++k) {
      const bool is_new = k >= before.dimension;  // older terms get finite values
      std::fill_n(inputs_[k], length + SLIDE_PERIOD, is_new ? 0.0 : before.inputs_[k][0]);
      if (!is_new) std::copy_n(before.inputs_[k] + from, count, inputs_[k] + at);
    }
    for (std::size_t k = 0; k < targets.size(); ++k)
      std::copy_n(before.targets[k].begin() + from, count, targets[k].begin() + at);
    forget();
  }

  /// Where sample `number` is in the arrays.
  int place(std::int64_t number) const { return length + int(number % SLIDE_PERIOD); }

  /// Let all terms be one input: terms before the first sample need finite kernel values. The
  /// points (m, dimension) of an initial function are the newest of them.
  void fill(const double* x, const double* points = nullptr, int m = 0) {
    for (int k = 0; k < dimension; ++k) {
      std::fill_n(inputs_[k], length + SLIDE_PERIOD, x[k]);
      const int count = std::min(m, length);
      for (int j = 0; j < count; ++j)
        inputs_[k][length - count + j] = points[std::size_t(m - count + j) * dimension + k];
    }
  }

  /// Add samples first .. first + block - 1, which lie in one slide period. X: (block, dimension),
  /// y: (block, outputs). Compare each with the inputs before it.
  void append(std::int64_t first, const double* X, const double* y, int block) {
    const int position = place(first), outputs = int(targets.size());
    for (int k = 0; k < dimension; ++k) {
      slide(first, length, inputs_[k]);
      for (int t = 0; t < block; ++t) inputs_[k][position + t] = X[std::size_t(t) * dimension + k];
    }
    for (int k = 0; k < outputs; ++k) {
      slide(first, length, targets[k].data());
      for (int t = 0; t < block; ++t) targets[k][position + t] = y[std::size_t(t) * outputs + k];
    }
    uses_query = block == 1 && query_seen_ == first &&
                 std::equal(query_point_.begin(), query_point_.end(), X);
    query_seen_ = -1;
    for (int t = 0; t < block; ++t)
      for (int s = 0; s < count(); ++s) {
        double* row = rows_[(t + 1) * count() + s];
        if (uses_query)
          std::copy_n(query_rows_[s], length + 1, row);
        else
          statistics_[s].write(X + std::size_t(t) * dimension, inputs_[0] + position + t - length,
                               length + SLIDE_PERIOD, length + 1, row);
        const double* before = rows_[t * count() + s];
        repeated_[std::size_t(t) * count() + s] = std::equal(row, row + length + 1, before);
      }
    for (int s = 0; s < count(); ++s)  // for the next block
      std::copy_n(rows_[block * count() + s], length + 1, rows_[s]);
  }

  /// Statistics of sample t of the block with the last `length` inputs, oldest first, and itself.
  StatisticRows rows(int t) const { return {rows_[(t + 1) * count()], std::size_t(length + 1)}; }
  /// Of each statistic: whether its row at sample t equals the one before bit for bit, as on a
  /// regular grid.
  const char* repeated(int t) const { return repeated_.data() + std::size_t(t) * count(); }

  /// Compare a point with the last inputs; that is kept for a block of this point alone.
  Query query(std::int64_t seen, const double* x) {
    query_seen_ = -1;
    for (int k = 0; k < dimension; ++k) {
      std::copy_n(inputs_[k] + slide_start(seen), length, query_terms_[k]);
      query_terms_[k][length] = x[k];
    }
    char* repeated = repeated_.data() + repeated_.size() - count();
    for (int s = 0; s < count(); ++s) {
      statistics_[s].write(x, query_terms_[0], length + 1, length + 1, query_rows_[s]);
      const double* row = query_rows_[s];
      repeated[s] = std::equal(row, row + length + 1, rows_[s]);
    }
    std::copy_n(x, dimension, query_point_.begin());
    query_seen_ = seen;
    return {query_point_.data(), seen, {query_rows_[0], std::size_t(length + 1)}, repeated, length};
  }
  /// Forget the query and the last rows: the next block compares everything itself.
  void forget() {
    query_seen_ = -1;
    std::fill(rows_.numbers.begin(), rows_.numbers.end(), NOT_A_NUMBER);
  }
  void forget_query() { query_seen_ = -1; }

  bool may_fail() const { return statistics_.may_fail(); }

  /// Coordinate k of the newest inputs, at the positions that `place` tells.
  const double* inputs(int k) const { return inputs_[k]; }

 private:
  int count() const { return statistics_.count(); }

  Statistics statistics_;
  Matrix<double> inputs_;       // (dimension, length + SLIDE_PERIOD)
  BlockRows<double> rows_;      // row 0: of the sample before the block; count() rows per sample
  std::vector<char> repeated_;  // count() per sample; the last ones are of the query
  Array<double> query_point_;
  Matrix<double> query_terms_, query_rows_;
  std::int64_t query_seen_ = -1;
};

}  // namespace kb
