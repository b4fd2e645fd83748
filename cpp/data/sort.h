// Sorting the rows of a node by one column.
//
//   entry   a 64-bit word: code in the high half, row in the low half. Sorted entries are sorted by value, then by row.
//   code    order-preserving within one call; equal values have equal codes; `missing_code` is the largest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/column.h"

namespace spinney {

using Entry = std::uint64_t;
inline constexpr std::uint32_t missing_code = UINT32_MAX;

inline std::uint32_t code_of(Entry e) { return static_cast<std::uint32_t>(e >> 32); }
inline std::uint32_t row_of(Entry e) { return static_cast<std::uint32_t>(e); }
inline Entry entry_of(std::uint32_t code, std::uint32_t row) { return Entry{code} << 32 | row; }

class ColumnSorter {
 public:
  // The entries of `rows`, sorted. With `local`, an entry carries the position in `rows` instead of the row. The result
  // is valid until the next call. Category columns keep their category codes.
  std::span<const Entry> sort(const Column& column, std::span<const Row> rows, bool local);

  // The same in two steps, for columns of plain 32-bit floats and positions of rows: in a row-major table, keys of some
  // rows are best read column after column while these rows are in cache.
  static bool has_plain_floats(const Column& column) {
    return column.dtype == DType::f32 && column.mask == nullptr && !column.is_sparse() && !column.is_category();
  }
  static void read_keys(const Column& column, std::span<const Row> rows, std::uint32_t* keys);
  std::span<const Entry> sort_keys(std::span<const std::uint32_t> keys);

  // The same for values, by their position.
  std::span<const Entry> sort(std::span<const double> values);

  // For external codes: fill entries() in row order, then sort them.
  std::vector<Entry>& entries() { return entries_; }
  std::span<const Entry> sort_entries();

 private:
  void fill_keys32(const Column& column, std::span<const Row> rows, bool local);
  void set_key64(std::size_t i, double v);
  void sort_keys64(const Row* rows);
  void radix_sort();

  std::vector<Entry> entries_, spare_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace spinney
