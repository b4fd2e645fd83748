// The option table of boosted trees. Structs, bindings and Python's checks are generated from it;
// learn/boosting_options.h has the options of rounds.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace spinney {

// An interval of numbers; with `off_at_zero`, 0 disables an option although estimators do not accept it.
struct OptionBounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool has_low = false, has_high = false;  // whether the ends belong to it
  bool off_at_zero = false;

  constexpr bool hold(double value) const {
    if (off_at_zero && value == 0) return true;
    return (has_low ? value >= low : value > low) && (has_high ? value <= high : value < high);
  }
};

namespace option_bounds {
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr OptionBounds any{};
inline constexpr OptionBounds above_zero{0, infinity, false, false};
inline constexpr OptionBounds positive_or_off{0, infinity, false, false, true};
inline constexpr OptionBounds fraction{0, 1, false, true};
inline constexpr OptionBounds fraction_or_off{0, 1, false, false, true};
inline constexpr OptionBounds chance{0, 1, true, true};
constexpr OptionBounds at_least(double low) { return {low, infinity, true, false}; }
}  // namespace option_bounds

// OPTION(kind, name, preset, bounds, text). The presets disable limits, sampling and regularisation; Python has the
// user's defaults.
#define SPINNEY_TREE_OPTIONS(OPTION)                                                                                   \
  OPTION(real, learning_rate, 1, above_zero, "Learning rate.")                                                         \
  OPTION(whole, max_leaf_nodes, UINT32_MAX, at_least(2), "Maximum number of leaves of a tree.")                        \
  OPTION(whole, max_depth, UINT32_MAX, at_least(1), "Maximum depth of a tree.")                                        \
  OPTION(flag, depth_wise, false, any, "Split the leaf of least depth next, not that of largest gain.")                \
  OPTION(flag, symmetric, false, any, "All nodes of a level make the same split.")                                     \
  OPTION(whole, min_samples_split, 2, at_least(2), "Minimum number of rows of a node to be split.")                    \
  OPTION(whole, min_samples_leaf, 1, at_least(1), "Minimum number of rows of a leaf.")                                 \
  OPTION(real, min_hessian_leaf, 0, at_least(0), "Minimum sum of hessians of a leaf.")                                 \
  OPTION(real, min_gain, 0, at_least(0), "Minimum gain of a split.")                                                   \
  OPTION(real, l2_regularization, 0, at_least(0), "L2 penalty on leaf values.")                                        \
  OPTION(real, l1_regularization, 0, at_least(0), "L1 penalty on leaf values.")                                        \
  OPTION(real, max_step, 0, positive_or_off, "Maximum leaf value before the learning rate.")                           \
  OPTION(real, longest_step, 0, positive_or_off, "The same, but splits are searched without the limit.")               \
  OPTION(real, max_features_per_tree, 1, fraction, "Fraction of the columns drawn for a tree.")                        \
  OPTION(real, max_features_per_level, 1, fraction, "Fraction of these drawn for a level.")                            \
  OPTION(real, max_features, 1, fraction, "Fraction of these drawn for a node.")                                       \
  OPTION(whole, max_one_hot, 0, at_least(0), "Maximum number of categories for one-against-rest splits.")              \
  OPTION(real, category_smoothing, 0, at_least(0), "Rows added to a category's hessian before categories are sorted.") \
  OPTION(real, category_l2, 0, at_least(0), "Additional L2 penalty for splits of sorted categories.")

// LIST(kind, name, text); all may be empty.
#define SPINNEY_TREE_LISTS(LIST)                                                                \
  LIST(groups, interaction_cst, "Groups of columns that may interact; empty: all may.")         \
  LIST(reals, feature_costs, "By column: gains are divided by it; empty: all cost the same.")   \
  LIST(reals, feature_weights, "By column: sampling weight, 0: never drawn; empty: all equal.") \
  LIST(splits, forced_splits, "First splits of every tree, the root first.")

// ---- how a table is expanded ------------------------------------------------------------------------------

#define SPINNEY_CPP_TYPE_real double
#define SPINNEY_CPP_TYPE_whole std::uint32_t
#define SPINNEY_CPP_TYPE_flag bool
#define SPINNEY_PYTHON_TYPE_real "float"
#define SPINNEY_PYTHON_TYPE_whole "int"
#define SPINNEY_PYTHON_TYPE_flag "bool"
#define SPINNEY_CPP_TYPE_reals std::vector<double>
#define SPINNEY_CPP_TYPE_groups std::vector<std::vector<std::uint32_t>>
#define SPINNEY_CPP_TYPE_splits std::vector<ForcedSplit>
#define SPINNEY_PYTHON_TYPE_reals "Sequence[float]"
#define SPINNEY_PYTHON_TYPE_groups "Sequence[Sequence[int]]"
#define SPINNEY_PYTHON_TYPE_splits "Sequence[tuple[int, float, Sequence[int], int, int]]"

#define SPINNEY_OPTION_MEMBER(kind, name, preset, bounds, text) SPINNEY_CPP_TYPE_##kind name = preset;
#define SPINNEY_LIST_MEMBER(kind, name, text) SPINNEY_CPP_TYPE_##kind name;

struct OptionTraits {
  const char* name;
  const char* type;  // Python type
  OptionBounds bounds;
  const char* text;
};
#define SPINNEY_OPTION_TRAITS(kind, name, preset, bounds, text) \
  OptionTraits{#name, SPINNEY_PYTHON_TYPE_##kind, option_bounds::bounds, text},

// A forced split. `left` and `right` index its child splits; 0 means none.
struct ForcedSplit {
  std::uint32_t feature = 0;
  double threshold = 0;                   // number columns: values up to it go left
  std::vector<std::uint32_t> left_codes;  // categories, ascending
  std::uint32_t left = 0, right = 0;
};

struct BoostParams {
  SPINNEY_TREE_OPTIONS(SPINNEY_OPTION_MEMBER)
  SPINNEY_TREE_LISTS(SPINNEY_LIST_MEMBER)
  std::vector<std::int8_t> monotonic_cst;  // by column; empty: none
  double count_by_weight = 1;  // rows per unit of weight, for estimating the rows of a side from its hessian
  std::uint64_t seed = 0;
  int n_threads = 1;
};

}  // namespace spinney
