// The table of boosting losses. The enumeration, the kernels and everything Python knows about a loss are generated
// from it.
//
// To add a loss:
//   1. its type in loss/losses.h: value, gradient and hessian of one row
//   2. its line here, with the text for the estimators' docstrings
//   3. its derivatives in tests/oracle/boosting.py
//   4. its fingerprint in tests/fingerprints/boosting.py
//   5. its sentence in docs/guide/losses.rst
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace spinney {

enum class LossTargets : std::uint8_t {
  real,
  non_negative,  // and not all 0
  positive,
  counts,         // whole numbers of at least 0, and not all 0
  unit_interval,  // above 0 and below 1
  classes,        // 0, 1, …
};

// The unit of a loss: none, as for a likelihood; the target's unit; its square.
enum class LossUnit : std::uint8_t { none, target, target_squared };

// How the constant initial scores are found.
enum class LossStart : std::uint8_t {
  zero,  // the caller sets them
  mean,
  quantile,       // at the level of the loss
  log_mean,       // for Tweedie's family
  log_odds,       // of the second class
  half_log_odds,  // the same, halved
  log_proba,      // log frequencies of all classes
  normal,         // mean and log standard deviation
  log_normal,     // the same of the logarithm of the target
  distribution,   // by Fisher scoring
  balance,        // the root of the gradient sum
};

// Losses whose leaf values are computed from the residuals of their rows instead of Newton steps.
enum class LeafRefit : std::uint8_t { none, quantile, clipped_mean };

struct LossParameter {
  const char* name = nullptr;  // of the estimators' parameter; null: none
  double preset = 0, low = 0, high = 0;
  bool includes_bounds = false;
};

struct LossTraits {
  const char* name;
  const char* public_name = nullptr;  // the estimators' name, if it differs
  const char* text = nullptr;         // description for docstrings
  LossParameter parameter = {};
  LossTargets targets = LossTargets::real;
  const char* link = "identity";  // converts scores to predictions
  std::uint32_t n_scores = 1;     // 0: one per class
  LossStart start = LossStart::zero;
  double power = 0;  // the variance is proportional to this power of the mean (log_mean); 0: the parameter
  LeafRefit refit = LeafRefit::none;
  LossUnit unit = LossUnit::none;
  bool of_two_classes = false;      // binary classification only
  bool is_shift_invariant = false;  // only the distance from score to target matters: both may be shifted
  bool is_relative = false;         // a residual is relative to the target: relative_weight
  bool needs_damping = false;       // Newton steps may diverge, because the hessian is not constant
  bool is_external = false;         // the caller sets gradients before each round; the loss is unknown here
  bool has_delta = false;           // its parameter is a quantile of the residuals, beyond which the loss is linear
  bool is_smooth = false;           // the transition is smooth: delta must be positive
  bool has_location = false;        // its first score and its parameter, a variance, are in the unit of the residuals
  bool has_cuts = false;            // its parameters are cuts between ordered classes, fitted to the scores of a round

  constexpr bool of_classes() const { return targets == LossTargets::classes; }
  constexpr bool refits_leaves() const { return refit != LeafRefit::none; }
  constexpr bool has_scores() const { return n_scores != 1; }
  constexpr bool is_distribution() const { return n_scores > 1; }
  // Leaf values and losses are sums over rows, so that rows may be distributed.
  constexpr bool is_additive() const { return !refits_leaves() && !has_delta && !has_cuts && !is_external; }
  // The quantile of the initial score and of the leaves.
  constexpr double level(double given) const { return parameter.name != nullptr && !has_delta ? given : 0.5; }
};

#define SPINNEY_LEVEL {.name = "quantile", .preset = 0.5, .low = 0, .high = 1}
#define SPINNEY_DELTA {.name = "huber_share", .preset = 0.9, .low = 0, .high = 1}
#define SPINNEY_FOCUS {.name = "focal_gamma", .preset = 2, .low = 0, .high = 10, .includes_bounds = true}
#define SPINNEY_POWER {.name = "tweedie_power", .preset = 1.5, .low = 1, .high = 2}

// LOSS(enumerator, type, traits)
#define SPINNEY_LOSSES(LOSS)                                                                                          \
  LOSS(squared, SquaredLoss, .name = "squared_error", .text = "the mean", .start = LossStart::mean,                   \
       .unit = LossUnit::target_squared, .is_shift_invariant = true)                                                  \
  LOSS(absolute, AbsoluteLoss, .name = "absolute_error", .text = "the median", .start = LossStart::quantile,          \
       .refit = LeafRefit::quantile, .unit = LossUnit::target, .is_shift_invariant = true)                            \
  LOSS(huber, HuberLoss, .name = "huber", .text = "squared for small residuals and linear for large ones",            \
       .parameter = SPINNEY_DELTA, .start = LossStart::quantile, .refit = LeafRefit::clipped_mean,                    \
       .unit = LossUnit::target_squared, .is_shift_invariant = true, .has_delta = true)                               \
  LOSS(log_cosh, LogCoshLoss, .name = "log_cosh", .text = "similar, with a continuous second derivative",             \
       .parameter = SPINNEY_DELTA, .start = LossStart::quantile, .unit = LossUnit::target_squared,                    \
       .is_shift_invariant = true, .has_delta = true, .is_smooth = true)                                              \
  LOSS(quantile, QuantileLoss, .name = "quantile", .text = "the quantile `quantile`", .parameter = SPINNEY_LEVEL,     \
       .start = LossStart::quantile, .refit = LeafRefit::quantile, .unit = LossUnit::target,                          \
       .is_shift_invariant = true)                                                                                    \
  LOSS(expectile, ExpectileLoss, .name = "expectile", .text = "the expectile of level `quantile`",                    \
       .parameter = SPINNEY_LEVEL, .start = LossStart::balance, .unit = LossUnit::target_squared,                     \
       .is_shift_invariant = true)                                                                                    \
  LOSS(percentage, PercentageLoss, .name = "mape", .text = "the value of least mean absolute percentage error",       \
       .start = LossStart::quantile, .refit = LeafRefit::quantile, .is_relative = true)                               \
  LOSS(squared_log, SquaredLogLoss, .name = "squared_log_error",                                                      \
       .text = "the squared difference of the logarithms of 1 + target and 1 + prediction",                           \
       .targets = LossTargets::non_negative, .link = "log1p", .start = LossStart::balance)                            \
  LOSS(logistic, LogisticLoss, .name = "logistic", .public_name = "log_loss", .text = "for any number of classes",    \
       .targets = LossTargets::classes, .link = "logit", .start = LossStart::log_odds, .needs_damping = true)         \
  LOSS(multinomial, MultinomialLoss, .name = "multinomial", .public_name = "log_loss",                                \
       .targets = LossTargets::classes, .link = "softmax", .n_scores = 0, .start = LossStart::log_proba,              \
       .needs_damping = true)                                                                                         \
  LOSS(ordinal, OrdinalLoss, .name = "ordinal",                                                                       \
       .text = "for ordered classes, with one score and thresholds that are fitted with it",                          \
       .targets = LossTargets::classes, .link = "ordinal", .needs_damping = true, .has_cuts = true)                   \
  LOSS(exponential, ExponentialLoss, .name = "exponential", .text = "that of AdaBoost, for two classes",              \
       .targets = LossTargets::classes, .link = "half_logit", .start = LossStart::half_log_odds,                      \
       .of_two_classes = true, .needs_damping = true)                                                                 \
  LOSS(focal, FocalLoss, .name = "focal",                                                                             \
       .text = "for two classes, where well predicted rows count for less (``focal_gamma``)",                         \
       .parameter = SPINNEY_FOCUS, .targets = LossTargets::classes, .link = "focal", .start = LossStart::balance,     \
       .of_two_classes = true, .needs_damping = true)                                                                 \
  LOSS(smooth_hinge, SmoothHingeLoss, .name = "smooth_hinge", .text = "for two classes, 0 beyond a margin of 1",      \
       .targets = LossTargets::classes, .link = "hinge", .start = LossStart::balance, .of_two_classes = true)         \
  LOSS(poisson, PoissonLoss, .name = "poisson", .text = "the mean of counts, with a log link",                        \
       .targets = LossTargets::non_negative, .link = "log", .start = LossStart::log_mean, .power = 1,                 \
       .needs_damping = true)                                                                                         \
  LOSS(gamma, GammaLoss, .name = "gamma",                                                                             \
       .text = "the mean, with a log link, where the standard deviation is proportional to the mean",                 \
       .targets = LossTargets::positive, .link = "log", .start = LossStart::log_mean, .power = 2,                     \
       .needs_damping = true)                                                                                         \
  LOSS(tweedie, TweedieLoss, .name = "tweedie",                                                                       \
       .text = "the mean of zeros and positive targets, with a log link (``tweedie_power``)",                         \
       .parameter = SPINNEY_POWER, .targets = LossTargets::non_negative, .link = "log", .start = LossStart::log_mean, \
       .needs_damping = true)                                                                                         \
  LOSS(normal, NormalLoss, .name = "normal",                                                                          \
       .text = "a mean and a standard deviation for each row (`predict_std`), by maximum likelihood",                 \
       .link = "normal", .n_scores = 2, .start = LossStart::normal, .needs_damping = true, .has_location = true)      \
  LOSS(log_normal, LogNormalLoss, .name = "log_normal",                                                               \
       .text = "a normal distribution of the logarithm of the target for each row", .targets = LossTargets::positive, \
       .link = "log_normal", .n_scores = 2, .start = LossStart::log_normal, .needs_damping = true,                    \
       .has_location = true)                                                                                          \
  LOSS(student_t, StudentLoss, .name = "student_t",                                                                   \
       .text = "Student's t distribution for each row, whose tails are heavier than those of a normal distribution",  \
       .link = "student_t", .n_scores = 3, .start = LossStart::distribution, .needs_damping = true,                   \
       .has_location = true)                                                                                          \
  LOSS(gamma_distribution, GammaDistributionLoss, .name = "gamma_distribution",                                       \
       .text = "a gamma distribution for each row, with a mean and a shape", .targets = LossTargets::positive,        \
       .link = "gamma_distribution", .n_scores = 2, .start = LossStart::distribution, .needs_damping = true)          \
  LOSS(negative_binomial, NegativeBinomialLoss, .name = "negative_binomial",                                          \
       .text = "a negative binomial distribution of counts for each row, with a mean and a size",                     \
       .targets = LossTargets::counts, .link = "negative_binomial", .n_scores = 2, .start = LossStart::distribution,  \
       .needs_damping = true)                                                                                         \
  LOSS(beta, BetaLoss, .name = "beta",                                                                                \
       .text = "a beta distribution of fractions for each row, with a mean and a precision",                          \
       .targets = LossTargets::unit_interval, .link = "beta", .n_scores = 2, .start = LossStart::distribution,        \
       .needs_damping = true)                                                                                         \
  LOSS(zero_inflated_poisson, ZeroInflatedPoissonLoss, .name = "zero_inflated_poisson",                               \
       .text = "a Poisson distribution of counts for each row, with a probability of additional zeros",               \
       .targets = LossTargets::counts, .link = "zero_inflated_poisson", .n_scores = 2,                                \
       .start = LossStart::distribution, .needs_damping = true)                                                       \
  LOSS(outside, ExternalLoss, .name = "outside", .needs_damping = true, .is_external = true)

#define SPINNEY_LOSS_ENUMERATOR(id, Type, ...) id,
enum class Loss : std::uint8_t { SPINNEY_LOSSES(SPINNEY_LOSS_ENUMERATOR) };
#undef SPINNEY_LOSS_ENUMERATOR

#define SPINNEY_LOSS_TRAITS(id, Type, ...) LossTraits{__VA_ARGS__},
inline constexpr LossTraits all_losses[] = {SPINNEY_LOSSES(SPINNEY_LOSS_TRAITS)};
#undef SPINNEY_LOSS_TRAITS

inline constexpr std::size_t n_losses = std::size(all_losses);
constexpr const LossTraits& traits_of(Loss loss) { return all_losses[static_cast<std::size_t>(loss)]; }

}  // namespace spinney
