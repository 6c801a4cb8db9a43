#include "held_targets.hpp"

namespace kb {

/// Errors whose spread is a smaller multiple of the standard deviation are much the same.
static constexpr double SAME_SCALE = 4.0;

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double HeldTargets::expected_error(int k, Scaling& scaling) const {
  const int count = std::min(int(scaling.target(k).streak), int(rows.size()));
  if (count == 0 || scaling.target(k).count == 0.0) return 0.0;
  for (std::size_t i = rows.size() - count; i < rows.size(); ++i)
    if (scaling.outlier_level(rows[i].y[k], k) == EXTREME) return 0.0;
  const double before = streaks_[k][count - 1] - 1.0;  // without this streak, whose end is unknown
  const double continued = (streaks_[k][count] + std::min(count, 2)) / (before + 2.0);
  const double share = std::max(continued, scaling.target_correlation(k));
  return share * (rows.back().y[k] - rows.back().predicted[k]);
}

bool HeldTargets::adapt(int k, Scaling& scaling) const {
  std::vector<double> targets, errors;
  for (const HeldRow& row : rows) {
    targets.push_back(row.y[k]);
    errors.push_back(row.y[k] - row.predicted[k]);
  }
  const double shift = median(errors), mean = scaling.target(k).center;
  if (std::fabs(shift) < 0.5 * std::fabs(median(targets) - mean)) {
    scaling.widen_target(k);
    return false;
  }
  for (double& error : errors) error = std::fabs(error - shift);
  if (median(errors) < SAME_SCALE * scaling.target(k).scale)
    scaling.shift_target(shift, k);
  else
    scaling.restart_target(k);
  return true;
}

void HeldTargets::add_inputs(int count) {
  for (HeldRow& row : rows) row.x.resize(row.x.size() + count, NOT_A_NUMBER);
}

void HeldTargets::visit(Archive& archive) {
  archive("streaks", streaks_);
  archive.require(all_finite(streaks_[0], streaks_.numbers.size()), "counts of streaks are finite");
  archive.require(rows.size() < CHANGE_AFTER, "five held rows are a change");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    HeldRow& row = rows[i];
    const std::string name = "row" + std::to_string(i) + "/";
    archive((name + "inputs").c_str(), row.x);
    archive((name + "past").c_str(), row.past);
    archive((name + "targets").c_str(), row.y);
    archive((name + "predicted").c_str(), row.predicted);
  }
}

}  // namespace kb
