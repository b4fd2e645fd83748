// Coarse codes: an index over a number column that tells roughly where a row's value lies.
//
// An exact search need not sort rows that cannot hold the best cut. Codes are a monotone image of the values in 255
// steps of about equal size; sums over a step bound how good any cut inside it can be.
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

// By column and row, for the rows listed (ascending); 0 for others, and in category columns. The steps come from a fixed sample
// of these rows.
std::vector<std::uint8_t> make_coarse_codes(const Table& table, std::span<const Row> rows, int n_threads,
                                            Interrupt& interrupt);

// The same of sorted columns, for trees that are grown on them one after the other: a step is a run of the sorted rows. Codes
// of eight columns lie side by side, so that a row is read once for all of them.
struct CoarseTiles {
  static constexpr std::size_t lanes = 8;
  static constexpr std::uint32_t none = UINT32_MAX;

  std::size_t n_rows = 0;              // 0: there are none
  std::vector<std::uint32_t> lane_of;  // by column; none: a category column
  std::vector<std::uint32_t> columns;  // by lane
  LargeArray<std::uint8_t> codes;      // tile after tile, a byte a lane
  using Begins = std::array<std::uint32_t, n_coarse + 2>;
  std::vector<Begins>
      begin;  // by lane: where each step begins among the sorted rows, then the missing rows, and the end

  CoarseTiles() = default;
  CoarseTiles(const Table& table, const Presorted& sorted, int n_threads, Interrupt& interrupt);

  std::size_t n_tiles() const { return (columns.size() + lanes - 1) / lanes; }
  const std::uint8_t* tile(std::size_t t) const { return codes.data() + t * n_rows * lanes; }
  // The codes of a lane, one for every `lanes` bytes.
  const std::uint8_t* lane(std::size_t l) const { return tile(l / lanes) + l % lanes; }

 private:
  void fill(std::size_t lane, const Presorted& sorted);
};

}  // namespace spinney
