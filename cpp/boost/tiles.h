// Codes row by row, as histograms read them.
//
// A lane is one code of a row: that of a column, or of several columns that are hardly ever off their common code, and
// never two of them in the same row (such as the columns of a one-hot code). What a lane's histogram does not hold, the
// rows at the common code, is what is missing from the node's sum. Lanes lie side by side in tiles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "boost/codes.h"
#include "boost/kernels.h"

namespace spinney {

class Tiles {
 public:
  Tiles(const Coding& coding, const Codes& codes, int n_threads, Interrupt& interrupt);

  std::size_t n_cells() const { return n_cells_; }  // of a histogram

  std::uint32_t n_tiles() const { return static_cast<std::uint32_t>(tiles_.size()); }
  std::span<const std::uint32_t> lanes(std::uint32_t tile) const { return tiles_[tile].lanes; }
  std::span<const std::uint32_t> columns(std::uint32_t lane) const { return lanes_[lane].columns; }

  struct Cells {
    std::size_t first, end;
  };
  Cells cells_of_tile(std::uint32_t tile) const;
  Cells cells_of_lane(std::uint32_t lane) const;

  // Adds rows to a tile's cells of a histogram.
  void add_rows(std::uint32_t tile, const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const;

  // The cells of a column, one a code. `total` is the node's sum; `room` may be used to put them together.
  const Packed* cells(std::uint32_t column, const Packed* histogram, Packed total, std::vector<Packed>& room) const;

 private:
  struct Lane {
    std::vector<std::uint32_t> columns;
    std::uint32_t n_codes = 1;
    bool is_wide = false;
    std::size_t first_cell = 0;
  };
  struct Place {  // of a column
    std::uint32_t lane = 0;
    bool is_shared = false;
    std::uint32_t first = 0, common = 0;  // shared: codes but the common one are counted from `first`
  };
  struct Tile {
    bool is_wide = false;
    std::uint32_t shift = 0;                 // room: 2^shift cells a lane
    std::size_t first_cell = 0, stride = 0;  // stride: bytes (two where wide) a row, a power of two
    std::vector<std::uint32_t> lanes;
    LargeArray<std::uint8_t> bytes;
  };
  struct Sparse;  // a column that may share a lane

  std::vector<Sparse> sparse_columns(const Codes& codes, int n_threads) const;
  void share_lanes(const Codes& codes, int n_threads);
  void arrange();
  void fill(const Codes& codes, int n_threads, Interrupt& interrupt);
  template <class Code>
  void fill_lane(const Codes& codes, const Lane& lane, std::size_t begin, std::size_t end, Code* out,
                 std::size_t stride) const;

  const Coding& coding_;
  std::vector<Lane> lanes_;
  std::vector<Place> places_;  // by column
  std::vector<Tile> tiles_;
  std::size_t n_cells_ = 0;
};

}  // namespace spinney
