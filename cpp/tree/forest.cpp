#include "tree/forest.h"

#include <stdexcept>

namespace spinney {

void Forest::add(const Tree& tree) {
  if (nodes.size() + tree.size() >= UINT32_MAX)
    throw std::length_error("the forest has more than 4 billion nodes; grow fewer or smaller trees");
  nodes.value_width = tree.value_width;
  nodes.append(tree);
  root.push_back(static_cast<std::uint32_t>(nodes.size()));
}

void Forest::reserve(std::size_t n_nodes, std::size_t n_set_words, std::size_t n_trees) {
  nodes.reserve(n_nodes, n_set_words);
  root.reserve(n_trees + 1);
}

template <class T>
static std::vector<T> cut(const std::vector<T>& from, std::size_t begin, std::size_t end) {
  return {from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end)};
}

Tree Forest::tree(std::size_t t) const {
  const std::size_t begin = root[t], end = root[t + 1];
  Tree out;
  out.value_width = nodes.value_width;
  out.feature = cut(nodes.feature, begin, end);
  out.threshold = cut(nodes.threshold, begin, end);
  out.right = cut(nodes.right, begin, end);
  out.flags = cut(nodes.flags, begin, end);
  out.set = cut(nodes.set, begin, end);
  out.impurity = cut(nodes.impurity, begin, end);
  out.weight = cut(nodes.weight, begin, end);
  out.n_rows = cut(nodes.n_rows, begin, end);
  out.value = cut(nodes.value, begin * nodes.value_width, end * nodes.value_width);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out.is_leaf(i)) continue;
    out.right[i] -= static_cast<std::uint32_t>(begin);
    if (!(out.flags[i] & Tree::category)) continue;
    const std::uint32_t* set = nodes.sets.data() + out.set[i];
    out.set[i] = static_cast<std::uint32_t>(out.sets.size());
    out.sets.insert(out.sets.end(), set, set + 1 + (*set & ~Tree::list_mark));
  }
  return out;
}

}  // namespace spinney
