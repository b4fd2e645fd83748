// A table as small integers: what the trees of boosting are grown on.
//
//   number    code b: edges[b - 1] < x <= edges[b]; missing is the last code, where the column has missing values
//   category  code c: category c; missing and values never seen share the last code
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
  bool has_missing = false;   // its last code stands for missing
  bool is_wide = false;       // two bytes a code
  std::uint32_t n_codes = 1;  // codes 0 … n_codes - 1
  std::vector<double> edges;  // number columns: an edge after each code that is not the last

  std::uint32_t n_present() const { return n_codes - has_missing; }
};

// How columns are cut; learned from the training rows. `later` (may be null) is coded the same way: columns get a code
// for missing if they need it in either.
struct Coding {
  static Coding learn(const Table& table, const Table* later, const double* weight, std::uint32_t max_bins,
                      int n_threads, Interrupt& interrupt);

  // The same of these rows alone; `missing` says which columns of the whole table lack values.
  static Coding learn(const Table& table, const std::vector<Row>& rows, const double* weight,
                      const std::vector<std::uint8_t>& missing, std::uint32_t max_bins, int n_threads,
                      Interrupt& interrupt);

  // Rows that edges are learned from: all of positive weight, or so many spread evenly over them.
  static std::vector<Row> rows_to_learn_from(std::size_t n_rows, const double* weight);

  std::vector<CodedColumn> columns;
};

// Most columns have a code for each row. Sparse ones are listed: all rows have the code of 0 but those that are named.
struct Codes {
  struct List {
    bool is_listed = false;
    std::uint32_t common = 0;        // code of the rows that are not named
    std::size_t begin = 0, end = 0;  // of those that are
  };

  std::size_t n_rows = 0;
  std::shared_ptr<Spill> spill = nullptr;   // where the bytes lie; null: in memory
  LargeArray<std::uint8_t> bytes;           // column after column; 4 more than the codes need
  std::vector<std::size_t> first;           // byte of each column
  std::vector<List> lists;                  // by column; empty: none is listed
  std::vector<Row> listed_rows;             // by column, ascending
  std::vector<std::uint16_t> listed_codes;  // none is the column's common one

  bool is_listed(std::uint32_t f) const { return !lists.empty() && lists[f].is_listed; }
  std::span<const Row> rows_off(std::uint32_t f) const {
    return std::span(listed_rows).subspan(lists[f].begin, lists[f].end - lists[f].begin);
  }
  std::span<const std::uint16_t> codes_off(std::uint32_t f) const {
    return std::span(listed_codes).subspan(lists[f].begin, lists[f].end - lists[f].begin);
  }

  // Of columns that are not listed.
  const std::uint8_t* narrow(std::uint32_t f) const { return bytes.data() + first[f]; }
  const std::uint16_t* wide(std::uint32_t f) const { return reinterpret_cast<const std::uint16_t*>(narrow(f)); }

  // Some rows of a column or more, ascending, are about to be read.
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

// Where row 0 would lie, of rows that were copied: the first of these is so many bytes from it.
inline const std::uint8_t* from_row_0(const std::uint8_t* copied, std::size_t n_bytes) {
  return reinterpret_cast<const std::uint8_t*>(reinterpret_cast<std::uintptr_t>(copied) - n_bytes);
}

// `lists_columns`: sparse columns may be listed.
Codes encode(const Table& table, const Coding& coding, bool lists_columns, int n_threads, Interrupt& interrupt);

// Tables of the same columns, one below the other; there is one at least. No column is listed.
Codes encode(std::span<const Table* const> tables, const Coding& coding, int n_threads, Interrupt& interrupt);

}  // namespace spinney
