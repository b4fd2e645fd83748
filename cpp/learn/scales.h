// The units of summed gradient pairs, derived from the totals over all rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "boost/kernels.h"
#include "boost/split.h"

namespace spinney {

// The largest integers that the sums over all rows allow. Units are powers of two: integer gradients, such as signs,
// stay exact, and so do ties between cuts.
struct PackedScales {
  PackedScales(const GradientSums& totals, std::size_t n_rows) {
    const double limit = 0.999 * (0x1p31 - 2 - static_cast<double>(n_rows));  // each row may be rounded up by one
    gradient = scale_of(limit, totals.gradient);
    hessian = scale_of(limit, totals.hessian);
  }
  Units units() const { return {1.0 / static_cast<double>(gradient), 1.0 / static_cast<double>(hessian)}; }

  float gradient, hessian;

 private:
  static float scale_of(double limit, double total) {
    int exponent = 0;
    std::frexp(limit / std::max(total, 0x1p-64), &exponent);
    return std::ldexp(1.0f, exponent - 1);
  }
};

// Leaf values use unrounded gradients; their sums are integers in a unit below their precision, so they do not depend
// on the order.
struct LeafScales {
  explicit LeafScales(const GradientSums& totals)
      : gradient(0x1p60 / std::max(totals.gradient, 1e-30)), hessian(0x1p60 / std::max(totals.hessian, 1e-30)) {}
  double gradient, hessian;
};

}  // namespace spinney
