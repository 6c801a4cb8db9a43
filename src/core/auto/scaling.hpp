// Rows of a stream scaled in several ways by running statistics, and the statistics of its target.
//
// The target is a column whose far values are held back until it is clear what they mean: whether an
// outlier, a new level or a new scale.
#pragma once
#include "running_stats.hpp"

namespace kb {

/// The scalings of a row: deviations, their asinh, ranks, and the inputs as they are.
enum { STANDARD, ASINH, RANKS, PLAIN, SCALINGS };

/// Outlier levels of a target: beyond FAR_DEVIATIONS, beyond EXTREME_DEVIATIONS.
enum { USUAL, FAR, EXTREME };

/// Where a scaled row has what.
struct RowLayout {
  int inputs, width;
  int targets;     // past targets that a row knows,
  int shown;       // of which so many are columns that the user asked for
  int seasons, season_column;    // places for periods, and the first of their columns
  int previous, previous_column;  // inputs of the row before, and the first of their columns
  bool has_target;  // whether the target is a number, which has statistics
  int ring, target_ring;  // lengths of the rings of inputs and of the target
  /// (SCALINGS, inputs + targets): the column for each scaling of each input and past target, -1 where
  /// it is not wanted.
  Matrix<std::int64_t> places;
  /// Columns that are repeated, each times its relevance, from `relevant_column` on; past targets by
  /// their shifted logarithm.
  int relevant_column;
  std::vector<int> relevant_sources;

  /// How many numbers a row knows of the past: targets, those of seasons, inputs of the row before.
  int past() const;
};

/// The (row, column) of a new level of an input.
using NewLevels = std::vector<std::pair<int, int>>;

class Scaling {
 public:
  explicit Scaling(RowLayout layout);

  const RowLayout& layout() const { return layout_; }
  Column input(int k) { return {columns_[k], rings_[k], layout_.ring}; }
  Column target() { return {target_.data(), target_ring_.data(), layout_.target_ring}; }

  /// The factor of each relevant column.
  Array<double> relevance;
  /// The shift of the target's logarithm for slots on ranks and relevant columns, or 0.
  double target_shift = 0.0;

  /// Start the statistics of the inputs from first rows X (n, inputs).
  void fit_inputs(const double* X, int n);

  // --- rows --------------------------------------------------------------------------------------

  /// out (width,): the scalings of a row x (inputs,) which knows past (past,). Changes no statistic.
  /// Past targets are normalized by the target's own statistics; a missing one is 0. Past classes are
  /// written by the caller: each bank has labels of its own.
  void scale(const double* x, const double* past, double* out);
  /// Add a row to the statistics; the new levels, as those of row t.
  void add_inputs(const double* x, int t, NewLevels& levels);
  /// Scale each of n rows, then add it and its target to the statistics, up to the first far target.
  /// Returns how many rows were done.
  ///
  /// X (n, inputs), past (n, past), y (n,) or null -> out (n, width); scaled (n,): deviations of the
  /// targets; scale (n, 2): the target's center and scale before each row.
  int scale_and_add(const double* X, const double* past, const double* y, int n, double* out,
                    double* scaled, double* scale, NewLevels& levels);

  // --- the target --------------------------------------------------------------------------------

  int outlier_level(double y);
  /// Add a target to its statistics, after those that are held back.
  void add_target(double y);
  /// Hold a target back; whether these are CHANGE_AFTER by now. Then `restart_target`, `shift_target` or
  /// `widen_target` has to follow.
  bool hold_target(double y);
  /// The held targets have a level and a scale of their own: the statistics start from them.
  void restart_target() { target().restart(); }
  /// The held targets are as before but for a shift: move the mean and all values in the ring.
  void shift_target(double shift);
  /// The held targets were predicted: the standard deviation was too small for them.
  void widen_target() { add_held(target(), INF); }

  /// Take over the statistics of a scaling that had fewer inputs.
  void continue_from(const Scaling& before);
  void visit(Archive& archive);

 private:
  void place(int k, const double* forms, double plain, double* out) const;
  void scale_season(const double* past, double* out);
  static void add_held(Column target, double most);

  RowLayout layout_;
  std::vector<bool> is_past_target_;  // of each relevant column
  Matrix<double> columns_, rings_;    // of the inputs
  Array<double> target_, target_ring_;
  Matrix<double> forms_;  // of the inputs of the row that was scaled last
};

}  // namespace kb
