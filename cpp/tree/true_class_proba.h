// Out-of-bag probability of each row's true class in a forest whose values are shrunk by several strengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "tree/forest.h"

namespace spinney {

struct EvaluatedLeaves {
  std::span<const std::uint32_t> leaf;  // of row r in tree t, counted within the tree, at r * n_trees + t
  std::span<const double> unseen;       // weight of tree t as an out-of-bag tree of row r, at t * n_rows + r
  std::span<const std::int32_t> codes;  // n_rows x n_outputs
  std::vector<std::uint32_t> n_classes;
};

// out[(r * n_outputs + k) * n_strengths + s]: the weighted mean over the out-of-bag trees of row r; 0 if there are
// none.
void true_class_proba(const Forest& forest, const EvaluatedLeaves& rows, std::span<const double> strengths,
                      int n_threads, Interrupt& interrupt, std::vector<double>& out);

}  // namespace spinney
