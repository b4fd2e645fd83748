// The rows of every column in sorted order, computed once for all trees of a forest.
//
// An entry is a row, with the top bit set if its value differs from that of the previous entry; missing values come
// last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/sort.h"

namespace spinney {

struct Presorted {
  static constexpr std::uint32_t new_value = 0x80000000u;

  std::size_t n_rows = 0;                // 0: not sorted
  std::vector<std::uint32_t> entries;    // n_rows per column
  std::vector<std::uint32_t> n_present;  // by column

  std::span<const std::uint32_t> column(std::size_t f) const { return {entries.data() + f * n_rows, n_rows}; }

  // Copies those of entries begin … end - 1 whose rows are marked with 1 in `in_node` and returns their number. The
  // first entry starts a new value. Every entry is written and retained if its row is in the node, which avoids a
  // branch. `to` has space for one more entry.
  std::size_t take(std::size_t f, std::size_t begin, std::size_t end, const std::uint8_t* in_node,
                   std::uint32_t* out) const {
    const std::uint32_t* all = entries.data() + f * n_rows;
    std::size_t n = 0;
    std::uint32_t is_new = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t row = all[i] & ~new_value, here = in_node[row];
      is_new |= all[i] & new_value;
      out[n] = row | is_new;
      is_new &= here - 1;
      n += here;
    }
    return n;
  }

  // Converts the sorted entries of one column.
  void fill(std::size_t f, std::span<const Entry> sorted) {
    std::uint32_t* out = entries.data() + f * n_rows;
    std::uint32_t present = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const bool is_new = i == 0 || code_of(sorted[i]) != code_of(sorted[i - 1]);
      out[i] = row_of(sorted[i]) | (is_new ? new_value : 0);
      present += code_of(sorted[i]) != missing_code;
    }
    n_present[f] = present;
  }
};

}  // namespace spinney
