// Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3).
#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace spinney {

// The weakest-link sequence: step i collapses node[i] at alpha[i], after which the leaves' total risk is risk[i + 1];
// risk[0] belongs to the whole tree. A node's risk is its impurity times its share of the root's weight.
struct PruningPath {
  std::vector<std::uint32_t> node;
  std::vector<double> alpha, risk;
};
PruningPath weakest_links(const Tree& tree);

// A copy in which the marked nodes are leaves.
Tree collapse(const Tree& tree, const std::vector<std::uint8_t>& make_leaf);

// Collapses all that the sequence collapses at or below alpha.
Tree prune(const Tree& tree, double alpha);

}  // namespace spinney
