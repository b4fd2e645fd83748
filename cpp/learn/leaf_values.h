// The values of a boosted tree's leaves, and what its splits show of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "boost/boosted_tree.h"
#include "learn/boosting_state.h"
#include "learn/scales.h"
#include "tree/tree.h"

namespace spinney {

// What to make of Newton's step |G| / H where it is long. The second derivative of these losses changes by at most a factor
// e^s over a step s, so the loss of a leaf is at most  L - |G| s + H (e^s - s - 1), and the best step by that bound is
// log(1 + |G| / H). Newton's is taken while it is short, and goes on as that logarithm. Then the bound lies below L, and no
// leaf's loss rises, for learning rates up to 1. A leaf with one row of a class that has a share of 1e-4 otherwise asks for
// steps of hundreds, after which probabilities are 0 and 1 and nothing can be learned any more.
double tempered(double newton);

// Leaves that are tempered or refitted obey monotone columns too. The bounds a tree grows by are of Newton's steps, not of
// such values; these are drawn to the middle between the means of both sides of a monotone split.
void order_values(Tree& tree, const std::vector<std::int8_t>& monotone);

// Are long steps of this score's trees tempered?
bool is_tempered(const BoostingParams& params, const PlacedPart& part, std::uint32_t score);

// Leaves take the steps that the sums of their gradients ask for, times the growth of steps by then. `is_free`: the tree
// grew by other rules than bounds of these values.
void set_steps(BoostedTree& grown, const std::vector<WholeSums>& sums, const LeafScales& scales,
               const SplitSearch& search, const BoostParams& params, double growth, bool is_tempered, bool is_free);

// Nodes know the weight of their rows, not their number; `weights` are those of leaves, times the scale.
void set_weights(BoostedTree& grown, const std::vector<std::int64_t>& weights, double scale);

// Splits show what the tree adds on average to the rows that pass, in the same terms as its leaves, which may be tempered,
// refitted or bounded.
void average_below(Tree& tree);

}  // namespace spinney
