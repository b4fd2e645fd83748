// Boosting losses. Each is a value type: the loss of one row as a function of its score, its gradient and its hessian.
// Terms that do not depend on the score are left out.
//
// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.
#pragma once

#include "base/math.h"

namespace spinney {
namespace {

struct GradientPair {
  double gradient, hessian;
};

struct SquaredLoss {  // (f - y)^2 / 2
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) { return {f - y, 1.0}; }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    const double d = f - y;
    return d * d / 2;
  }
};

struct AbsoluteLoss {  // |f - y|
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    return {f > y ? 1.0 : (f < y ? -1.0 : 0.0), 1.0};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) { return f > y ? f - y : y - f; }
};

struct HuberLoss {  // quadratic within delta of y, linear beyond
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double delta) {
    const double r = f - y, low = r < -delta ? -delta : r;
    return {low > delta ? delta : low, 1.0};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double delta) {
    const double d = f > y ? f - y : y - f, near = d < delta ? d : delta;
    return near * (d - near / 2);
  }
};

struct QuantileLoss {  // (y - f) q above, (f - y) (1 - q) below
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double q) {
    return {y > f ? -q : 1.0 - q, 1.0};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double q) {
    const double d = y - f;
    return d > 0 ? q * d : (q - 1.0) * d;
  }
};

struct LogisticLoss {  // y is 0 or 1, f the log-odds
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double e = exp_ieee(-__builtin_fabs(f)), p = (f > 0 ? 1.0 : e) / (1.0 + e);
    return {p - y, p * (1.0 - p)};
  }
  // The loss is log(1 + e^z), z = (1 - 2y) f: a plain part and the logarithm of a factor of 1 to 2.
  [[gnu::always_inline]] static inline double plain(double y, double f) {
    const double z = (1.0 - 2.0 * y) * f;
    return z > 0 ? z : 0.0;
  }
  [[gnu::always_inline]] static inline double factor(double f) { return 1.0 + exp_ieee(-__builtin_fabs(f)); }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    return plain(y, f) + log_ieee(factor(f));
  }
};

struct MultinomialLoss {};  // of all scores of a row at once: its kernels are softmax's

struct ExponentialLoss {  // exp(-(2y - 1) f); f is half the log-odds
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double sign = 2.0 * y - 1.0, e = exp_ieee(-sign * f);
    return {-sign * e, e};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    return exp_ieee((1.0 - 2.0 * y) * f);
  }
};

struct PoissonLoss {  // exp(f) - y f
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double mean = exp_ieee(f);
    return {mean - y, mean};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) { return exp_ieee(f) - y * f; }
};

struct GammaLoss {  // y exp(-f) + f
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double ratio = y * exp_ieee(-f);
    return {1.0 - ratio, ratio};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) { return y * exp_ieee(-f) + f; }
};

struct TweedieLoss {  // exp((2 - p) f) / (2 - p) - y exp((1 - p) f) / (1 - p)
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double p) {
    const double a = y * exp_ieee((1.0 - p) * f), b = exp_ieee((2.0 - p) * f);
    return {b - a, (2.0 - p) * b - (1.0 - p) * a};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double p) {
    return exp_ieee((2.0 - p) * f) / (2.0 - p) - y * exp_ieee((1.0 - p) * f) / (1.0 - p);
  }
};

}  // namespace
}  // namespace spinney
