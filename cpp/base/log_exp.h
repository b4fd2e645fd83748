// The engine's logarithm and exponential for every double; kernels use restricted ranges.
#pragma once

#include <limits>

#include "base/math.h"

namespace spinney {

static inline double log_of(double x) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), smallest = std::numeric_limits<double>::min();
  if (!(x > 0)) return x == 0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
  if (x == infinity) return x;
  return x < smallest ? log_ieee(x * 0x1p54) - 54 * 0.6931471805599453 : log_ieee(x);
}

static inline double exp_of(double x) {
  if (!(x < -700 || x > 700)) return x == x ? exp_ieee(x) : x;
  const double root = exp_ieee(x / 2);
  return root * root;
}

}  // namespace spinney
