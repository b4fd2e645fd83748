// The finished tree: flat arrays, one entry per node, in preorder. The left child of a node is the next node.
//
// A category split stores the set of categories that leave the common way (see `goes_left`): as bits when that is
// short, else as a sorted list of the exceptions, so that a split costs no more than the rows that made it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

struct Tree {
  enum Flag : std::uint8_t { missing_left = 1, category = 2, default_left = 4 };
  static constexpr std::uint32_t list_mark = 0x80000000u;  // in a set's first word: a list follows, not bits

  std::uint32_t value_width = 1;
  std::vector<std::int32_t> feature;  // -1: a leaf
  std::vector<double> threshold;      // number splits: x <= threshold goes left
  std::vector<std::uint32_t> right;   // 0: a leaf
  std::vector<std::uint8_t> flags;
  std::vector<std::uint32_t> set;   // category splits: where the set begins in `sets`
  std::vector<std::uint32_t> sets;  // each: number of words (or list_mark | number of codes), then these
  std::vector<double> impurity, weight;
  std::vector<std::uint32_t> n_rows;
  std::vector<double> value;  // value_width per node

  std::size_t size() const { return feature.size(); }
  bool is_leaf(std::size_t node) const { return feature[node] < 0; }
  std::span<double> value_of(std::size_t node) { return {value.data() + node * value_width, value_width}; }
  std::span<const double> value_of(std::size_t node) const { return {value.data() + node * value_width, value_width}; }

  std::size_t add_leaf();  // appends a leaf whose statistics the caller fills in
  void append(const Tree& subtree);
  void reserve(std::size_t n_nodes, std::size_t n_set_words);
};

// Adds a set to `sets` and returns where it begins. `left` and `right` are the categories seen on either side, ascending;
// all others go left if `otherwise_left`.
std::uint32_t add_set(std::vector<std::uint32_t>& sets, std::span<const std::uint32_t> left,
                      std::span<const std::uint32_t> right, bool otherwise_left);

// Does a category that is present go left at this node?
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

}  // namespace spinney
