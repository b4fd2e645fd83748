// Compact nodes for walking, 16 bytes each, with the columns in use renumbered from 0.
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace spinney {

struct CompactNode {  // a leaf points to itself, so that rows walked together need not stop together
  double threshold;
  std::uint32_t right;
  std::uint16_t slot;      // column in use
  std::uint8_t left_step;  // 1, or 0 in a leaf
  std::uint8_t flags;
};

struct CompactNodes {
  explicit CompactNodes(const Tree& tree);

  std::vector<CompactNode> nodes;   // empty if there are too many columns in use
  std::vector<std::uint32_t> used;  // columns in use, ascending
  bool has_categories = false;
};

// One step down: the child for a value. A leaf leads to itself.
template <bool categories, class Node>
inline std::uint32_t step(const Tree& tree, const Node& node, std::uint32_t at, double x) {
  bool left = (x <= node.threshold) | ((x != x) & (node.flags & Tree::missing_left));
  if constexpr (categories)
    if ((node.flags & Tree::category) && x == x)
      left = category_goes_left(tree.sets.data() + tree.set[at], node.flags & Tree::default_left,
                                static_cast<std::uint32_t>(x));
  // selected by masks: a branch would be mispredicted half the time
  const std::uint32_t go_right = std::uint32_t{left} - 1, next_left = at + node.left_step;
  return next_left ^ ((next_left ^ node.right) & go_right);
}

}  // namespace spinney
