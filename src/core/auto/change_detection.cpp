#include "change_detection.hpp"

#include "scaling.hpp"

namespace kb {

static constexpr double RANKED_AFTER = 50.0;  // errors before the first bet
/// Forgetting factors of the two means, and the row from which they are compared: 1 / (1 - LONG).
static constexpr double SHORT = 0.95, LONG = 0.998, COMPARED_AFTER = 500.0;
/// Shares of the weight that has moved: for the signal, and before it may come again.
static constexpr double MOVED = 0.5, REJOINED = 0.25;

/// Update the sums of the martingales; their mean.
///
/// Each has an exponent k, and the betting factor k u^(k - 1) of a rank u: k = 0.1 bets on few very large
/// errors, k = 0.8 on many that are a little larger than before. The factor is its mean over the cell
/// [rank, rank + 1] / ranks. Over all cells it has the mean 1, which its values in their middles do not
/// have. Tied errors share the cell in the middle of theirs, where the factor, which is convex, is a little
/// smaller.
double ChangeDetector::bet(Array<double>& sums, double rank, double ranks) {
  const double u = rank / ranks, v = (rank + 1.0) / ranks;
  const double gained[MARTINGALES] = {power(v, 0.1) - power(u, 0.1), std::sqrt(v) - std::sqrt(u),
                                      power(v, 0.8) - power(u, 0.8)};
  double total = 0.0;
  for (int i = 0; i < MARTINGALES; ++i) total += sums[i] = (1.0 + sums[i]) * (gained[i] * ranks);
  return total / MARTINGALES;
}

int ChangeDetector::see_error(double error) {
  const int size = int(errors_.size()), count = int(std::min(seen_, double(size)));
  int signal = 0;
  if (seen_ >= RANKED_AFTER) {
    std::int64_t greater = 0, same = 0;  // as wide as the numbers: so the loop is vectorized
    for (int i = 0; i < count; ++i) {
      greater += errors_[i] > error;
      same += errors_[i] == error;
    }
    const double grew = bet(grew_, double(greater) + 0.5 * double(same), count + 1.0);
    const double fell = bet(fell_, double(count - greater) - 0.5 * double(same), count + 1.0);
    signal = !(grew < limit_) ? 1 : !(fell < limit_) ? -1 : 0;
  }
  if (signal != 0) {
    std::fill(grew_.begin(), grew_.end(), 0.0);
    std::fill(fell_.begin(), fell_.end(), 0.0);
    seen_ = 0.0;
  }
  errors_[std::int64_t(seen_) % size] = std::isfinite(error) ? error : 0.0;
  seen_ += 1.0;
  return signal;
}

bool ChangeDetector::see_weights(const double* weights) {
  double *short_mean = means_[0], *long_mean = means_[1];
  rows_ += 1.0;
  const double soon = std::max(1.0 - SHORT, 1.0 / rows_), late = std::max(1.0 - LONG, 1.0 / rows_);
  double moved = 0.0;
  for (int p = 0; p < slots(); ++p) {
    short_mean[p] += soon * (weights[p] - short_mean[p]);
    long_mean[p] += late * (weights[p] - long_mean[p]);
    moved += 0.5 * std::fabs(short_mean[p] - long_mean[p]);
  }
  if (apart_ == 0.0 && moved > MOVED && rows_ >= COMPARED_AFTER) {
    apart_ = 1.0;
    std::copy_n(short_mean, slots(), long_mean);
    return true;
  }
  if (moved < REJOINED) apart_ = 0.0;
  return false;
}

void ChangeDetector::visit(Archive& archive) {
  archive("grew", grew_);
  archive("fell", fell_);
  archive("seen", seen_);
  archive("errors", errors_);
  archive("rows", rows_);
  archive("apart", apart_);
  archive("mean_weights", means_);
  if (!archive.loaded) return;
  for (const Array<double>* numbers : {&grew_, &fell_, &errors_})
    archive.require(all_finite(numbers->data(), numbers->size()), "all numbers are finite");
  archive.require(all_finite(means_[0], means_.numbers.size()), "all numbers are finite");
  archive.require(is_count(seen_) && is_count(rows_) && is_count(apart_, 1.0), "counts are whole");
}

}  // namespace kb
