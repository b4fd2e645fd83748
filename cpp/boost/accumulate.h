// Adds rows to the histogram cells of a tile's lanes: all lanes of a row at once, or four selected lanes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "boost/kernels.h"
#include "boost/tiles.h"

namespace spinney {

// Adds one row: the code of each lane selects the cell that the gradient pair is added to.
template <std::uint32_t shift>
[[gnu::always_inline]] inline void add_narrow_row(const std::uint8_t* row, std::size_t n_lanes, Packed pair,
                                                  Packed* cell) {
  constexpr std::size_t cells_per_lane = std::size_t{1} << shift;
  for (; n_lanes >= 8; n_lanes -= 8, row += 8, cell += 8 * cells_per_lane) {
    std::uint64_t codes;
    __builtin_memcpy(&codes, row, 8);
    cell[codes & 0xff] += pair;
    cell[cells_per_lane + (codes >> 8 & 0xff)] += pair;
    cell[2 * cells_per_lane + (codes >> 16 & 0xff)] += pair;
    cell[3 * cells_per_lane + (codes >> 24 & 0xff)] += pair;
    cell[4 * cells_per_lane + (codes >> 32 & 0xff)] += pair;
    cell[5 * cells_per_lane + (codes >> 40 & 0xff)] += pair;
    cell[6 * cells_per_lane + (codes >> 48 & 0xff)] += pair;
    cell[7 * cells_per_lane + (codes >> 56)] += pair;
  }
  if (n_lanes & 4) {
    std::uint32_t codes;
    __builtin_memcpy(&codes, row, 4);
    cell[codes & 0xff] += pair;
    cell[cells_per_lane + (codes >> 8 & 0xff)] += pair;
    cell[2 * cells_per_lane + (codes >> 16 & 0xff)] += pair;
    cell[3 * cells_per_lane + (codes >> 24)] += pair;
    row += 4;
    cell += 4 * cells_per_lane;
  }
  if (n_lanes & 2) {
    cell[row[0]] += pair;
    cell[cells_per_lane + row[1]] += pair;
    row += 2;
    cell += 2 * cells_per_lane;
  }
  if (n_lanes & 1) cell[row[0]] += pair;
}

// The same for wide tiles, whose codes are cell numbers within the tile.
[[gnu::always_inline]] inline void add_wide_row(const std::uint16_t* row, std::size_t n_lanes, Packed pair,
                                                Packed* cells) {
  for (; n_lanes >= 4; n_lanes -= 4, row += 4) {
    std::uint64_t places;
    __builtin_memcpy(&places, row, 8);
    cells[places & 0xffff] += pair;
    cells[places >> 16 & 0xffff] += pair;
    cells[places >> 32 & 0xffff] += pair;
    cells[places >> 48] += pair;
  }
  for (; n_lanes > 0; --n_lanes, ++row) cells[*row] += pair;
}

// Calls add_row(codes of the row, gradient pair) for each row. Rows ahead are prefetched, because they are scattered in
// memory.
template <class Code, class AddRow>
[[gnu::always_inline]] inline void add_each(const Code* tile, std::size_t stride, const Packed* pairs, const Row* rows,
                                            std::size_t n, Tiles::Operation operation, AddRow add_row) {
  constexpr std::size_t ahead = 16;
  const int row_shift = std::countr_zero(stride);
  const auto row_at = [&](std::size_t i) { return tile + (std::size_t{rows[i]} << row_shift); };
  const Packed flipped = operation == Tiles::Operation::take ? ~Packed{0} : 0;
  const auto pair_at = [&](std::size_t i) { return (pairs[rows[i]] ^ flipped) - flipped; };
#ifdef __aarch64__
  // Pairs are read a block at a time in a separate loop, where the processor has many reads in flight: prefetching them
  // together with the codes took twice as long on a Neoverse-N1 (3.1 instead of 1.5 ns per addition for nodes of 2,500
  // of 500,000 rows).
  constexpr std::size_t block = 512;
  std::array<Packed, block> near;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = std::min(n, begin + block), end_ahead = std::min(end, n - std::min(n, ahead));
    for (std::size_t i = begin; i < end; ++i) near[i - begin] = pair_at(i);
    std::size_t i = begin;
    for (; i < end_ahead; ++i) {
      __builtin_prefetch(row_at(i + ahead));
      add_row(row_at(i), near[i - begin]);
    }
    for (; i < end; ++i) add_row(row_at(i), near[i - begin]);
  }
#else
  std::size_t i = 0;
  for (; i + ahead < n; ++i) {
    __builtin_prefetch(row_at(i + ahead));
    __builtin_prefetch(pairs + rows[i + ahead]);
    add_row(row_at(i), pair_at(i));
  }
  for (; i < n; ++i) add_row(row_at(i), pair_at(i));
#endif
}

template <std::uint32_t shift>
inline void add_narrow(const std::uint8_t* tile, std::size_t stride, std::size_t n_lanes, const Packed* pairs,
                       const Row* rows, std::size_t n, Tiles::Operation operation, Packed* cells) {
  add_each(tile, stride, pairs, rows, n, operation,
           [=](const std::uint8_t* row, Packed pair)
               __attribute__((always_inline)) { add_narrow_row<shift>(row, n_lanes, pair, cells); });
}

inline void add_wide(const std::uint16_t* tile, std::size_t stride, std::size_t n_lanes, const Packed* pairs,
                     const Row* rows, std::size_t n, Tiles::Operation operation, Packed* cells) {
  add_each(tile, stride, pairs, rows, n, operation,
           [=](const std::uint16_t* row, Packed pair)
               __attribute__((always_inline)) { add_wide_row(row, n_lanes, pair, cells); });
}

// The same for some lanes of a tile: `at` are their positions in a row, `cells` their cells. `pairs` is by position
// among the rows.
template <std::size_t n_lanes, class Code>
void add_some_lanes(const Code* tile, std::size_t stride, const std::uint32_t* at, Packed* const* cells,
                    const Packed* pairs, const Row* rows, std::size_t n) {
  const int row_shift = std::countr_zero(stride);
  std::array<const Code*, n_lanes> codes;
  std::array<Packed*, n_lanes> to;
  for (std::size_t j = 0; j < n_lanes; ++j) codes[j] = tile + at[j], to[j] = cells[j];
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = std::size_t{rows[i]} << row_shift;
    const Packed pair = pairs[i];
    for (std::size_t j = 0; j < n_lanes; ++j) to[j][codes[j][row]] += pair;
  }
}

}  // namespace spinney
