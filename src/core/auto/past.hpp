// What rows know of those before them: last targets, those of earlier periods, inputs of the row before.
//
// A row is predicted, and learned later, with what was known at its prediction. So these numbers, the
// *past* of a row, are kept with predictions that wait, with rows that are held back, and for replays.
#pragma once
#include "seasons.hpp"

namespace kb {

class Past {
 public:
  /// targets : of a row; remembered : rows whose targets a row knows; previous : how many inputs of the
  /// row before, the first ones; places : for periods, with `size` targets kept for them.
  Past(int targets, int remembered, int previous, int places, int size)
      : seasons(targets, SeasonHistory(places > 0 ? size : 0, places)),
        targets_(targets),
        lagged_(targets * remembered, NOT_A_NUMBER),
        last_inputs_(previous, NOT_A_NUMBER) {}

  std::vector<SeasonHistory> seasons;  // of each target

  int width() const { return int(lagged_.size() + last_inputs_.size()) + season_width(); }
  /// Where the inputs of the row before begin.
  int inputs_at() const { return int(lagged_.size()) + season_width(); }
  int known_targets() const { return int(lagged_.size()); }
  int targets() const { return targets_; }

  /// out (width,): what the row `waiting` rows after the next one knows, if `rows` were learned.
  void write(std::int64_t rows, std::int64_t waiting, double* out) const;
  /// Remember the newest row, of `rows` by now, with targets y (targets,).
  void add(std::int64_t rows, const double* x, const double* y);
  void visit(Archive& archive);

 private:
  int season_width() const { return targets_ * seasons[0].width(); }

  int targets_;
  Array<double> lagged_;       // the last targets: those of a row side by side, the newest row first
  Array<double> last_inputs_;
};

}  // namespace kb
