// The list of boosting losses. The enumeration, the kernels' tables and what Python asks for all come from it.
//
// A new loss:
//   1. its type in loss/losses.h: value, gradient and hessian of one row
//   2. its line here
//   3. its derivatives in tests/oracle/boosting.py
//   4. what the engine does not see in Python's losses.py: targets that it takes, the constant to start at, the link
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace spinney {

struct LossTraits {
  const char* name;             // in Python
  bool of_classes = false;      // targets are classes
  bool of_two_classes = false;  // and never of more; Python calls it by its name
  bool refits_leaves = false;   // a leaf's value is found from its residuals, as the gradients tell their signs only
  bool tempers_steps = false;   // Newton's steps may run away, as the hessian is not constant
  bool has_scores = false;      // several of a row
  bool is_outside = false;      // the caller sets gradients before each round; no loss is known here
  bool bends = false;           // its parameter is a share of the residuals: where the largest of these lie it bends
};

// LOSS(enumerator, type, traits)
#define SPINNEY_LOSSES(LOSS)                                                                                 \
  LOSS(squared, SquaredLoss, .name = "squared_error")                                                        \
  LOSS(absolute, AbsoluteLoss, .name = "absolute_error", .refits_leaves = true)                              \
  LOSS(huber, HuberLoss, .name = "huber", .refits_leaves = true, .bends = true)                              \
  LOSS(log_cosh, LogCoshLoss, .name = "log_cosh", .bends = true)                                             \
  LOSS(quantile, QuantileLoss, .name = "quantile", .refits_leaves = true)                                    \
  LOSS(logistic, LogisticLoss, .name = "logistic", .of_classes = true, .tempers_steps = true)                \
  LOSS(multinomial, MultinomialLoss, .name = "multinomial", .of_classes = true, .tempers_steps = true,       \
       .has_scores = true)                                                                                   \
  LOSS(exponential, ExponentialLoss, .name = "exponential", .of_classes = true, .of_two_classes = true,      \
       .tempers_steps = true)                                                                                \
  LOSS(focal, FocalLoss, .name = "focal", .of_classes = true, .of_two_classes = true, .tempers_steps = true) \
  LOSS(smooth_hinge, SmoothHingeLoss, .name = "smooth_hinge", .of_classes = true, .of_two_classes = true)    \
  LOSS(poisson, PoissonLoss, .name = "poisson", .tempers_steps = true)                                       \
  LOSS(gamma, GammaLoss, .name = "gamma", .tempers_steps = true)                                             \
  LOSS(tweedie, TweedieLoss, .name = "tweedie", .tempers_steps = true)                                       \
  LOSS(normal, NormalLoss, .name = "normal", .tempers_steps = true, .has_scores = true)                      \
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
