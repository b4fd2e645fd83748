// A grown tree of boosting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"
#include "tree/tree.h"

namespace spinney {

// A leaf of a grown tree, and the range of the row index with its rows, in ascending order.
struct GrownLeaf {
  std::uint32_t node;
  std::size_t begin, end;
  Bounds bounds;
  std::uint32_t name = 0;  // its number in messages, where rows are distributed
};

struct BoostedTree {
  Tree tree;                       // values of leaves are left to the caller
  std::vector<std::uint32_t> cut;  // by node: the last code that goes left (number splits)
  std::vector<GrownLeaf> leaves;
};

// Writes a split, with its threshold or set of categories, into a node of a tree.
void set_split(Tree& tree, std::size_t at, const Coding& coding, const BoostSplit& split, bool left_heavier);

}  // namespace spinney
