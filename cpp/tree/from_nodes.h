// A tree from nodes in any order, as other libraries store them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/tree.h"

namespace spinney {

struct LooseNodes {
  std::span<const std::int32_t> left, right;  // negative: a leaf
  std::span<const std::int32_t> feature;
  std::span<const double> threshold;     // number splits: x <= threshold goes left
  std::span<const std::uint8_t> flags;   // of splits, as in Tree
  std::span<const std::uint32_t> begin;  // first code of each node, then the end
  // of category splits, ascending: the codes that go left or, where all others go left (`default_left`), those that go
  // right
  std::span<const std::uint32_t> codes;
  std::span<const double> weight;
  std::span<const std::uint32_t> n_rows;
  std::span<const double> value;  // value_width per node
  std::uint32_t value_width = 1;
  std::span<const double> gain;      // of splits, in the unit of weight times impurity; empty: impurity is given
  std::span<const double> impurity;  // empty: gain is given
  bool averages_inner = false;       // the value of a split is the weighted mean of its children's
};

// In preorder from node 0; unreachable nodes are dropped. Throws std::invalid_argument if the nodes do not form a tree.
// The result still has to pass find_fault.
Tree tree_from_nodes(const LooseNodes& nodes);

}  // namespace spinney
