// Rows of a stream scaled in several ways by running statistics, and the statistics of its targets.
//
// A target is a column whose far values are held back until it is clear what they mean: whether an
// outlier, a new level or a new scale.
//
// A column is an array of STATS statistics and a ring buffer of its last values. A value has three
// normalized *forms*:
//
// - FIXED: its deviation (value - center) / scale. Center and scale are the mean and standard
//   deviation of some time ago. They follow when the mean has moved by a tenth of the standard
//   deviation, or the standard deviation by a tenth of itself. So a function of this form keeps its
//   meaning while nothing much changes;
// - MOVING: its deviation by the mean and standard deviation of all values before it;
// - RANK: the normal quantile of its mid-rank among the values in the ring.
//
// Nothing is frozen, and nothing moves far at once:
//
// - a value enters mean and standard deviation as if it were at most FAR_DEVIATIONS away, so one
//   value of a million deviations does no more than one of ten;
// - CHANGE_AFTER values in a row beyond FAR_DEVIATIONS are a change of level or scale: mean and
//   standard deviation are taken from these values, and the ring forgets the others.
//
// A missing value (NaN) is filled in as an autoregressive process with the column's own correlation
// would predict it: by r^k times the forms seen k rows ago. It changes no other statistic. An
// *extreme* value, beyond EXTREME_DEVIATIONS, is filled in likewise: it is not a measurement.
//
// Beside them: quantiles of the standard normal distribution.
#pragma once
#include <algorithm>
#include <cmath>

#include "../arrays.hpp"
#include "../math.hpp"

namespace kb {

// --- running statistics of a column --------------------------------------------------------------

enum Form { FIXED, MOVING, RANK };
inline constexpr int FORMS = 3;

/// Deviations beyond which a value is far: it counts as 10, and may be a change of level.
inline constexpr double FAR_DEVIATIONS = 10.0;
/// Deviations beyond which a value is not a measurement.
inline constexpr double EXTREME_DEVIATIONS = 1000.0;
/// Deviations are clipped here for the learners.
inline constexpr double CLIP = 8.0;
/// How many far values in a row are a new level or scale.
inline constexpr int CHANGE_AFTER = 5;
/// The shift of a target's logarithm is 0 or between these in size, in standard deviations.
inline constexpr double LEAST_SHIFT = 1.2, LARGEST_SHIFT = 30.0;

/// z within [-most, most]
inline double clipped(double z, double most) { return std::min(std::max(z, -most), most); }

/// A column, as a view of STATS statistics and of the ring's numbers, which another object owns.
class Column {
 public:
  static constexpr int STATS = 13;

  Column(double* stats, double* ring, int ring_size)
      : count(stats[0]),
        mean(stats[1]),
        squares(stats[2]),
        center(stats[3]),
        scale(stats[4]),
        streak(stats[5]),
        seen(stats[6]),
        age(stats[7]),
        last(stats + 8),
        product(stats[11]),
        power(stats[12]),
        ring_(ring),
        size_(ring_size) {}

  double& count;    // the weight of mean and squares, which stops growing at MAX_COUNT
  double& mean;
  double& squares;  // the sum of squared deviations from the mean
  double &center, &scale;
  double& streak;   // values in a row beyond FAR_DEVIATIONS
  double& seen;     // values since the ring was last emptied
  double& age;      // how many rows ago the last forms were seen
  double* last;     // (FORMS,)
  double &product, &power;  // sums over pairs of rows, whose ratio is the correlation

  /// 0 for a constant column.
  double standard_deviation() const;
  /// (value - center) / scale, not clipped; infinite where a column that was constant moves.
  double deviation(double value) const { return deviation_from(value, center, scale); }
  bool is_far(double value) const { return std::fabs(deviation(value)) > FAR_DEVIATIONS; }
  /// Never in a constant column, which has no scale.
  bool is_extreme(double value) const {
    return std::fabs(value - center) > EXTREME_DEVIATIONS * scale && EXTREME_DEVIATIONS * scale > 0.0;
  }

  /// forms (FORMS,): those of a value before it enters the statistics, deviations clipped.
  void normalize(double value, double* forms) const;
  /// Keep the forms of a value, from which missing values are filled in.
  void remember_last(double value, const double* forms);
  void remember_last(double value) {
    double forms[FORMS];
    normalize(value, forms);
    remember_last(value, forms);
  }
  /// Add a value to mean and standard deviation, as if it were at most `most` deviations away.
  void add_to_moments(double value, double most);
  /// Add a value to the ring.
  void push(double value);
  /// Add a value with its forms to the statistics; whether it made a new level. A column that only
  /// steps through a few values makes none, though its statistics start anew.
  bool update(double value, const double* forms);
  /// Start mean and standard deviation anew from the last CHANGE_AFTER values.
  void restart();
  /// Start the statistics from first values (n,), as if these had always been the usual ones. Values
  /// much farther from the median than seven eighths of them count as less far: they are a few
  /// outliers, but not the start of a signal that was at rest. Extreme values do not count.
  void fit(const double* values, int n);

  /// How many values the ring holds.
  int held() const { return int(std::min(seen, double(size_))); }
  /// The value i places before the newest, which is at 1.
  double& newest(int i) const { return ring_[(std::int64_t(seen) - i) % size_]; }

  /// Refuse statistics from outside that no column has.
  void check(const Archive& archive) const;

 private:
  static double deviation_from(double value, double center, double scale);
  double rank(double value) const;
  double remaining() const;
  bool only_steps() const;

  double* ring_;
  int size_;
};

/// Whether all numbers are finite.
bool all_finite(const double* numbers, std::size_t count);
/// Whether a number is 0, 1, ... and at most `most`.
bool is_count(double number, double most = 0x1p53);

/// The quantile of the standard normal distribution at 1e-10 < p < 1 - 1e-10, to about 1e-16 of
/// it: algorithm AS 241 of M. J. Wichura, The percentage points of the normal distribution, Applied
/// Statistics 37 (1988), but for its farthest tails.
double normal_quantile(double p);

/// Normal quantiles over equal steps of probability, from 0 to 1; the ends are those of half a step.
const Array<double>& normal_quantile_table();

// --- rows and targets ----------------------------------------------------------------------------

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
  void normalize(int k, double value);
  bool update(int k, double value);
  void place(int k, const double* forms, double plain, double* out) const;
  void scale_season(const double* past, int k, double* out);
  static void add_held(Column target, double most);

  RowLayout layout_;
  std::vector<int> past_target_;    // of each relevant column: whose past target it is, or -1
  Matrix<double> columns_, rings_;  // of the inputs
  Matrix<double> targets_, target_rings_;
  // Of the inputs of the row that was scaled last: the forms, and their values; NaN once the statistics
  // of an input have changed.
  Matrix<double> forms_;
  Array<double> normalized_;
};

}  // namespace kb
