// What the sums of gradient pairs are counted in: units that follow from what all rows add up to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "boost/kernels.h"
#include "boost/split.h"

namespace spinney {

// Whole numbers as large as the sums of all rows leave room for. Units are powers of two: gradients that are whole to begin
// with, such as signs, stay exact, and so do ties between cuts.
struct PackedScales {
  PackedScales(const GradientSums& totals, std::size_t n_rows) {
    const double room = 0.999 * (0x1p31 - 2 - static_cast<double>(n_rows));  // each row may be rounded up by one
    gradient = scale_of(room, totals.gradient);
    hessian = scale_of(room, totals.hessian);
  }
  Units units() const { return {1.0 / static_cast<double>(gradient), 1.0 / static_cast<double>(hessian)}; }

  float gradient, hessian;

 private:
  static float scale_of(double room, double total) {
    int exponent = 0;
    std::frexp(room / std::max(total, 0x1p-64), &exponent);
    return std::ldexp(1.0f, exponent - 1);
  }
};

// Leaves are set from the gradients before rounding; their sums are whole numbers of a unit that none of them feels, so
// they may be added up in any order.
struct LeafScales {
  explicit LeafScales(const GradientSums& totals)
      : gradient(0x1p60 / std::max(totals.gradient, 1e-30)), hessian(0x1p60 / std::max(totals.hessian, 1e-30)) {}
  double gradient, hessian;
};

}  // namespace spinney
