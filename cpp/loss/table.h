// The table of boosting losses. The enumeration, the kernels and everything that Python knows of a loss come from it.
//
// A new loss:
//   1. its type in loss/losses.h: value, gradient and hessian of one row
//   2. its line here, with the text that the estimators' docstrings have of it
//   3. its derivatives in tests/oracle/boosting.py
//   4. its fingerprint in tests/fingerprints/boosting.py
//   5. its sentence in docs/guide/boosting.rst
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace spinney {

enum class LossTargets : std::uint8_t {
  real,
  non_negative,  // and some of them positive
  positive,
  classes,  // 0, 1, …
};

// What a loss is measured in: nothing, as a likelihood; the target's unit; its square.
enum class LossUnit : std::uint8_t { none, target, target_squared };

// How the constant scores of least loss are found.
enum class LossStart : std::uint8_t {
  zero,  // by the caller
  mean,
  quantile,       // of the level in question
  log_mean,       // of Tweedie's family
  log_odds,       // of the second class
  half_log_odds,  // the same, halved
  log_shares,     // of all classes
  normal,         // mean and logarithm of the deviation
  balance,        // where the gradients cancel out
};

// Leaves that are no Newton steps: their values are found from the residuals of their rows.
enum class LeafRefit : std::uint8_t { none, quantile, clipped_mean };

struct LossParameter {
  const char* name = nullptr;  // of the estimators; null: the loss has none
  double preset = 0, low = 0, high = 0;
  bool may_be_bound = false;
};

struct LossTraits {
  const char* name;
  const char* public_name = nullptr;  // by which estimators know it, if that is another
  const char* text = nullptr;         // what it does, for docstrings
  LossParameter parameter = {};
  LossTargets targets = LossTargets::real;
  const char* link = "identity";  // how scores become predictions
  std::uint32_t n_scores = 1;     // 0: one for each class
  LossStart start = LossStart::zero;
  double power = 0;  // of the mean, to which the variance is proportional (log_mean); 0: the parameter
  LeafRefit refit = LeafRefit::none;
  LossUnit unit = LossUnit::none;
  bool of_two_classes = false;      // and never of more
  bool is_shift_invariant = false;  // only the distance from score to target matters: both may be moved
  bool is_relative = false;         // a residual counts in proportion to the target: relative_weight
  bool tempers_steps = false;       // Newton's steps may run away, as the hessian is not constant
  bool is_outside = false;          // the caller sets gradients before each round; no loss is known here
  bool bends = false;      // its parameter is a fraction of the residuals: where the largest of these lie it bends
  bool is_smooth = false;  // and has no corner: it must bend at a positive distance

  constexpr bool of_classes() const { return targets == LossTargets::classes; }
  constexpr bool refits_leaves() const { return refit != LeafRefit::none; }
  constexpr bool has_scores() const { return n_scores != 1; }
  // Leaves and losses are sums over rows, wherever these are.
  constexpr bool is_additive() const { return !refits_leaves() && !bends && !is_outside; }
  // Of the quantile that starts, and that leaves take.
  constexpr double level(double given) const { return parameter.name != nullptr && !bends ? given : 0.5; }
};

#define SPINNEY_LEVEL {.name = "quantile", .preset = 0.5, .low = 0, .high = 1}
#define SPINNEY_BEND {.name = "huber_share", .preset = 0.9, .low = 0, .high = 1}
#define SPINNEY_FOCUS {.name = "focal_gamma", .preset = 2, .low = 0, .high = 10, .may_be_bound = true}
#define SPINNEY_POWER {.name = "tweedie_power", .preset = 1.5, .low = 1, .high = 2}

// LOSS(enumerator, type, traits)
#define SPINNEY_LOSSES(LOSS)                                                                                          \
  LOSS(squared, SquaredLoss, .name = "squared_error", .text = "the mean", .start = LossStart::mean,                   \
       .unit = LossUnit::target_squared, .is_shift_invariant = true)                                                  \
  LOSS(absolute, AbsoluteLoss, .name = "absolute_error", .text = "the median", .start = LossStart::quantile,          \
       .refit = LeafRefit::quantile, .unit = LossUnit::target, .is_shift_invariant = true)                            \
  LOSS(huber, HuberLoss, .name = "huber",                                                                             \
       .text = "squared for small residuals and absolute for large ones, with a corner between them",                 \
       .parameter = SPINNEY_BEND, .start = LossStart::quantile, .refit = LeafRefit::clipped_mean,                     \
       .unit = LossUnit::target_squared, .is_shift_invariant = true, .bends = true)                                   \
  LOSS(log_cosh, LogCoshLoss, .name = "log_cosh", .text = "the same without a corner", .parameter = SPINNEY_BEND,     \
       .start = LossStart::quantile, .unit = LossUnit::target_squared, .is_shift_invariant = true, .bends = true,     \
       .is_smooth = true)                                                                                             \
  LOSS(quantile, QuantileLoss, .name = "quantile", .text = "the quantile `quantile`", .parameter = SPINNEY_LEVEL,     \
       .start = LossStart::quantile, .refit = LeafRefit::quantile, .unit = LossUnit::target,                          \
       .is_shift_invariant = true)                                                                                    \
  LOSS(expectile, ExpectileLoss, .name = "expectile", .text = "the expectile of level `quantile`",                    \
       .parameter = SPINNEY_LEVEL, .start = LossStart::balance, .unit = LossUnit::target_squared,                     \
       .is_shift_invariant = true)                                                                                    \
  LOSS(percentage, PercentageLoss, .name = "mape", .text = "the value of least mean absolute percentage error",       \
       .start = LossStart::quantile, .refit = LeafRefit::quantile, .is_relative = true)                               \
  LOSS(logistic, LogisticLoss, .name = "logistic", .public_name = "log_loss", .text = "for any number of classes",    \
       .targets = LossTargets::classes, .link = "logit", .start = LossStart::log_odds, .tempers_steps = true)         \
  LOSS(multinomial, MultinomialLoss, .name = "multinomial", .public_name = "log_loss",                                \
       .targets = LossTargets::classes, .link = "softmax", .n_scores = 0, .start = LossStart::log_shares,             \
       .tempers_steps = true)                                                                                         \
  LOSS(exponential, ExponentialLoss, .name = "exponential", .text = "that of AdaBoost, for two classes",              \
       .targets = LossTargets::classes, .link = "half_logit", .start = LossStart::half_log_odds,                      \
       .of_two_classes = true, .tempers_steps = true)                                                                 \
  LOSS(focal, FocalLoss, .name = "focal",                                                                             \
       .text = "rows count for less the better they are separated (``focal_gamma``), for two classes",                \
       .parameter = SPINNEY_FOCUS, .targets = LossTargets::classes, .link = "focal", .start = LossStart::balance,     \
       .of_two_classes = true, .tempers_steps = true)                                                                 \
  LOSS(smooth_hinge, SmoothHingeLoss, .name = "smooth_hinge",                                                         \
       .text = "asks for no more than a margin of 1, for two classes", .targets = LossTargets::classes,               \
       .link = "hinge", .start = LossStart::balance, .of_two_classes = true)                                          \
  LOSS(poisson, PoissonLoss, .name = "poisson", .text = "the logarithm of the mean, for counts",                      \
       .targets = LossTargets::non_negative, .link = "log", .start = LossStart::log_mean, .power = 1,                 \
       .tempers_steps = true)                                                                                         \
  LOSS(gamma, GammaLoss, .name = "gamma",                                                                             \
       .text = "the logarithm of the mean, where the deviation is in proportion to it",                               \
       .targets = LossTargets::positive, .link = "log", .start = LossStart::log_mean, .power = 2,                     \
       .tempers_steps = true)                                                                                         \
  LOSS(tweedie, TweedieLoss, .name = "tweedie",                                                                       \
       .text = "the logarithm of the mean, of zeros and positive targets (``tweedie_power``)",                        \
       .parameter = SPINNEY_POWER, .targets = LossTargets::non_negative, .link = "log", .start = LossStart::log_mean, \
       .tempers_steps = true)                                                                                         \
  LOSS(normal, NormalLoss, .name = "normal",                                                                          \
       .text = "a mean and a standard deviation for each row (`predict_std`), by their likelihood", .link = "normal", \
       .n_scores = 2, .start = LossStart::normal, .tempers_steps = true)                                              \
  LOSS(outside, OutsideLoss, .name = "outside", .tempers_steps = true, .is_outside = true)

#define SPINNEY_LOSS_ENUMERATOR(id, Type, ...) id,
enum class Loss : std::uint8_t { SPINNEY_LOSSES(SPINNEY_LOSS_ENUMERATOR) };
#undef SPINNEY_LOSS_ENUMERATOR

#define SPINNEY_LOSS_TRAITS(id, Type, ...) LossTraits{__VA_ARGS__},
inline constexpr LossTraits all_losses[] = {SPINNEY_LOSSES(SPINNEY_LOSS_TRAITS)};
#undef SPINNEY_LOSS_TRAITS

inline constexpr std::size_t n_losses = std::size(all_losses);
constexpr const LossTraits& traits_of(Loss loss) { return all_losses[static_cast<std::size_t>(loss)]; }

}  // namespace spinney
