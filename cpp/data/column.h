// Views of the caller's columns. Nothing here owns or copies data; the bindings keep the owners alive.
//
//   number    a strided array of one arithmetic type; NaN is missing, and so is a row with a non-zero mask byte
//   category  int32 codes 0 … n_categories - 1; -1 is missing; n_categories stands for "some other value"
//   sparse    a number column that is 0 except at `rows`
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/spill.h"
#include "base/types.h"

namespace spinney {

enum class DType : std::uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

constexpr std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
      return 1;
    case DType::i16:
    case DType::u16:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    default:
      return 8;
  }
}

struct Column {
  const std::byte* data = nullptr;
  std::ptrdiff_t stride = 0;  // bytes from one row to the next
  DType dtype = DType::f64;
  const std::uint8_t* mask = nullptr;  // one byte per row, non-zero: missing; may be null
  std::ptrdiff_t mask_stride = 0;
  std::uint32_t n_categories = 0;  // 0: a number column
  // pooled categories: their rows have the code of the first of them; ascending; null: none
  const std::vector<std::uint32_t>* pooled = nullptr;
  const std::int32_t* sparse_rows = nullptr;  // ascending; null: dense
  std::size_t n_sparse = 0;

  bool is_category() const { return n_categories > 0; }
  bool is_sparse() const { return sparse_rows != nullptr; }
};

struct Table {
  std::size_t n_rows = 0;
  std::vector<Column> columns;
  std::shared_ptr<Spill> spill = nullptr;  // where the columns, and data derived from them, are stored; null: in memory
  std::size_t n_columns() const { return columns.size(); }

  // Announces that `n` rows of all columns are about to be read.
  void touch(std::size_t n) const {
    if (!spill) return;
    std::size_t n_bytes = 0;
    for (const Column& c : columns) n_bytes += bytes_of(c.dtype) + (c.mask != nullptr);
    spill->touch(n * n_bytes);
  }

  // Announces that some rows (ascending) of some columns are about to be read, `n_bytes` bytes per value.
  void touch(std::span<const Row> rows, std::size_t n_columns, std::size_t n_bytes = 8) const {
    if (spill && !rows.empty())
      spill->touch_some(n_columns * rows.size(), n_bytes * n_columns * (std::size_t{rows.back()} - rows.front() + 1));
  }
};

}  // namespace spinney
