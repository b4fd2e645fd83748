// The table as 32-bit keys in the order of the values, stored twice for random cuts: nodes of few rows read them row by
// row, nodes of many rows column by column.
//
// A key is derived from the value as a 32-bit float. If that loses digits, different values may share a key, and the
// column itself is read. Missing values have the largest key. The key of a category is its code.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "data/column.h"

namespace spinney {

struct RowKeys {
  static constexpr std::uint32_t missing = UINT32_MAX;

  std::size_t n_columns = 0;            // 0: no keys
  LargeArray<std::uint32_t> keys;       // by row and column
  LargeArray<std::uint32_t> by_column;  // by column and row; empty for sparse or large tables and tables in files
  std::vector<std::uint8_t> exact;      // by column: whether a key determines the value

  static std::uint32_t key_of(float v) {  // -0 equals +0
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(v + 0.0f);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
  }
  static std::uint32_t last_at_most(double v) {  // the last key whose value is at most v
    const auto rounded = static_cast<float>(v);
    return key_of(rounded) - (static_cast<double>(rounded) > v);
  }
  static double value_of(std::uint32_t key) {  // for a column with exact keys
    return static_cast<double>(std::bit_cast<float>(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu)));
  }
};

RowKeys make_row_keys(const Table& table, int n_threads, Interrupt& interrupt);

}  // namespace spinney
