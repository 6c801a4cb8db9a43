#include "past.hpp"

#include <algorithm>

namespace kb {

/// The order: lagged targets; of each period those of all targets; inputs of the row before.
void Past::write(std::int64_t rows, std::int64_t waiting, double* out) const {
  out = std::copy(lagged_.begin(), lagged_.end(), out);
  const int places = int(seasons[0].periods.size());
  Array<double> own(seasons[0].width());
  for (int k = 0; places > 0 && k < targets_; ++k) {
    seasons[k].recall(rows, nullptr, rows + waiting, rows, own.data());
    for (int i = 0; i < places; ++i)
      std::copy_n(own.data() + i * SEASON_PAST, SEASON_PAST, out + (i * targets_ + k) * SEASON_PAST);
  }
  out += std::size_t(places) * targets_ * SEASON_PAST;
  std::copy(last_inputs_.begin(), last_inputs_.end(), out);
}

void Past::add(std::int64_t rows, const double* x, const double* y) {
  if (!lagged_.empty()) {
    std::copy_backward(lagged_.begin(), lagged_.end() - targets_, lagged_.end());
    std::copy_n(y, targets_, lagged_.begin());
  }
  for (int k = 0; season_width() > 0 && k < targets_; ++k) seasons[k].append(rows, y[k]);
  std::copy_n(x, last_inputs_.size(), last_inputs_.begin());
}

void Past::visit(Archive& archive) {
  archive("lagged", lagged_);
  if (!last_inputs_.empty()) archive("last_inputs", last_inputs_);
  for (int k = 0; season_width() > 0 && k < targets_; ++k)
    archive.part("season" + std::to_string(k), seasons[k]);
}

}  // namespace kb
