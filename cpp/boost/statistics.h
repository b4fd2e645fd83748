// Target statistics: number columns that replace category columns while trees are grown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/tree.h"

namespace spinney {

struct CategoryStatistic {
  std::uint32_t source = 0;  // index of the category column
  std::span<const double> of_category;
  double of_missing = 0;  // for rows without a category
  double of_unseen = 0;   // for unseen categories
};

// Rewrites a tree grown on a table's `n_columns` columns followed by these statistics: their splits become splits of
// the category columns, so that the finished tree refers to the table's columns only.
void restore_categories(Tree& tree, std::size_t n_columns, std::span<const CategoryStatistic> statistics);

}  // namespace spinney
