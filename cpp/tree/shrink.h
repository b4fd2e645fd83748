// Hierarchical shrinkage: the values of a tree's nodes are shrunk towards those of their ancestors. On the path t_0, …,
// t_L from the root a value becomes  v(t_0) + sum of (v(t_l) - v(t_(l-1))) / (1 + strength / N(t_(l-1))),  N the weight
// of a node. It is computed as a weighted average of v(t_0), …, v(t_L) with non-negative weights: probabilities stay
// probabilities, and values stay within the range of the path.
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace spinney {

void shrink(Tree& tree, double strength);

// The counts behind class probabilities that were shrunk by tree.shrinkage, or empty if the values are not exactly
// such.
std::vector<std::uint32_t> counts_before_shrinkage(const Tree& tree);

}  // namespace spinney
