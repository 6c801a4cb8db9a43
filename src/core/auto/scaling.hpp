// Rows of a stream scaled in several ways by running statistics, and the statistics of its targets.
//
// A target is a column whose far values are held back until it is clear what they mean: whether an
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
  int outputs;     // with statistics: at least one for each target; none if targets are classes
  int each;        // targets of a row; all outputs of a target stand together
  int targets;     // past targets that a row knows, those of a row side by side, the newest row first,
  int shown;       // of which so many are columns that the user asked for
  int seasons, season_column;    // places for periods, and the first of their columns
  int previous, previous_column;  // inputs of the row before, and the first of their columns
  int ring, target_ring;  // lengths of the rings of inputs and of targets
  /// (SCALINGS, inputs + targets): the column for each scaling of each input and past target, -1 where
  /// it is not wanted.
  Matrix<std::int64_t> places;
  /// Columns that are repeated, each times its relevance, from `relevant_column` on; past targets by
  /// their shifted logarithm.
  int relevant_column;
  std::vector<int> relevant_sources;

  /// How many numbers a row knows of the past: targets, those of seasons, inputs of the row before.
  int past() const;
  /// The output whose statistics are those of past target i.
  int output_of(int i) const { return i % each * (outputs / each); }
};

class Scaling {
 public:
  explicit Scaling(RowLayout layout);

  const RowLayout& layout() const { return layout_; }
  Column input(int k) { return {columns_[k], rings_[k], layout_.ring}; }
  Column target(int k = 0) { return {targets_[k], target_rings_[k], layout_.target_ring}; }

  /// The factor of each relevant column.
  Array<double> relevance;
  /// (outputs,): the shift of a target's logarithm for slots on ranks and relevant columns, or 0.
  Array<double> target_shift;

  /// Start the statistics of the inputs from first rows X (n, inputs).
  void fit_inputs(const double* X, int n);

  // --- rows --------------------------------------------------------------------------------------

  /// out (width,): the scalings of a row x (inputs,) which knows past (past,). Changes no statistic.
  /// Past targets are normalized by the target's own statistics; a missing one is 0. Past classes are
  /// written by the caller: each bank has labels of its own.
  void scale(const double* x, const double* past, double* out);
  /// Add a row to the statistics; the columns that have a new level are added to `levels`.
  void add_inputs(const double* x, std::vector<int>& levels);
  /// Scale a row, then add it and its targets to the statistics; false, and nothing changes, if a
  /// target is far. y (outputs,), NaN where one is missing -> out (width,); deviations (outputs,) of
  /// the targets; scales (outputs, 2): their centers and scales before the row.
  bool scale_and_add(const double* x, const double* past, const double* y, double* out,
                     double* deviations, double* scales, std::vector<int>& levels);
  /// Mean square of the deviations of the inputs of a scaled row, by the first scaling.
  double mean_square(const double* row);

  // --- targets -----------------------------------------------------------------------------------

  int outlier_level(double y, int k = 0);
  /// A target in its present deviations, at most FAR_DEVIATIONS in size; NaN if it is missing,
  /// or none was known before.
  double scaled_target(double y, int k = 0);
  /// Add a usual target, or one that is missing.
  void add_usual(double y, int k);
  /// Add a target to its statistics, after those that are held back.
  void add_target(double y, int k = 0);
  /// Hold a target back; whether these are CHANGE_AFTER by now. Then `restart_target`, `shift_target`
  /// or `widen_target` has to follow.
  bool hold_target(double y, int k = 0);
  /// The held targets were spikes: these are believed, the newest first, before others are added.
  void replace_held(const std::vector<double>& believed, int k);
  /// The held targets have a level and a scale of their own: the statistics start from them.
  void restart_target(int k = 0) { target(k).restart(); }
  /// The held targets are as before but for a shift: move the mean and all values in the ring.
  void shift_target(double shift, int k = 0);
  /// The held targets were predicted: the standard deviation was too small for them.
  void widen_target(int k = 0) { add_held(target(k), INF); }
  /// The correlation of a target with the next one, at least 0.
  double target_correlation(int k = 0);

  /// Take over the statistics of a scaling that had fewer inputs.
  void continue_from(const Scaling& before);
  void visit(Archive& archive);

 private:
  void place(int k, const double* forms, double plain, double* out) const;
  void scale_season(const double* past, int k, double* out);
  static void add_held(Column target, double most);

  RowLayout layout_;
  std::vector<int> past_target_;    // of each relevant column: whose past target it is, or -1
  Matrix<double> columns_, rings_;  // of the inputs
  Matrix<double> targets_, target_rings_;
  Matrix<double> forms_;  // of the inputs of the row that was scaled last
};

}  // namespace kb
