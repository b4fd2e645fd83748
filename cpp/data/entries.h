// The non-zero entries of a table, by column in the order of their values, and by row: the input of nodes if most
// values are 0. Zeros take neither memory nor time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "data/sort.h"

namespace spinney {

struct Entries {
  // A column's entries are (code << 32 | row), sorted. Codes number its non-zero values; a missing value has
  // `missing_code`.
  struct OfColumn {
    std::size_t begin = 0, end = 0;
    std::size_t values = 0;         // index of its first value
    std::uint32_t first_above = 0;  // codes from here on are values above 0
    bool is_flag = false;           // one value besides 0, and no missing values
    bool has_missing = false;
  };

  std::vector<OfColumn> columns;  // empty: no entries
  std::vector<Entry> by_column;
  std::size_t n_of_flags = 0;              // number of entries of flags
  std::vector<double> values;              // by column and code
  std::vector<std::size_t> row_begins;     // by row, then the end
  std::vector<std::uint32_t> row_columns;  // by row, ascending
  std::vector<std::uint32_t> row_codes;    // by row

  bool empty() const { return columns.empty(); }
  std::span<const Entry> of_column(std::uint32_t f) const {
    return std::span(by_column).subspan(columns[f].begin, columns[f].end - columns[f].begin);
  }
  std::span<const std::uint32_t> columns_of(Row r) const {
    return std::span(row_columns).subspan(row_begins[r], row_begins[r + 1] - row_begins[r]);
  }
  double value(std::uint32_t f, std::uint32_t code) const { return values[columns[f].values + code]; }
};

// Empty if the table has category columns or more than one in `least_rows` values is non-zero.
Entries make_entries(const Table& table, std::size_t least_rows, int n_threads, Interrupt& interrupt);

}  // namespace spinney
