// Columns that are hardly ever off their common code, and share no lane: a row lists the cells that it adds to.
//
// The rows at the common code are what is missing from the node's sum, so they take neither time nor memory. A node of many
// entries has a histogram of these columns; one of few is searched from its rows alone, and has none: to clear, fill and
// search all cells would take longer. A split has the rows at the common code on one side, so that a column without enough
// of the others on the other side need not be searched: their sum is kept by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "boost/codes.h"
#include "boost/kernels.h"

namespace spinney {

// Of one thread.
struct ListedScratch {
  std::vector<Packed> off, cells;
  std::vector<std::uint32_t> first;  // by column: of its cells, or `none`
};

class ListedColumns {
 public:
  ListedColumns() = default;

  // `columns` are listed in `codes`, ascending and of two codes at least.
  ListedColumns(const Coding& coding, const Codes& codes, std::vector<std::uint32_t> columns);

  bool empty() const { return columns_.empty(); }
  std::size_t n_columns() const { return columns_.size(); }
  std::uint32_t column(std::size_t i) const { return columns_[i].column; }
  std::size_t n_cells() const { return n_cells_ + columns_.size(); }  // of a histogram: those of the columns, then sums
  double n_entries(double n_rows) const { return entries_a_row_ * n_rows; }  // of so many rows, about

  // Is a node of so many rows worth a histogram?
  bool is_worth_cells(double n_rows) const { return 8 * n_entries(n_rows) >= static_cast<double>(n_cells_); }

  void clear(Packed* histogram) const;
  void add_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const;
  void take_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const;

  // For columns begin … end - 1: the cells of a node less those of its child.
  void subtract(std::size_t begin, std::size_t end, Packed* large, const Packed* small) const;

  // visit(column, its cells) for those of columns begin … end - 1 that have the hessian `least` off their common code.
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
    std::uint32_t first = 0;  // cell
  };
  struct Entry {
    std::uint32_t column, cell;  // column: its place here
  };

  template <class Take>
  void for_each_entry(const Packed* pairs, const Row* rows, std::size_t n, Take&& take) const;
  bool find_cells(const Packed* pairs, const Row* rows, std::size_t n, double least, ListedScratch& scratch) const;

  std::vector<Listed> columns_;
  std::size_t n_cells_ = 0;
  std::vector<std::size_t> row_begins_;  // by row, and the end
  std::vector<Entry> entries_;           // by row
  double entries_a_row_ = 0;
};

}  // namespace spinney
