// A tree as the arrays of a model file, without values that can be recomputed exactly, each number in the fewest bytes
// that represent it exactly. Every split has two children, so n splits have n + 1 leaves.
//
//   shape           one bit a node, in preorder: is it a split?       feature         by split
//   flags           by split, or one for all                          threshold       by split
//   sets            those of the category splits, in preorder
//   n_rows, weight  by leaf, if a split's is the sum of its children's, else by node; no weight: equal to n_rows
//   leaf_counts     by leaf and class, if value is count / weight; otherwise
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

// Throws std::invalid_argument like read_model. The tree still has to pass find_fault. Its memory is proportional to
// its arrays in the file: less than 100 bytes per byte.
Tree unpack(std::span<const ArrayView> arrays);

}  // namespace spinney
