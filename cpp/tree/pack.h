// A tree as the arrays of a model file, without what can be computed again to the bit, each number in the fewest bytes
// that hold it exactly. Every split has two children, so n splits have n + 1 leaves.
//
//   shape           one bit a node, in preorder: is it a split?       feature         by split
//   flags           by split, or one for all                          threshold       by split
//   sets            those of the category splits, in preorder
//   n_rows, weight  by leaf, where a split's is the sum of its children's, else by node; no weight: it is n_rows
//   leaf_counts     by leaf and class, where value is count / weight; or else
//   value_leaf, value_inner                                           by leaf, by split
//   impurity_leaf, impurity_inner                                     by leaf, by split; or one for all
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/container.h"
#include "tree/tree.h"

namespace spinney {

void pack(const Tree& tree, std::uint32_t number, std::vector<StoredArray>& arrays);

// Throws std::invalid_argument as read_model does. The tree still has to pass find_fault. It takes memory in proportion
// to its arrays in the file: under 100 bytes for each of theirs.
Tree unpack(std::span<const ArrayView> arrays);

}  // namespace spinney
