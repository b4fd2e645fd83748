// Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3) for any risk of the nodes.
//
// A node's risk is its cost as a leaf. T(alpha) is the smallest subtree that minimises the total risk of its leaves +
// alpha * number of leaves. The trees T(alpha) are nested for increasing alpha; the weakest-link sequence lists which
// node becomes a leaf at which alpha.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/tree.h"

namespace spinney {

// Step i turns node[i] into a leaf at alpha[i], after which the leaves' total risk is risk[i + 1] and their number
// n_leaves[i + 1]; entry 0 of these belongs to the whole tree. Alphas do not decrease; nodes with equal alpha in exact
// arithmetic have equal alpha here. Splits without gain are pruned at 0.
struct PruningPath {
  std::vector<std::uint32_t> node, n_leaves;
  std::vector<double> alpha, risk;
  std::vector<double> complexity;  // by node: the alpha from which it is a leaf or pruned; 0 in leaves
};
PruningPath weakest_links(const Tree& tree, std::span<const double> risk, int n_threads = 1);

// Impurity times fraction of the root's weight: the risk that scikit-learn prunes by.
std::vector<double> impurity_risks(const Tree& tree);

// Relative tolerance for comparing a step's alpha with the requested alpha: callers compute theirs differently.
inline constexpr double alpha_rounding = 1e-10;

// A copy in which the marked nodes are leaves.
Tree collapse(const Tree& tree, const std::vector<std::uint8_t>& make_leaf);

// T(alpha), up to `alpha_rounding`.
Tree prune(const Tree& tree, std::span<const double> risk, double alpha);

// A tree pruned at a series of cuts with increasing alpha: first_cut[i] is the first cut at which node i is a leaf or
// pruned (0 in leaves; never smaller for an ancestor). A turn means that a row stops at a node for the cuts begin …
// until - 1.
struct Turns {
  std::vector<std::uint32_t> row, node, begin, until;
};
// first_cut for ascending limits: a cut takes the steps whose alpha is at most its limit.
std::vector<std::uint32_t> first_cuts(const Tree& tree, std::span<const double> risk, std::span<const double> limits);
// The turns of all rows, given their nodes in the whole tree. A row's turns cover all cuts, the last ones first.
Turns pruning_turns(const Tree& tree, std::span<const std::uint32_t> rest, std::span<const std::uint32_t> first_cut,
                    std::uint32_t n_cuts);

}  // namespace spinney
