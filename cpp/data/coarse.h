// Coarse codes: an index of the approximate values of a number column.
//
// An exact search need not sort rows that cannot hold the best cut. Codes are a monotone function of the values with
// 255 steps of about equal size; sums over a step bound the score of any cut inside it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "data/column.h"
#include "data/presort.h"

namespace spinney {

inline constexpr std::size_t n_coarse = 255;  // codes 0 … 254
inline constexpr std::uint8_t coarse_missing = 255;

// By column and row, for the given rows (ascending); 0 for other rows and in category columns. The steps come from a
// fixed sample of these rows.
std::vector<std::uint8_t> make_coarse_codes(const Table& table, std::span<const Row> rows, int n_threads,
                                            Interrupt& interrupt);

// The same for sorted columns that consecutive trees are grown on: a step is a range of the sorted rows. Codes of eight
// columns are interleaved, so that a row is read once for all of them.
struct CoarseTiles {
  static constexpr std::size_t lanes = 8;
  static constexpr std::uint32_t none = UINT32_MAX;

  std::size_t n_rows = 0;              // 0: no codes
  std::vector<std::uint32_t> lane_of;  // by column; none: a category column
  std::vector<std::uint32_t> columns;  // by lane
  LargeArray<std::uint8_t> codes;      // tile after tile, one byte per lane
  using Begins = std::array<std::uint32_t, n_coarse + 2>;
  std::vector<Begins> begin;  // by lane: first sorted row of each step, then of the missing rows, and the end

  CoarseTiles() = default;
  CoarseTiles(const Table& table, const Presorted& sorted, int n_threads, Interrupt& interrupt);

  std::size_t n_tiles() const { return (columns.size() + lanes - 1) / lanes; }
  const std::uint8_t* tile(std::size_t t) const { return codes.data() + t * n_rows * lanes; }
  // The codes of a lane, with a stride of `lanes` bytes.
  const std::uint8_t* lane(std::size_t l) const { return tile(l / lanes) + l % lanes; }

 private:
  void fill(std::size_t lane, const Presorted& sorted);
};

}  // namespace spinney
