#include "held_targets.hpp"

namespace kb {

/// Errors whose spread is a smaller multiple of the standard deviation are much the same.
static constexpr double SAME_SCALE = 4.0;

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

Stay HeldTargets::expected_after_rows(int k, Scaling& scaling) const {
  double newest = 0.0, second = 0.0;  // errors of the newest far targets
  int count = 0;                      // of the far targets
  for (std::size_t i = rows.size(); i-- > 0 && count < scaling.target(k).streak;) {
    if (std::isnan(rows[i].y[k])) continue;
    if (scaling.outlier_level(rows[i].y[k], k) == EXTREME) return {};
    const double error = rows[i].y[k] - rows[i].predicted[k];
    if (count == 0) newest = error;
    if (count == 1) second = error;
    if (error * newest < 0.0) return {};  // on both sides: spikes
    count += 1;
  }
  if (count == 0 || scaling.target(k).count == 0.0) return {};
  // A level may be reached by steps: the newest two tell whether the targets are near it.
  const double nearer = std::min(std::fabs(newest), std::fabs(second));
  if (count > 1 && std::fabs(newest - second) > nearer) return {};
  const double before = streaks_[k][count - 1] - 1.0;  // without this streak, whose end is unknown
  const double continued = (streaks_[k][count] + std::min(count, 2)) / (before + 2.0);
  return {continued, newest};
}

std::vector<double> HeldTargets::believed(int k) const {
  std::vector<double> targets;
  for (std::size_t i = rows.size() - 1; i-- > 0;)
    if (!std::isnan(rows[i].y[k])) targets.push_back(rows[i].believed[k]);
  return targets;
}

void HeldTargets::believe(int k, int each) {
  const int outputs = int(rows[0].y.size()) / each;  // of a target; the first is what later rows know
  for (std::size_t i = 0; k % outputs == 0 && i < rows.size(); ++i)
    // Lagged targets of row i, the newest first: those of rows i - 1, i - 2, ...
    for (std::size_t j = 0; j < i && (j + 1) * each <= rows[i].past.size(); ++j) {
      double& lagged = rows[i].past[j * each + k / outputs];
      if (lagged == rows[i - 1 - j].believed[k]) lagged = rows[i - 1 - j].y[k];
    }
  for (HeldRow& row : rows) row.believed[k] = row.y[k];
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
    archive((name + "believed").c_str(), row.believed);
  }
}

}  // namespace kb
