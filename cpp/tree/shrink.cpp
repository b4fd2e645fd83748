#include "tree/shrink.h"

#include <bit>
#include <cmath>
#include <span>

namespace spinney {

namespace {

// Calls body(node, retained, inherited, own): the node's shrunken value is inherited + retained * its value, which body
// stores in `own`. It is passed on to the children. Nodes of equal depth share memory: a right child is visited after
// the subtree of its sibling.
template <class Body>
void walk_down(const Tree& tree, double strength, Body&& body) {
  const std::size_t width = tree.value_width;
  std::vector<double> retained{1.0}, inherited(width, 0.0), own(width);
  std::vector<std::size_t> right_depth;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    body(i, retained[depth], inherited.data() + depth * width, own.data());
    if (tree.is_leaf(i)) {
      if (right_depth.empty()) return;
      depth = right_depth.back();
      right_depth.pop_back();
      continue;
    }
    const double retained_below = 1 / (1 + strength / tree.weight[i]), left_here = retained[depth] - retained_below;
    right_depth.push_back(++depth);
    if (depth == retained.size()) {
      retained.push_back(0);
      inherited.resize(inherited.size() + width);
    }
    retained[depth] = retained_below;
    for (std::size_t k = 0; k < width; ++k)
      inherited[depth * width + k] = inherited[(depth - 1) * width + k] + left_here * own[k];
  }
}

}  // namespace

void shrink(Tree& tree, double strength) {
  walk_down(tree, strength, [&](std::size_t i, double retained, const double* inherited, double* own) {
    const std::span<double> value = tree.value_of(i);
    for (std::size_t k = 0; k < value.size(); ++k) {
      own[k] = value[k];
      value[k] = inherited[k] + retained * value[k];
    }
  });
  tree.shrinkage = strength;
}

std::vector<std::uint32_t> counts_before_shrinkage(const Tree& tree) {
  std::vector<std::uint32_t> counts(tree.value.size());
  bool is_exact = true;
  walk_down(tree, tree.shrinkage, [&](std::size_t i, double retained, const double* inherited, double* own) {
    const std::span<const double> value = tree.value_of(i);
    for (std::size_t k = 0; k < value.size() && is_exact; ++k) {
      const double count = std::nearbyint((value[k] - inherited[k]) / retained * tree.weight[i]);
      is_exact = count >= 0 && count <= UINT32_MAX;
      if (!is_exact) break;
      own[k] = count / tree.weight[i];
      is_exact =
          std::bit_cast<std::uint64_t>(inherited[k] + retained * own[k]) == std::bit_cast<std::uint64_t>(value[k]);
      counts[i * value.size() + k] = static_cast<std::uint32_t>(count);
    }
  });
  return is_exact ? counts : std::vector<std::uint32_t>();
}

}  // namespace spinney
