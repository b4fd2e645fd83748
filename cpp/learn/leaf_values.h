// The leaf values of a boosted tree, and the values shown at its splits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "boost/boosted_tree.h"
#include "learn/boosting_state.h"
#include "learn/scales.h"
#include "tree/tree.h"

namespace spinney {

// Damping of long Newton steps |G| / H. The second derivative of these losses changes by at most a factor e^s over a
// step s, so the loss of a leaf is at most  L - |G| s + H (e^s - s - 1), and the best step by that bound is log(1 + |G|
// / H). Newton's step is taken while it is short, and continued as that logarithm. Then the bound is below L, and the
// loss of a leaf never increases, for learning rates up to 1. Otherwise a leaf with one row of a class with probability
// 1e-4 would take steps of hundreds, after which probabilities are 0 and 1 and learning stops.
double damped(double newton);

// Enforces monotonic constraints on damped or refitted leaves. The bounds during growth apply to Newton's steps, not to
// such values; these are moved to the middle between the means of both sides of a monotone split.
void order_values(Tree& tree, const std::vector<std::int8_t>& monotone);

// Returns whether long steps of this score's trees are damped.
bool is_damped(const BoostingParams& params, const PlacedComponent& component, std::uint32_t score);

// Sets leaves to the Newton steps of their gradient sums, times the growth of the learning rate. `is_free`: the tree
// was grown without bounds on these values.
void set_steps(BoostedTree& grown, const std::vector<WholeSums>& sums, const LeafScales& scales,
               const SplitSearch& search, const BoostParams& params, double growth, bool is_damped, bool is_free);

// Nodes store the weight of their rows, not their number; `weights` are those of leaves, times the scale.
void set_weights(BoostedTree& grown, const std::vector<std::int64_t>& weights, double scale);

// Sets the values of splits to the mean contribution of the tree to their rows, consistent with its leaves, which may
// be damped, refitted or bounded.
void average_below(Tree& tree);

}  // namespace spinney
