// Pooling of rare categories: split individually, rare categories such as names identify single rows and overfit.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_array.h"
#include "data/column.h"

namespace spinney {

// By column: empty, or the pooled categories (ascending) and codes in which all of them have the code of the first.
struct Pools {
  struct Pool {
    std::vector<std::uint32_t> categories;
    LargeArray<std::int32_t> codes;
  };
  std::vector<Pool> by_column;

  // The table with these columns; it refers to this object.
  Table apply(const Table& table) const;
};

// The minimum number of rare categories of a column for pooling: a few do no harm.
inline constexpr std::size_t least_pooled = 11;

// Pools the categories that occur less often than `least` in columns with many of them. `times`: repetitions of each
// row; null: 1. Missing values are not pooled.
Pools pool_rare(const Table& table, double least, const double* times);

}  // namespace spinney
