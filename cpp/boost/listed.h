// Sparse columns that share no lane: each row lists its cells other than the common code.
//
// The rows at the common code are the node's sum minus the listed ones, so they cost neither time nor memory. A node
// with many entries has a histogram of these columns; a node with few is searched from its rows, because clearing,
// filling and searching all cells would take longer. All rows at the common code are on one side of a split, so a
// column without enough other rows need not be searched: the sum of those rows is stored by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/kernels.h"

namespace spinney {

// Scratch of one thread.
struct ListedScratch {
  std::vector<Packed> off, cells;
  std::vector<std::uint32_t> first;  // by column: its first cell, or `none`
};

class ListedColumns {
 public:
  ListedColumns() = default;

  // `columns` are listed in `codes`, in ascending order, with at least two codes each.
  ListedColumns(const Coding& coding, const Codes& codes, std::vector<std::uint32_t> columns);

  bool empty() const { return columns_.empty(); }
  std::size_t n_columns() const { return columns_.size(); }
  std::uint32_t column(std::size_t i) const { return columns_[i].column; }
  std::size_t n_cells() const {
    return n_cells_ + columns_.size();
  }  // of a histogram: cells of the columns, then the sums by column
  double n_entries(double n_rows) const { return entries_a_row_ * n_rows; }  // approximate number for n_rows rows

  // Returns whether a node of n_rows is worth a histogram.
  bool is_worth_cells(double n_rows) const { return 8 * n_entries(n_rows) >= static_cast<double>(n_cells_); }

  void clear(Packed* histogram) const;
  void add_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const;
  void take_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const;

  // Subtracts the cells of a child from those of its node, for columns begin … end - 1.
  void subtract(std::size_t begin, std::size_t end, Packed* large, const Packed* small) const;

  // Calls visit(column, cells) for those of columns begin … end - 1 with at least the hessian `least` off the common
  // code.
  template <class Visit>
  void visit(std::size_t begin, std::size_t end, Packed* histogram, Packed total, double least, Visit&& visit) const {
    const Packed* off = histogram + n_cells_;
    for (std::size_t i = begin; i < end; ++i) {
      if (static_cast<double>(hessian_of(off[i])) < least) continue;
      const Listed& listed = columns_[i];
      histogram[listed.first + listed.common] = total - off[i];
      visit(listed.column, histogram + listed.first);
    }
  }

  // The same for all columns of a node without a histogram.
  template <class Visit>
  void visit_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed total, double least,
                  ListedScratch& scratch, Visit&& visit) const {
    if (!find_cells(pairs, rows, n, least, scratch)) return;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (scratch.first[i] == none) continue;
      Packed* cells = scratch.cells.data() + scratch.first[i];
      cells[columns_[i].common] = total - scratch.off[i];
      visit(columns_[i].column, cells);
    }
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Listed {
    std::uint32_t column = 0, common = 0, n_codes = 0;
    std::uint32_t first = 0;  // first cell
  };
  struct Entry {
    std::uint32_t column, cell;  // column: its index here
  };

  template <class Take>
  void for_each_entry(const Packed* pairs, const Row* rows, std::size_t n, Take&& take) const;
  bool find_cells(const Packed* pairs, const Row* rows, std::size_t n, double least, ListedScratch& scratch) const;

  std::vector<Listed> columns_;
  std::size_t n_cells_ = 0;
  std::vector<std::size_t> row_begins_;  // by row, then the end
  std::vector<Entry> entries_;           // by row
  double entries_a_row_ = 0;
};

}  // namespace spinney
