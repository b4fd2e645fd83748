// Poisson deviance: S log(S / W) on both sides. A side without events has no finite rate: `Poisson` rejects it, `Rate`
// accepts it, with 0 log 0 = 0.
#pragma once

#include <limits>

#include "base/math.h"

namespace spinney {

struct Poisson {
  [[gnu::always_inline]] static double term(double s, double w) { return s * log_ieee(s / w); }
  [[gnu::always_inline]] static double pair(double s_left, double w_left, double s_right, double w_right) {
    const double both = term(s_left, w_left) + term(s_right, w_right);
    return s_left > 0 && s_right > 0 ? both : -std::numeric_limits<double>::infinity();
  }
};

struct Rate {
  [[gnu::always_inline]] static double pair(double s_left, double w_left, double s_right, double w_right) {
    return Poisson::term(s_left, w_left) + Poisson::term(s_right, w_right);
  }
};

}  // namespace spinney
