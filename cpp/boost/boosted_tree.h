// A grown tree of gradient boosting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"
#include "tree/tree.h"

namespace spinney {

// A leaf of a grown tree, with the range of the row index that holds its rows in ascending order.
struct GrownLeaf {
  std::uint32_t node;
  std::size_t begin, end;
  Bounds bounds;
  std::uint32_t name = 0;  // node number in messages of a distributed fit
};

struct BoostedTree {
  Tree tree;                       // the caller sets the values of the leaves
  std::vector<std::uint32_t> cut;  // by node: the last code that goes left (number splits)
  std::vector<GrownLeaf> leaves;
};

// Writes a split with its threshold or set of categories into a node of a tree.
void set_split(Tree& tree, std::size_t at, const Coding& coding, const BoostSplit& split, bool left_heavier);

}  // namespace spinney
