// Codes row by row, in the layout that histograms read.
//
// A lane is one code of a row, which is added to one cell of a histogram. It is the code of one column or of several:
//   shared   sparse columns of which at most one is off its common code in any row (such as a one-hot encoding). The
//            rows at the common code are the node's sum minus the others.
//   crossed  columns with few codes; the lane has one code per combination that occurs. A column's cells are sums of
//            these.
// Listed columns that share no lane have none: see listed.h.
// Lanes are grouped in tiles. A tile is narrow, with one byte and the same number of histogram cells per lane; or wide,
// with two bytes for the cell number within the tile, so that lanes of any size can be neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "boost/codes.h"
#include "boost/crossed.h"
#include "boost/kernels.h"
#include "boost/listed.h"

namespace spinney {

class Tiles {
 public:
  Tiles(const Coding& coding, const Codes& codes, int n_threads, Interrupt& interrupt);

  std::size_t n_cells() const { return n_cells_; }  // of a histogram
  const ListedColumns& listed() const { return listed_; }
  bool has_lane(std::uint32_t column) const { return places_[column].kind != Place::Kind::listed; }

  std::uint32_t n_tiles() const { return static_cast<std::uint32_t>(tiles_.size()); }
  std::span<const std::uint32_t> lanes(std::uint32_t tile) const { return tiles_[tile].lanes; }
  std::span<const std::uint32_t> columns(std::uint32_t lane) const { return lanes_[lane].columns; }

  bool is_of_flags(std::uint32_t lane) const { return lanes_[lane].is_of_flags; }  // shared, and one cell per column

  // Tiles and lanes of the columns in use.
  void find_in_use(const std::vector<std::uint8_t>& in_use, std::vector<std::uint32_t>& tiles,
                   std::vector<std::uint32_t>& lanes) const;

  struct Cells {
    std::size_t first, end;
  };
  Cells cells_of_tile(std::uint32_t tile) const;
  Cells cells_of_lane(std::uint32_t lane) const;
  Cells cells_of_columns(std::uint32_t lane) const;  // cells that are sums of the lane's cells, if any

  // Adds rows to a tile's cells of a histogram, or subtracts them.
  enum class Operation : std::uint8_t { add, take };
  void add_rows(std::uint32_t tile, const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram,
                Operation operation = Operation::add) const;

  // The same for codes of some rows, from `first` on, that were copied to `codes`.
  void add_rows(std::uint32_t tile, const std::uint8_t* codes, std::size_t first, const Packed* pairs, const Row* rows,
                std::size_t n, Packed* histogram) const;

  // Adds rows to some lanes only, at these positions in the tile; `pairs` is by position among the rows.
  void add_lanes(std::uint32_t tile, std::span<const std::uint32_t> at, const Packed* pairs, const Row* rows,
                 std::size_t n, Packed* histogram) const;

  std::size_t bytes_a_row(std::uint32_t tile) const { return tiles_[tile].stride * (tiles_[tile].is_wide ? 2 : 1); }
  void read(std::uint32_t tile, std::size_t begin, std::size_t end, std::uint8_t* to) const;
  void fetch_ahead(std::uint32_t tile, std::size_t begin, std::size_t end) const;

  // The same for eight interleaved histograms: a cell has eight sums, and each of the n rows eight pairs.
  void add_eights(std::uint32_t tile, const Packed* pairs, const Row* rows, std::size_t n, Packed* eights) const;

  // Sets the cells of a lane's columns that are sums of its cells.
  void sum_up(std::uint32_t lane, Packed* histogram) const;

  // The cells of a column that has a lane, one per code. `total` is the node's sum; `buffer` is scratch.
  const Packed* cells(std::uint32_t column, const Packed* histogram, Packed total, std::vector<Packed>& buffer) const;

 private:
  struct Lane {
    std::vector<std::uint32_t> columns;
    std::uint32_t n_codes = 1;
    bool is_wide = false, is_of_flags = false;
    std::size_t first_cell = 0, first_column_cell = 0;
    std::optional<CrossedLane> crossed = {};
  };
  struct Place {  // of a column
    enum class Kind : std::uint8_t { nowhere, alone, shared, crossed, listed } kind = Kind::nowhere;
    std::uint32_t lane = 0;
    std::uint32_t first = 0, common = 0;  // shared: codes except the common one are counted from `first`
    std::size_t first_cell = 0;           // crossed
  };
  struct Tile {
    bool is_wide = false;
    std::uint32_t shift = 0;  // narrow: 2^shift cells per lane
    std::size_t first_cell = 0, n_cells = 0;
    std::size_t end_cell = 0;  // the columns of crossed lanes have separate cells after those of the lanes
    std::size_t stride = 0;    // bytes per row (units of two if wide), a power of two
    std::vector<std::uint32_t> lanes;
    LargeArray<std::uint8_t> bytes;
  };
  struct Sparse;  // a column that may share a lane

  std::vector<Sparse> sparse_columns(const Codes& codes, int n_threads) const;
  void share_lanes(const Codes& codes, int n_threads);
  void list_columns(const Codes& codes);
  void cross_lanes(const Codes& codes, Interrupt& interrupt);
  void add_lanes_of_one();
  std::vector<Tile> arranged(bool all_wide) const;
  void arrange();
  void touch(const Tile& tile, const Row* rows, std::size_t n) const;
  static void add(const Tile& tile, const std::uint8_t* bytes, const Packed* pairs, const Row* rows, std::size_t n,
                  Packed* histogram, Operation operation);
  template <class Code>
  void add_some(const Tile& tile, const Code* codes, std::span<const std::uint32_t> at, const Packed* pairs,
                const Row* rows, std::size_t n, Packed* histogram) const;
  void fill(const Codes& codes, int n_threads, Interrupt& interrupt);
  template <class Code>
  void fill_lane(const Codes& codes, const Lane& lane, std::size_t first_cell, std::size_t begin, std::size_t end,
                 Code* out, std::size_t stride) const;
  static void unshare(const Place& place, std::uint32_t n_codes, const Packed* lane, Packed total, Packed* cells);

  const Coding& coding_;
  const std::shared_ptr<Spill> spill_;  // where the tiles are stored; null: in memory
  std::vector<Lane> lanes_;
  std::vector<Place> places_;  // by column
  std::vector<Tile> tiles_;
  std::size_t n_cells_ = 0;
  ListedColumns listed_;
};

}  // namespace spinney
