// The option table of boosting rounds; those of the trees are in boost/tree_options.h.
#pragma once

#include <cstdint>
#include <vector>

#include "boost/tree_options.h"
#include "learn/component_losses.h"

namespace spinney {

namespace option_bounds {
inline constexpr OptionBounds bins{2, 65535, true, true};
}

#define SPINNEY_ROUND_OPTIONS(OPTION)                                                                                \
  OPTION(whole, max_bins, 65535, bins, "Maximum number of bins of a column, without missing values.")                \
  OPTION(real, subsample, 1, fraction, "Fraction of the rows drawn for each round.")                                 \
  OPTION(flag, draws_by_gradient, false, any, "Draw rows with probabilities proportional to their gradients.")       \
  OPTION(real, top_fraction, 0, fraction_or_off,                                                                     \
         "Fraction of rows with the largest gradients to use, plus a sample of the others.")                         \
  OPTION(whole, n_parallel_trees, 1, at_least(1), "Number of rounds that fit the gradients of the same scores.")     \
  OPTION(real, drop_rate, 0, chance, "Probability that an earlier round is dropped.")                                \
  OPTION(real, skip_drop, 0, chance, "Probability that a round drops nothing.")                                      \
  OPTION(whole, max_drop, UINT32_MAX, at_least(1), "Maximum number of rounds to drop.")                              \
  OPTION(flag, drops_by_weight, false, any, "Drop rounds with probabilities proportional to their weights.")         \
  OPTION(whole, learning_rate_growth_start, 0, at_least(0), "Rounds after which the learning rate grows; 0: never.") \
  OPTION(flag, damp_steps, true, any, "Damp long Newton steps.")                                                     \
  OPTION(flag, vector_leaves, false, any, "Grow one tree per round, with a value for each score in its leaves.")     \
  OPTION(real, hierarchical_shrinkage, 0, at_least(0), "Strength of hierarchical shrinkage.")                        \
  OPTION(real, linear_l2, 0, at_least(0), "L2 penalty on slopes of linear leaves, for standardised columns.")        \
  OPTION(flag, linear_in_all, false, any, "Linear leaves use all columns, not only those on their path.")

#define SPINNEY_ROUND_LISTS(LIST)                                                                \
  LIST(losses, losses, "The losses whose sum is minimised; each has one or more score columns.") \
  LIST(signs, monotonic_cst, "By column, for all scores or by score; empty: none.")              \
  LIST(marks, linear_columns, "By column: 1 for those of linear leaves; empty: leaves are constant.")

#define SPINNEY_CPP_TYPE_losses std::vector<LossComponent>
#define SPINNEY_CPP_TYPE_signs std::vector<std::vector<std::int8_t>>
#define SPINNEY_CPP_TYPE_marks std::vector<std::uint8_t>
#define SPINNEY_PYTHON_TYPE_losses "Sequence[tuple[str, float, int, float]]"
#define SPINNEY_PYTHON_TYPE_signs "Sequence[Sequence[int]]"
#define SPINNEY_PYTHON_TYPE_marks "Sequence[int]"

inline constexpr OptionTraits scalar_options[] = {SPINNEY_ROUND_OPTIONS(SPINNEY_OPTION_TRAITS)
                                                      SPINNEY_TREE_OPTIONS(SPINNEY_OPTION_TRAITS)};

struct BoostingParams {
  SPINNEY_ROUND_OPTIONS(SPINNEY_OPTION_MEMBER)
  SPINNEY_ROUND_LISTS(SPINNEY_LIST_MEMBER)
  BoostParams tree;

  std::uint32_t n_scores() const;

  // Monotonic constraints for all scores become the tree's; those by score create tree options by score.
  std::vector<BoostParams> constrain();

  // The learning rate of a round relative to the first. If many rounds have not converged, there is a long way to go.
  double step_growth(std::uint32_t round) const;
};

}  // namespace spinney
