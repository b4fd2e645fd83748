// The logarithm of the gamma function and its derivatives, from IEEE operations alone.
#pragma once

#include "base/math.h"

namespace spinney {
namespace {

// What Stirling's approximation leaves, for x from 1e-30 to 1e30: log Γ(x) = x log x - x + rest, ψ(x) = log x + slope and
// ψ'(x) = 1 / x + curvature. These do not cancel for large x.
struct StirlingRest {
  double log_x, rest, slope, curvature;
  double log_gamma(double x) const { return x * (log_x - 1.0) + rest; }
  double digamma() const { return log_x + slope; }
  double trigamma(double x) const { return 1.0 / x + curvature; }
};

// Asymptotic series from 8 on; below it, by Γ(x) = Γ(x + 1) / x. Smaller arguments, such as of unused rows, are raised.
inline StirlingRest stirling_rest(double x) {
  x = x > 1e-30 ? x : 1e-30;
  constexpr double half_log_two_pi = 0.9189385332046727;
  double z = x, product = 1.0, sum = 0.0, squares = 0.0;
  for (; z < 8.0; z += 1.0) {
    const double inverse = 1.0 / z;
    product *= z;
    sum += inverse;
    squares += inverse * inverse;
  }
  const double log_z = log_ieee(z), u = 1.0 / z, w = u * u;
  double r = -691.0 / 360360.0;
  r = r * w + 1.0 / 1188.0;
  r = r * w - 1.0 / 1680.0;
  r = r * w + 1.0 / 1260.0;
  r = r * w - 1.0 / 360.0;
  r = r * w + 1.0 / 12.0;
  double d = -1.0 / 12.0;
  d = d * w + 691.0 / 32760.0;
  d = d * w - 1.0 / 132.0;
  d = d * w + 1.0 / 240.0;
  d = d * w - 1.0 / 252.0;
  d = d * w + 1.0 / 120.0;
  d = d * w - 1.0 / 12.0;
  double t = 7.0 / 6.0;
  t = t * w - 691.0 / 2730.0;
  t = t * w + 5.0 / 66.0;
  t = t * w - 1.0 / 30.0;
  t = t * w + 1.0 / 42.0;
  t = t * w - 1.0 / 30.0;
  t = t * w + 1.0 / 6.0;
  const double rest = half_log_two_pi - log_z / 2.0 + r * u, slope = d * w - u / 2.0, curvature = w / 2.0 + t * u * w;
  if (x >= 8.0) return {log_z, rest, slope, curvature};
  const double log_x = log_ieee(x);
  return {log_x, (z * (log_z - 1.0) + rest - log_ieee(product)) - x * (log_x - 1.0), (log_z + slope - sum) - log_x,
          (u + curvature + squares) - 1.0 / x};
}

}  // namespace
}  // namespace spinney
