// Walks rows down a tree. A walker is created once per tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/compact.h"
#include "tree/tree.h"

namespace spinney {

class Walker {
 public:
  explicit Walker(const Tree& tree);

  // leaf[i] = the leaf of row i, for all rows of the table.
  void apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const;

  // The leaf of one row, given as the numbers of all its columns (NaN: missing; a category: its code).
  std::uint32_t apply_one(const double* row) const;

 private:
  // The location of the values of consecutive rows: column in use `s` of row i is at first + i * stride + offset[s].
  struct Layout {
    const std::byte* first;
    std::ptrdiff_t stride;
    const std::ptrdiff_t* offset;
  };
  template <class T, bool categories>
  void walk(const Layout& rows, std::size_t n_rows, std::uint32_t* leaf) const;
  template <class T>
  void walk_as(const Layout& rows, std::size_t n_rows, std::uint32_t* leaf) const;
  void walk_copies(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const;
  void walk_wide(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const;
  bool is_row_major(const Table& table, DType type) const;

  const Tree& tree_;
  CompactNodes compact_;
  bool blocks_;  // rows are walked in contiguous blocks
};

}  // namespace spinney
