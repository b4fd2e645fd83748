#include "predict/compact.h"

#include <algorithm>

namespace spinney {

CompactNodes::CompactNodes(const Tree& tree) {
  constexpr std::size_t most_columns = 512;  // with more, copying a row costs more than reading the values it needs
  std::vector<std::uint8_t> seen;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree.is_leaf(i)) continue;
    const auto f = static_cast<std::size_t>(tree.feature[i]);
    if (f >= seen.size()) seen.resize(f + 1, 0);
    seen[f] = 1;
  }
  std::vector<std::uint16_t> slot(seen.size(), 0);
  for (std::uint32_t f = 0; f < seen.size(); ++f)
    if (seen[f]) {
      slot[f] = static_cast<std::uint16_t>(used.size());
      used.push_back(f);
    }
  if (used.size() > most_columns) return;
  nodes.resize(tree.size());
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.is_leaf(i)) {
      nodes[i] = {0.0, i, 0, 0, 0};
      continue;
    }
    nodes[i] = {tree.threshold[i], tree.right[i], slot[static_cast<std::size_t>(tree.feature[i])], 1, tree.flags[i]};
    has_categories = has_categories || (tree.flags[i] & Tree::category);
  }
}

}  // namespace spinney
