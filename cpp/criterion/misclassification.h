// Weight of the majority class on both sides, for two classes; S is the weight of the second.
#pragma once

namespace spinney {

struct Misclassification {
  [[gnu::always_inline]] static double majority(double s, double w) { return s > w - s ? s : w - s; }
  [[gnu::always_inline]] static double pair(double s_left, double w_left, double s_right, double w_right) {
    return majority(s_left, w_left) + majority(s_right, w_right);
  }
};

}  // namespace spinney
