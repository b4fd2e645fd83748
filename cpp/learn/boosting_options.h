// The tables of options of boosting's rounds; those of its trees are in boost/tree_options.h.
#pragma once

#include <cstdint>
#include <vector>

#include "boost/tree_options.h"
#include "learn/part_losses.h"

namespace spinney {

namespace option_bounds {
inline constexpr OptionBounds bins{2, 65535, true, true};
}

#define SPINNEY_ROUND_OPTIONS(OPTION)                                                                            \
  OPTION(whole, max_bins, 65535, bins, "Bins of a column, missing values apart.")                                \
  OPTION(real, subsample, 1, fraction, "Fraction of the rows drawn for each round.")                             \
  OPTION(flag, draws_by_gradient, false, any, "Rows with large gradients are drawn rather than others.")         \
  OPTION(real, top_share, 0, part_or_off, "This fraction of the rows, of largest gradients, and some others.")   \
  OPTION(whole, n_parallel_trees, 1, at_least(1), "Rounds that fit the gradients of the same scores.")           \
  OPTION(real, drop_rate, 0, chance, "Chance that an earlier round is dropped.")                                 \
  OPTION(real, skip_drop, 0, chance, "Chance that a round drops nothing.")                                       \
  OPTION(whole, max_drop, UINT32_MAX, at_least(1), "Rounds that a round drops, at most.")                        \
  OPTION(flag, drops_by_weight, false, any, "Chances are in proportion to what rounds are worth.")               \
  OPTION(whole, steps_grow_after, 0, at_least(0), "Rounds after which steps grow; 0: never.")                    \
  OPTION(flag, temper_steps, true, any, "Newton's steps that may run away are shortened.")                       \
  OPTION(flag, vector_leaves, false, any, "A round has one tree, whose leaves hold a value for each score.")     \
  OPTION(real, hierarchical_shrinkage, 0, at_least(0), "Strength by which nodes are drawn to those above them.") \
  OPTION(real, linear_l2, 0, at_least(0), "Penalty of squared slopes of linear leaves, for columns of variance 1.")

#define SPINNEY_ROUND_LISTS(LIST)                                                          \
  LIST(losses, losses, "The sum to minimise; the scores of each loss stand side by side.") \
  LIST(signs, monotonic_cst, "By column, for all scores or by score; empty: none.")        \
  LIST(marks, linear_columns, "By column: 1 for those of linear leaves; empty: leaves are constant.")

#define SPINNEY_CPP_TYPE_losses std::vector<LossPart>
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

  // Monotonic constraints for all scores become the tree's; those by score make the options of trees by score.
  std::vector<BoostParams> constrain();

  // Steps of a round over those of the first. Who has not settled after many rounds has a long way to go.
  double step_growth(std::uint32_t round) const;
};

}  // namespace spinney
