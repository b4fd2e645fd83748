// Squared error and its equivalents: Gini of two classes (y = 0 or 1), Friedman's criterion, chi-squared of two
// classes.
#pragma once

namespace spinney {

struct SquaredError {
  // W_l W_r (mean_l - mean_r)^2: the parent's weight squared times the decrease of the variance. Written with one
  // division, and with differences that stay accurate if the means are far from 0.
  [[gnu::always_inline]] static double pair(double s_left, double w_left, double s_right, double w_right) {
    const double difference = s_left * w_right - s_right * w_left;
    return difference * difference / (w_left * w_right);
  }
};

}  // namespace spinney
