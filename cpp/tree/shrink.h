// Hierarchical shrinkage: the values of a tree's nodes are drawn to those of their ancestors. On the path t_0, …, t_L from
// the root a value becomes  v(t_0) + sum of (v(t_l) - v(t_(l-1))) / (1 + strength / N(t_(l-1))),  N the weight of a node.
// It is computed as the average of v(t_0), …, v(t_L) that this is, with weights that are not negative: shares stay shares,
// and values stay between those of the path.
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace spinney {

void shrink(Tree& tree, double strength);

// The counts behind class shares that were shrunk by tree.shrinkage, or nothing if the values are not exactly such.
std::vector<std::uint32_t> counts_before_shrinkage(const Tree& tree);

}  // namespace spinney
