// A table as small integers (bin codes), the input of boosted trees.
//
//   number    code b: edges[b - 1] < x <= edges[b]; missing is the last code, where the column has missing values
//   category  code c: category c; missing values and unseen categories share the last code
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "data/column.h"

namespace spinney {

struct CodedColumn {
  bool is_category = false;
  bool has_missing = false;   // the last code stands for missing
  bool is_wide = false;       // two bytes per code
  std::uint32_t n_codes = 1;  // codes 0 … n_codes - 1
  std::vector<double> edges;  // number columns: an edge after each code except the last

  std::uint32_t n_present() const { return n_codes - has_missing; }
};

// The bins of the columns, learned from the training rows. `validation` (may be null) uses the same coding: a column
// has a code for missing values if either table needs it.
struct Coding {
  static Coding learn(const Table& table, const Table* validation, const double* weight, std::uint32_t max_bins,
                      int n_threads, Interrupt& interrupt);

  // The same for these rows only; `missing` marks the columns of the whole table with missing values.
  static Coding learn(const Table& table, const std::vector<Row>& rows, const double* weight,
                      const std::vector<std::uint8_t>& missing, std::uint32_t max_bins, int n_threads,
                      Interrupt& interrupt);

  // The rows that bin edges are learned from: all of positive weight, or an evenly spaced sample of them.
  static std::vector<Row> rows_to_learn_from(std::size_t n_rows, const double* weight);

  std::vector<CodedColumn> columns;
};

// Most columns have a code per row. Sparse columns are listed: every row that is not listed has the code of 0.
struct Codes {
  struct List {
    bool is_listed = false;
    std::uint32_t common = 0;        // code of the rows that are not listed
    std::size_t begin = 0, end = 0;  // range of the listed rows
  };

  std::size_t n_rows = 0;
  std::shared_ptr<Spill> spill = nullptr;   // where the bytes are stored; null: in memory
  LargeArray<std::uint8_t> bytes;           // column after column; 4 more bytes than the codes need
  std::vector<std::size_t> first;           // first byte of each column
  std::vector<List> lists;                  // by column; empty: no column is listed
  std::vector<Row> listed_rows;             // by column, ascending
  std::vector<std::uint16_t> listed_codes;  // never the common code

  bool is_listed(std::uint32_t f) const { return !lists.empty() && lists[f].is_listed; }
  std::span<const Row> rows_off(std::uint32_t f) const {
    return std::span(listed_rows).subspan(lists[f].begin, lists[f].end - lists[f].begin);
  }
  std::span<const std::uint16_t> codes_off(std::uint32_t f) const {
    return std::span(listed_codes).subspan(lists[f].begin, lists[f].end - lists[f].begin);
  }

  // For columns that are not listed.
  const std::uint8_t* narrow(std::uint32_t f) const { return bytes.data() + first[f]; }
  const std::uint16_t* wide(std::uint32_t f) const { return reinterpret_cast<const std::uint16_t*>(narrow(f)); }

  // Announces that some rows (ascending) of one or more columns are about to be read.
  void touch(std::span<const Row> rows, std::size_t n_columns = 1) const {
    if (spill && !rows.empty())
      spill->touch_some(n_columns * rows.size(), 2 * n_columns * (rows.back() - rows.front() + 1));
  }

  std::uint32_t code(const Coding& coding, std::uint32_t f, Row r) const {
    if (is_listed(f)) return listed_code(f, r);
    return coding.columns[f].is_wide ? wide(f)[r] : narrow(f)[r];
  }

 private:
  std::uint32_t listed_code(std::uint32_t f, Row r) const;
};

// The address that row 0 would have if these copied rows were part of a whole column; `n_bytes` bytes precede them.
inline const std::uint8_t* from_row_0(const std::uint8_t* copied, std::size_t n_bytes) {
  return reinterpret_cast<const std::uint8_t*>(reinterpret_cast<std::uintptr_t>(copied) - n_bytes);
}

// `lists_columns`: sparse columns may be listed.
Codes encode(const Table& table, const Coding& coding, bool lists_columns, int n_threads, Interrupt& interrupt);

// Codes vertically stacked tables with the same columns (at least one table). No column is listed.
Codes encode(std::span<const Table* const> tables, const Coding& coding, int n_threads, Interrupt& interrupt);

}  // namespace spinney
