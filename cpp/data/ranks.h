// The table row by row as ranks of the values, for nodes that try few of the columns.
//
// A rank is the number of lower values in the column; the rank of missing is the number of its values. Ranks are
// bit-packed, so that a row with many columns of few values is a fraction of a cache line. Columns of two values
// without missing values are flags instead: the first 64 of them form one word per row.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "data/bins.h"
#include "data/column.h"

namespace spinney {

struct RowRanks {
  static_assert(std::endian::native == std::endian::little);  // bits of a row are read from any byte

  static constexpr std::uint32_t most_flags = 64;
  struct Place {
    std::uint32_t byte = 0, shift = 0, mask = 0;
    std::uint32_t n_values = 0;
    std::uint32_t flag = most_flags;  // bit of the row's flags that is the rank; most_flags: the rank is bit-packed
    bool is_flag() const { return flag < most_flags; }
  };
  std::size_t row_bytes = 0;  // 0: no ranks
  std::uint32_t n_flags = 0;
  LargeArray<std::uint8_t> bits;            // by row
  LargeArray<std::uint64_t> flags;          // by row, if there are any
  std::vector<Place> places;                // by column
  std::vector<std::vector<double>> values;  // by column and rank; empty: ranks are bins
};

// The ranks of a table of number columns, or of their bins if `binned` has them; empty if a column has more than
// `most_values` values or few values repeat.
RowRanks make_row_ranks(const Table& table, const std::vector<BinnedColumn>& binned, std::uint32_t most_values,
                        int n_threads, Interrupt& interrupt);

}  // namespace spinney
