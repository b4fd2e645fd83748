// Boosting losses that are negative log-likelihoods of a distribution for each row. A row has two or three scores, which
// give the parameters. Terms that do not depend on the scores are omitted.
//
// Second derivatives are expected values (the diagonal of the Fisher information), so that steps follow the natural
// gradient. Where possible the parameters are orthogonal: then this is Newton's method on average. Scores outside of
// `bounds` count as the bound, and their gradient is 0 unless a step leads back.
#pragma once

#include <cstdint>

#include "base/log_gamma.h"
#include "base/math.h"

namespace spinney {
namespace {

struct GradientPair {
  double gradient, hessian;
};

struct ScoreBounds {
  double low, high;
};

constexpr double unbounded = 1e300;
constexpr double least_information = 0.01;  // flat likelihoods would lead to long steps

inline double logistic_of(double f) {
  const double e = exp_ieee(-__builtin_fabs(f));
  return (f > 0 ? 1.0 : e) / (1.0 + e);
}

// Mean and logarithm of the standard deviation. The gradient of the mean is in units of the variance of all rows, which
// is the parameter. If a deviation is e^10 times smaller than that, it may only grow.
struct NormalLoss {
  static constexpr std::uint32_t n_scores = 2;
  static double least(double variance) { return log_ieee(variance) / 2.0 - 10.0; }
  static ScoreBounds bounds(std::uint32_t k, double variance) {
    return {k == 0 ? -unbounded : least(variance), unbounded};
  }
  static void at(double y, const double* score, double variance, GradientPair* found) {
    const double residual = y - score[0], per_variance = exp_ieee(-2.0 * score[1]), scale = variance * per_variance;
    found[0] = {-scale * residual, scale};
    found[1] = {1.0 - residual * residual * per_variance, 2.0};
  }
  static double value(double y, const double* score, double) {
    const double residual = y - score[0];
    return score[1] + residual * residual * exp_ieee(-2.0 * score[1]) / 2.0;
  }
};

struct LogNormalLoss : NormalLoss {  // the same of the logarithm of the target
  static void at(double y, const double* score, double variance, GradientPair* found) {
    NormalLoss::at(log_ieee(y), score, variance, found);
  }
  static double value(double y, const double* score, double variance) {
    return NormalLoss::value(log_ieee(y), score, variance);
  }
};

// Location, logarithm of the scale, and logarithm of the degrees of freedom minus 2, so that the variance is finite. The
// gradient of the location is in units of the parameter, a squared scale of all rows.
struct StudentLoss {
  static constexpr std::uint32_t n_scores = 3;
  static ScoreBounds bounds(std::uint32_t k, double unit) {
    if (k == 2) return {-6.0, 8.0};
    return {k == 0 ? -unbounded : NormalLoss::least(unit), unbounded};
  }
  static void at(double y, const double* score, double unit, GradientPair* found) {
    const double residual = y - score[0], per_square = exp_ieee(-2.0 * score[1]);
    const double beyond = exp_ieee(score[2]), nu = 2.0 + beyond, square = residual * residual * per_square;
    const double weight = (nu + 1.0) / (nu + square), scale = unit * per_square;
    const StirlingRest low = stirling_rest(nu / 2.0), high = stirling_rest((nu + 1.0) / 2.0);
    const double slope = 1.0 / nu + low.digamma() - high.digamma() + log_ieee(1.0 + square / nu) - weight * square / nu;
    const double information = (low.trigamma(nu / 2.0) - high.trigamma((nu + 1.0) / 2.0)) / 4.0 -
                               (nu + 5.0) / (2.0 * nu * (nu + 1.0) * (nu + 3.0));
    const double hessian = beyond * beyond * information;
    found[0] = {-weight * scale * residual, (nu + 1.0) / (nu + 3.0) * scale};
    found[1] = {1.0 - weight * square, 2.0 * nu / (nu + 3.0)};
    found[2] = {beyond * slope / 2.0, hessian > least_information ? hessian : least_information};
  }
  static double value(double y, const double* score, double) {
    const double residual = y - score[0], nu = 2.0 + exp_ieee(score[2]);
    const double square = residual * residual * exp_ieee(-2.0 * score[1]), low = nu / 2.0, high = (nu + 1.0) / 2.0;
    return score[1] + log_ieee(nu) / 2.0 + stirling_rest(low).log_gamma(low) - stirling_rest(high).log_gamma(high) +
           high * log_ieee(1.0 + square / nu);
  }
};

struct GammaDistributionLoss {  // logarithms of the mean and of the shape
  static constexpr std::uint32_t n_scores = 2;
  static ScoreBounds bounds(std::uint32_t k, double) {
    return k == 0 ? ScoreBounds{-unbounded, unbounded} : ScoreBounds{-8.0, 14.0};
  }
  static double excess(double y, double log_mean) {  // y / mean - log(y / mean) - 1
    return y * exp_ieee(-log_mean) - (log_ieee(y) - log_mean) - 1.0;
  }
  static void at(double y, const double* score, double, GradientPair* found) {
    const double shape = exp_ieee(score[1]);
    const StirlingRest of_shape = stirling_rest(shape);
    found[0] = {shape * (1.0 - y * exp_ieee(-score[0])), shape};
    found[1] = {shape * (of_shape.slope + excess(y, score[0])), shape * shape * of_shape.curvature};
  }
  static double value(double y, const double* score, double) {
    const double shape = exp_ieee(score[1]);
    return shape * excess(y, score[0]) + stirling_rest(shape).rest;
  }
};

// Logarithms of the mean m and of the size r: the variance is m + m^2 / r. The information of log r has no closed form:
// p^2 (r^2 ψ'(r) - r) is its limit for large r, and r log(1 + m / r) - r p for small r, with p = m / (r + m). Half of
// their harmonic mean is within 14 % of it for r from 0.01 to 10,000 and m from 0.05 to 100.
struct NegativeBinomialLoss {
  static constexpr std::uint32_t n_scores = 2;
  static ScoreBounds bounds(std::uint32_t k, double) {
    return k == 0 ? ScoreBounds{-unbounded, unbounded} : ScoreBounds{-8.0, 12.0};
  }
  static void at(double y, const double* score, double, GradientPair* found) {
    const double mean = exp_ieee(score[0]), size = exp_ieee(score[1]), p = mean / (size + mean);
    const StirlingRest of_size = stirling_rest(size), of_sum = stirling_rest(y + size);
    const double rise = log_ieee(1.0 + mean / size);
    found[0] = {size * (mean - y) / (size + mean), size * p};
    found[1].gradient = size * (of_size.digamma() - of_sum.digamma() - 1.0 + rise + (size + y) / (size + mean));
    const double large = p * p * size * size * of_size.curvature, small = size * (rise - p);
    const double information = large * small / (large + small + 1e-300);
    found[1].hessian = information > least_information ? information : least_information;
  }
  static double value(double y, const double* score, double) {
    const double size = exp_ieee(score[1]), rise = log_ieee(1.0 + exp_ieee(score[0]) / size);
    return stirling_rest(size).log_gamma(size) - stirling_rest(y + size).log_gamma(y + size) + size * rise -
           y * (score[0] - score[1] - rise);
  }
};

struct BetaLoss {  // log-odds of the mean, logarithm of the precision a + b
  static constexpr std::uint32_t n_scores = 2;
  static ScoreBounds bounds(std::uint32_t k, double) {
    return k == 0 ? ScoreBounds{-15.0, 15.0} : ScoreBounds{-6.0, 14.0};
  }
  static void at(double y, const double* score, double, GradientPair* found) {
    const double mean = logistic_of(score[0]), rest = logistic_of(-score[0]), precision = exp_ieee(score[1]);
    const double a = mean * precision, b = rest * precision, log_y = log_ieee(y), log_rest = log_ieee(1.0 - y);
    const StirlingRest of_a = stirling_rest(a), of_b = stirling_rest(b), of_sum = stirling_rest(precision);
    const double off_a = of_a.digamma() - log_y, off_b = of_b.digamma() - log_rest;
    const double curve_a = a * a * of_a.trigamma(a), curve_b = b * b * of_b.trigamma(b);
    found[0] = {precision * mean * rest * (off_a - off_b), rest * rest * curve_a + mean * mean * curve_b};
    const double information = curve_a + curve_b - precision * precision * of_sum.trigamma(precision);
    found[1] = {a * off_a + b * off_b - precision * of_sum.digamma(),
                information > least_information ? information : least_information};
  }
  static double value(double y, const double* score, double) {
    const double precision = exp_ieee(score[1]);
    const double a = logistic_of(score[0]) * precision, b = logistic_of(-score[0]) * precision;
    return stirling_rest(a).log_gamma(a) + stirling_rest(b).log_gamma(b) -
           stirling_rest(precision).log_gamma(precision) - a * log_ieee(y) - b * log_ieee(1.0 - y);
  }
};

// Logarithm of the mean m of a Poisson distribution, and log-odds of an additional zero, which has the probability q.
struct ZeroInflatedPoissonLoss {
  static constexpr std::uint32_t n_scores = 2;
  static ScoreBounds bounds(std::uint32_t k, double) {
    return k == 0 ? ScoreBounds{-15.0, unbounded} : ScoreBounds{-10.0, 10.0};
  }
  static void at(double y, const double* score, double, GradientPair* found) {
    const double mean = exp_ieee(score[0]), q = logistic_of(score[1]), counted = logistic_of(-score[1]);
    const double none = exp_ieee(-mean), zero = q + counted * none, positive = counted * (1.0 - none);
    const double of_mean = counted * mean * (1.0 - mean * none * q / zero), of_zero = q * q * positive / zero;
    found[0] = {y > 0 ? mean - y : counted * none * mean / zero,
                of_mean > least_information ? of_mean : least_information};
    found[1] = {y > 0 ? q : -q * positive / zero, of_zero > least_information ? of_zero : least_information};
  }
  static double value(double y, const double* score, double) {
    const double mean = exp_ieee(score[0]), counted = logistic_of(-score[1]);
    if (y > 0) return mean - y * score[0] - log_ieee(counted);
    return -log_ieee(logistic_of(score[1]) + counted * exp_ieee(-mean));
  }
};

}  // namespace
}  // namespace spinney
