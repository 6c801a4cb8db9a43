#include "normal_quantile.hpp"

#include <algorithm>

namespace kb {

/// c[0] r^7 + c[1] r^6 + ... + c[7]
static double polynomial(const double (&c)[8], double r) {
  double sum = c[0];
  for (int i = 1; i < 8; ++i) sum = sum * r + c[i];
  return sum;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    static constexpr double above[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                       6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                       1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                       1.3314166789178437745e+2, 3.3871328727963666080e+0};
    static constexpr double below[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                       3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                       5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                       4.2313330701600911252e+1, 1.0};
    const double r = 0.180625 - q * q;
    return polynomial(above, r) * q / polynomial(below, r);
  }
  static constexpr double above[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                     2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                     3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                     4.63033784615654529590e+0, 1.42343711074968357734e+0};
  static constexpr double below[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                     1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                     6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                     2.05319162663775882187e+0, 1.0};
  const double r = std::sqrt(-log(q <= 0.0 ? p : 1.0 - p)) - 1.6;
  const double x = polynomial(above, r) / polynomial(below, r);
  return q < 0.0 ? -x : x;
}

const Array<double>& normal_quantile_table() {
  static const Array<double> table = [] {
    constexpr int steps = 2048;
    constexpr double end = 0.5 / steps;
    Array<double> found(steps + 1);
    for (int i = 0; i <= steps; ++i)
      found[i] = normal_quantile(std::min(std::max(double(i) / steps, end), 1.0 - end));
    return found;
  }();
  return table;
}

}  // namespace kb
