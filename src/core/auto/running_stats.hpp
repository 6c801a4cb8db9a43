// Running statistics of one column: normalized values, outliers and changes of level.
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

}  // namespace kb
