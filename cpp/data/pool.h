// Rare categories as one: told apart, those of a column of names are its rows, and trees learn them by heart.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_array.h"
#include "data/column.h"

namespace spinney {

// By column: nothing, or the categories that are one, ascending, and codes in which all have that of the first.
struct Pools {
  struct Pool {
    std::vector<std::uint32_t> categories;
    LargeArray<std::int32_t> codes;
  };
  std::vector<Pool> by_column;

  // The table with these columns; it borrows from here.
  Table apply(const Table& table) const;
};

// So many rare categories a column must have before they are made one: a few more cannot do harm.
inline constexpr std::size_t least_pooled = 11;

// Pools the categories that occur, but less often than `least`, where a column has many of them. `times`: how often each row
// is there; null: once. Missing values are not pooled.
Pools pool_rare(const Table& table, double least, const double* times);

}  // namespace spinney
