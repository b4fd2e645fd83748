// Entropy of two classes; S is the weight of the second. Information gain is the difference to the parent's term.
#pragma once

#include "base/math.h"

namespace spinney {

struct Entropy {
  // minus weight times entropy, in nats
  [[gnu::always_inline]] static double term(double s, double w) { return x_log_x(s) + x_log_x(w - s) - x_log_x(w); }
  [[gnu::always_inline]] static double pair(double s_left, double w_left, double s_right, double w_right) {
    return term(s_left, w_left) + term(s_right, w_right);
  }
};

}  // namespace spinney
