// How likely the trees of a forest that have not seen a row think its own class, their values shrunk by several strengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "tree/forest.h"

namespace spinney {

struct Judged {
  std::span<const std::uint32_t> leaf;  // of row r in tree t, counted within the tree, at r * n_trees + t
  std::span<const double> unseen;       // how much tree t counts as one that was not grown on row r, at t * n_rows + r
  std::span<const std::int32_t> codes;  // n_rows x n_outputs
  std::vector<std::uint32_t> n_classes;
};

// out[(r * n_outputs + k) * n_strengths + s]: the mean over the trees, as much as they count for row r; 0 where none does.
void own_shares(const Forest& forest, const Judged& judged, std::span<const double> strengths, int n_threads,
                Interrupt& interrupt, std::vector<double>& out);

}  // namespace spinney
