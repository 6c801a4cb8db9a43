// Quantiles of the normal distribution.
#pragma once
#include "../arrays.hpp"
#include "../math.hpp"

namespace kb {

/// The quantile of the standard normal distribution at 1e-10 < p < 1 - 1e-10, to about 1e-16 of
/// it: algorithm AS 241 of M. J. Wichura, The percentage points of the normal distribution, Applied
/// Statistics 37 (1988), but for its farthest tails.
double normal_quantile(double p);

/// Normal quantiles over equal steps of probability, from 0 to 1; the ends are those of half a step.
const Array<double>& normal_quantile_table();

}  // namespace kb
