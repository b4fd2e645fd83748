// The finished tree: flat arrays, one entry per node, in preorder. The left child of a node is the next node.
//
// A category split stores the set of categories that leave the default side (see `goes_left`): as bits if short,
// else as a sorted list, so that a split takes no more memory than its rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "tree/linear_leaves.h"
#include "tree/splits.h"

namespace spinney {

struct Tree {
  // stops: a row stays at this node if neither the split nor a surrogate can place it; alone: surrogates are not used
  enum Flag : std::uint8_t { missing_left = 1, category = 2, default_left = 4, stops = 8, alone = 16 };
  static constexpr std::uint32_t list_mark = 0x80000000u;  // in a set's first word: a list follows, not bits

  std::uint32_t value_width = 1;
  std::vector<std::int32_t> feature;  // -1: a leaf
  std::vector<double> threshold;      // number splits: x <= threshold goes left
  std::vector<std::uint32_t> right;   // 0: a leaf
  std::vector<std::uint8_t> flags;
  std::vector<std::uint32_t> set;   // category splits: index of the set in `sets`
  std::vector<std::uint32_t> sets;  // each: number of words (or list_mark | number of codes), then the words
  std::vector<double> impurity, weight;
  std::vector<std::uint32_t> n_rows;
  std::vector<double> value;  // value_width per node
  double shrinkage = 0;       // strength of the last shrinkage, if known: makes files smaller
  SplitList splits;
  LinearLeaves linear_leaves;  // linear models of leaves, if any

  std::size_t size() const { return feature.size(); }
  bool is_leaf(std::size_t node) const { return feature[node] < 0; }
  std::span<double> value_of(std::size_t node) { return {value.data() + node * value_width, value_width}; }
  std::span<const double> value_of(std::size_t node) const { return {value.data() + node * value_width, value_width}; }

  std::size_t add_leaf();  // appends a leaf; the caller sets its statistics
  void append(const Tree& subtree);
  void reserve(std::size_t n_nodes, std::size_t n_set_words);
  void clear();  // keeps the memory
};

// Adds a set to `sets` and returns its index. `left` and `right` are the categories that occur on either side,
// ascending; all others go left if `otherwise_left`.
std::uint32_t add_set(std::vector<std::uint32_t>& sets, std::span<const std::uint32_t> left,
                      std::span<const std::uint32_t> right, bool otherwise_left);

// Returns whether a category goes left at this node.
inline bool category_goes_left(const std::uint32_t* set, bool otherwise_left, std::uint32_t code) {
  const std::uint32_t head = *set++;
  if (head & Tree::list_mark) {
    std::uint32_t low = 0, high = head & ~Tree::list_mark;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (set[middle] < code)
        low = middle + 1;
      else
        high = middle;
    }
    const bool listed = low < (head & ~Tree::list_mark) && set[low] == code;
    return listed != otherwise_left;
  }
  return code / 32 < head ? set[code / 32] >> (code % 32) & 1 : otherwise_left;
}

inline bool goes_left(const Tree& t, std::size_t node, double x) {
  const std::uint8_t flags = t.flags[node];
  if (x != x) return flags & Tree::missing_left;
  if (!(flags & Tree::category)) return x <= t.threshold[node];
  return category_goes_left(t.sets.data() + t.set[node], flags & Tree::default_left, static_cast<std::uint32_t>(x));
}

// The child of a split for a row, or nowhere. `value_of(column)` returns its values, NaN if missing.
template <class ValueOf>
std::uint32_t next_node(const Tree& t, std::uint32_t at, ValueOf&& value_of) {
  const double x = value_of(static_cast<std::uint32_t>(t.feature[at]));
  if (t.splits.empty()) return goes_left(t, at, x) ? at + 1 : t.right[at];
  const std::uint32_t end = t.splits.begin[at + 1];
  for (std::uint32_t s = t.splits.begin[at]; s < end; ++s) {
    if (t.splits.role[s] == SplitList::competitor || (t.splits.role[s] && (t.flags[at] & Tree::alone))) continue;
    const double v = t.splits.role[s] == SplitList::primary ? x : value_of(t.splits.feature[s]);
    const SplitList::Side side = t.splits.side_of(s, v);
    if (side != SplitList::Side::unknown) return side == SplitList::Side::left ? at + 1 : t.right[at];
  }
  if (t.flags[at] & Tree::stops) return at;
  return goes_left(t, at, x) ? at + 1 : t.right[at];
}

// The value of a single-output leaf for a row.
template <class ValueOf>
double leaf_value(const Tree& t, std::size_t leaf, ValueOf&& value_of) {
  return t.linear_leaves.has(leaf) ? t.linear_leaves.at(leaf, t.value[leaf], value_of) : t.value[leaf];
}

// The node at which a row stops: a leaf, unless it stops at a split.
template <class ValueOf>
std::uint32_t resting_node(const Tree& t, ValueOf&& value_of) {
  std::uint32_t at = 0;
  while (!t.is_leaf(at)) {
    const std::uint32_t next = next_node(t, at, value_of);
    if (next == at) break;
    at = next;
  }
  return at;
}

}  // namespace spinney
