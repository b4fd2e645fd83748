// The rows of every column in order, once for all trees of a forest.
//
// An entry is a row, with the top bit set where the value differs from that of the entry before; rows without a value
// come last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/sort.h"

namespace spinney {

struct Presorted {
  static constexpr std::uint32_t new_value = 0x80000000u;

  std::size_t n_rows = 0;                // 0: there is none
  std::vector<std::uint32_t> entries;    // n_rows per column
  std::vector<std::uint32_t> n_present;  // by column

  std::span<const std::uint32_t> column(std::size_t f) const { return {entries.data() + f * n_rows, n_rows}; }

  // From the sorted entries of one column.
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
