// Summary of a whole table: a fingerprint of each row and the range of each column.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"

namespace spinney {

// By row: a number that depends only on its values. Tables of the same rows have the same fingerprints, whatever the
// position of a row and the storage type of its numbers.
std::vector<std::uint64_t> fingerprints(const Table& table, int n_threads, Interrupt& interrupt);

// NaN: the column holds categories, or no value at all.
struct ColumnRange {
  double low, high;
  bool has_missing = false;
};

// By column, over the rows of positive weight (null: all).
std::vector<ColumnRange> column_ranges(const Table& table, const double* weight, int n_threads, Interrupt& interrupt);

}  // namespace spinney
