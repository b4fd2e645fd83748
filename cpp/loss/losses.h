// Boosting losses. Each is a value type: the loss of one row as a function of its score, with gradient and hessian.
// Terms that do not depend on the score are omitted.
//
// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.
#pragma once

#include <cstddef>

#include "base/math.h"
#include "loss/distributions.h"

namespace spinney {
namespace {

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

struct LogCoshLoss {  // delta^2 log(cosh((f - y) / delta)): quadratic near y, linear far from it, smooth between
  // Instead of the second derivative, which vanishes far from y, the hessian is the curvature of the parabola that
  // touches the loss here and lies above it everywhere: its steps end among the residuals.
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double delta) {
    const double r = f - y, size = __builtin_fabs(r), e = exp_ieee(-2.0 * (size / delta));
    const double gradient_of_pair = delta * ((1.0 - e) / (1.0 + e));
    return {r < 0 ? -gradient_of_pair : gradient_of_pair, size > 1e-4 * delta ? gradient_of_pair / size : 1.0};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double delta) {
    const double u = __builtin_fabs(f - y) / delta;
    const double curved = u + log_ieee((1.0 + exp_ieee(-2.0 * u)) / 2.0);
    return delta * delta * (u > 1e-4 ? curved : u * u / 2.0);
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

struct ExpectileLoss {  // (f - y)^2 times the level above, times 1 minus the level below; half a square at level 1/2
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double level) {
    const double twice = 2.0 * (y > f ? level : 1.0 - level);
    return {twice * (f - y), twice};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double level) {
    const double d = f - y;
    return (y > f ? level : 1.0 - level) * d * d;
  }
};

struct PercentageLoss {  // |f - y| / |y|; targets within 1 of 0 count as 1
  [[gnu::always_inline]] static inline double weight(double y) {
    const double size = __builtin_fabs(y);
    return 1.0 / (size > 1.0 ? size : 1.0);
  }
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double w = weight(y);
    return {f > y ? w : (f < y ? -w : 0.0), w};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    return __builtin_fabs(f - y) * weight(y);
  }
};

struct LogisticLoss {  // y is 0 or 1, f the log-odds
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double e = exp_ieee(-__builtin_fabs(f)), p = (f > 0 ? 1.0 : e) / (1.0 + e);
    return {p - y, p * (1.0 - p)};
  }
  // The loss is log(1 + e^z), z = (1 - 2y) f: a linear part and the logarithm of a factor from 1 to 2.
  [[gnu::always_inline]] static inline double plain(double y, double f) {
    const double z = (1.0 - 2.0 * y) * f;
    return z > 0 ? z : 0.0;
  }
  [[gnu::always_inline]] static inline double factor(double f) { return 1.0 + exp_ieee(-__builtin_fabs(f)); }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    return plain(y, f) + log_ieee(factor(f));
  }
};

struct ExternalLoss {};  // a loss of several rows together, or a user-defined one

// For all scores of a row at once: its kernels are softmax's.
struct MultinomialLoss {
  // Adding a constant to all scores has no effect, so the hessian of one class understates its curvature: the factor K
  // / (K - 1) corrects it. Log loss of 19 tables with factor 1 instead: 14 worse, 4 better, median +4.6 %; with 2
  // (XGBoost): 12 worse, 7 better, +2.9 %.
  static double curvature(double n_classes) { return n_classes > 1 ? n_classes / (n_classes - 1.0) : 1.0; }
};

// Ordered classes: the log-odds of class k or a lower one are cut k minus the score. Of the cuts, which ascend, the loss
// of a row depends on the two around its class: on the side of each that the score is on, and on their distance.
struct OrdinalLoss {
  struct Side {  // of log(1 + e^z)
    double value, slope, curvature;
  };
  static Side side(double z) {
    const double e = exp_ieee(-__builtin_fabs(z)), p = (z > 0 ? 1.0 : e) / (1.0 + e);
    return {(z > 0 ? z : 0.0) + log_ieee(1.0 + e), p, p * (1.0 - p)};
  }
  static Side distance(double d) {  // of -log(1 - e^-d)
    const double e = exp_ieee(-d), rest = d < 1e-5 ? d * (1.0 - d / 2.0) : 1.0 - e;
    return {-log_ieee(rest), -e / rest, e / (rest * rest)};
  }
  static GradientPair at(std::size_t k, double f, const double* cuts, std::size_t n_cuts) {
    const Side low = k > 0 ? side(cuts[k - 1] - f) : Side{}, high = k < n_cuts ? side(f - cuts[k]) : Side{};
    return {high.slope - low.slope, high.curvature + low.curvature};
  }
  static double value(std::size_t k, double f, const double* cuts, std::size_t n_cuts) {
    const double low = k > 0 ? side(cuts[k - 1] - f).value : 0.0, high = k < n_cuts ? side(f - cuts[k]).value : 0.0;
    return low + high + (k > 0 && k < n_cuts ? distance(cuts[k] - cuts[k - 1]).value : 0.0);
  }
};

struct ExponentialLoss {  // exp(-(2y - 1) f); f is half the log-odds
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double sign = 2.0 * y - 1.0, e = exp_ieee(-sign * f);
    return {-sign * e, e};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    return exp_ieee((1.0 - 2.0 * y) * f);
  }
};

// -(1 - p)^gamma log p, where p is the probability of the row's class at the log-odds f: rows with confident correct
// predictions count for less. Far on the wrong side the loss is concave; there it uses the curvature of the log loss.
struct FocalLoss {
  struct Parts {
    double other, log_p, weight;  // 1 - p, log p, (1 - p)^gamma
  };
  [[gnu::always_inline]] static inline Parts parts(double sign, double f, double gamma) {
    const double e = exp_ieee(-__builtin_fabs(f)), log_factor = log_ieee(1.0 + e);
    const double z = sign * f, other = (z > 0 ? e : 1.0) / (1.0 + e);
    const double log_p = (z > 0 ? 0.0 : z) - log_factor, log_other = (z > 0 ? -z : 0.0) - log_factor;
    return {other, log_p, exp_ieee(gamma * log_other)};
  }
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double gamma) {
    const double sign = 2.0 * y - 1.0;
    const Parts row = parts(sign, f, gamma);
    const double p = 1.0 - row.other, p_log_p = p * row.log_p;
    const double curve = row.other * (gamma * row.log_p + 2.0 * gamma + 1.0) - gamma * gamma * p_log_p;
    return {sign * row.weight * (gamma * p_log_p - row.other),
            p * row.weight * (curve > row.other ? curve : row.other)};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double gamma) {
    const Parts row = parts(2.0 * y - 1.0, f, gamma);
    return -row.weight * row.log_p;
  }
};

struct SmoothHingeLoss {  // of the margin z = (2y - 1) f: 0 above 1, (1 - z)^2 / 2, linear below 0
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    const double sign = 2.0 * y - 1.0, short_of = 1.0 - sign * f;
    const double above = short_of > 0 ? short_of : 0.0, gradient_of_pair = above < 1.0 ? above : 1.0;
    return {-sign * gradient_of_pair, above > 0 ? gradient_of_pair / above : 1.0 / (1.0 - 2.0 * short_of)};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    const double short_of = 1.0 - (2.0 * y - 1.0) * f;
    const double above = short_of > 0 ? short_of : 0.0, near = above < 1.0 ? above : 1.0;
    return near * (above - near / 2);
  }
};

struct SquaredLogLoss {  // (f - log(1 + y))^2 / 2: f is log(1 + prediction)
  [[gnu::always_inline]] static inline GradientPair at(double y, double f, double) {
    return {f - log_ieee(1.0 + y), 1.0};
  }
  [[gnu::always_inline]] static inline double value(double y, double f, double) {
    const double d = f - log_ieee(1.0 + y);
    return d * d / 2.0;
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
