#include "tree/tree.h"

#include <algorithm>

namespace spinney {

std::size_t Tree::add_leaf() {
  feature.push_back(-1);
  threshold.push_back(0);
  right.push_back(0);
  flags.push_back(0);
  set.push_back(0);
  impurity.push_back(0);
  weight.push_back(0);
  n_rows.push_back(0);
  value.resize(value.size() + value_width, 0.0);
  return size() - 1;
}

void Tree::append(const Tree& subtree) {
  const auto node_shift = static_cast<std::uint32_t>(size()), set_shift = static_cast<std::uint32_t>(sets.size());
  const std::size_t first = size();
  extend(feature, subtree.feature);
  extend(threshold, subtree.threshold);
  extend(right, subtree.right);
  extend(flags, subtree.flags);
  extend(set, subtree.set);
  extend(sets, subtree.sets);
  extend(impurity, subtree.impurity);
  extend(weight, subtree.weight);
  extend(n_rows, subtree.n_rows);
  extend(value, subtree.value);
  if (!subtree.splits.empty() || !splits.empty()) {
    splits.pad(first);
    if (!subtree.splits.empty()) splits.append(subtree.splits);
    splits.pad(size());
  }
  if (!subtree.linear_leaves.empty() || !linear_leaves.empty()) {
    linear_leaves.pad(first);
    if (!subtree.linear_leaves.empty()) linear_leaves.append(subtree.linear_leaves);
    linear_leaves.pad(size());
  }
  for (std::size_t i = first; i < size(); ++i) {
    if (is_leaf(i)) continue;
    right[i] += node_shift;
    if (flags[i] & category) set[i] += set_shift;
  }
}

void Tree::clear() {
  feature.clear();
  threshold.clear();
  right.clear();
  flags.clear();
  set.clear();
  sets.clear();
  impurity.clear();
  weight.clear();
  n_rows.clear();
  value.clear();
  shrinkage = 0;
  splits = {};
  linear_leaves = {};
}

void Tree::reserve(std::size_t n_nodes, std::size_t n_set_words) {
  feature.reserve(n_nodes);
  threshold.reserve(n_nodes);
  right.reserve(n_nodes);
  flags.reserve(n_nodes);
  set.reserve(n_nodes);
  sets.reserve(n_set_words);
  impurity.reserve(n_nodes);
  weight.reserve(n_nodes);
  n_rows.reserve(n_nodes);
  value.reserve(n_nodes * value_width);
}

std::uint32_t add_set(std::vector<std::uint32_t>& sets, std::span<const std::uint32_t> left,
                      std::span<const std::uint32_t> right, bool otherwise_left) {
  const auto begin = static_cast<std::uint32_t>(sets.size());
  const std::span<const std::uint32_t> exceptions = otherwise_left ? right : left;
  std::uint32_t largest = 0;
  if (!left.empty()) largest = std::max(largest, left.back());
  if (!right.empty()) largest = std::max(largest, right.back());
  const std::size_t n_words = largest / 32 + std::size_t{1};
  if (n_words > exceptions.size()) {
    sets.push_back(Tree::list_mark | static_cast<std::uint32_t>(exceptions.size()));
    sets.insert(sets.end(), exceptions.begin(), exceptions.end());
    return begin;
  }
  sets.push_back(static_cast<std::uint32_t>(n_words));
  sets.resize(sets.size() + n_words, otherwise_left ? UINT32_MAX : 0);
  std::uint32_t* words = sets.data() + begin + 1;
  for (const std::uint32_t code : left) words[code / 32] |= 1u << (code % 32);
  for (const std::uint32_t code : right) words[code / 32] &= ~(1u << (code % 32));
  return begin;
}

}  // namespace spinney
