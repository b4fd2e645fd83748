// Columns of numbers that stand for columns of categories while trees are grown: a statistic of each row's category.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/tree.h"

namespace spinney {

struct CategoryStatistic {
  std::uint32_t source = 0;  // the column of categories
  std::span<const double> of_category;
  double of_missing = 0;  // of rows without a category
  double of_unseen = 0;   // of categories that were not there
};

// A tree grown on a table's `n_columns` columns and these statistics after them: their splits become splits of the
// categories they stand for, so that the finished tree knows the table's own columns alone.
void restore_categories(Tree& tree, std::size_t n_columns, std::span<const CategoryStatistic> statistics);

}  // namespace spinney
