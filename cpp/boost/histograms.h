// Histograms of nodes, and the best splits that they show.
//
// A tile is a part of every histogram that fits a core's own cache. Where several threads divide a node they take its tiles if
// there are enough, else its rows; a tile is filled, taken from the parent's and searched in one go. Listed columns have a
// histogram of their own in nodes of many entries, and are searched from the rows in others. Where a node of few rows looks
// at few columns, its cells of these alone are added up from its rows, and the node has no histogram.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/interrupt.h"
#include "boost/split.h"
#include "boost/tiles.h"

namespace spinney {

using Histogram = std::unique_ptr<Packed[]>;

// Buffers that outlive a tree. A worker gets the one that it gave back last, if any: that is still in its cache.
class HistogramPool {
 public:
  HistogramPool(std::size_t n_cells, int n_threads) : n_cells_(n_cells), free_(static_cast<std::size_t>(n_threads)) {}
  Histogram take(int worker);
  void give_back(Histogram histogram, int worker);

 private:
  const std::size_t n_cells_;
  std::mutex mutex_;
  std::vector<std::vector<Histogram>> free_;  // by worker
};

// A node as the search sees it.
struct SearchedNode {
  Packed* histogram = nullptr;
  Packed* listed = nullptr;   // of the listed columns; null: these are searched from the rows
  const Row* rows = nullptr;  // terms.n_rows of them
  NodeTerms terms;
  std::vector<std::uint8_t> columns = {};  // by column: may it be split on? Empty: the node is not searched
  BoostSplit best = {};

  void consider(BoostSplit split);  // of equal splits that on the first column
};

// What the threads of a tree need besides the histograms.
struct HistogramScratch {
  HistogramScratch(std::size_t n_cells, int n_threads);
  const std::size_t n_cells;
  std::vector<SplitScratch> search;  // by worker
  std::vector<Histogram> parts;      // by worker: sums of the rows that it took
  struct Drawn {
    Histogram cells;
    std::vector<Packed> pairs;      // by place among a node's rows
    std::vector<std::uint32_t> at;  // lanes, by place in a tile
  };
  std::vector<Drawn> drawn;  // by worker: of the columns that a node looks at
};

class HistogramSearch {
 public:
  // `in_use`: which columns any node of the tree may be split on.
  HistogramSearch(const Tiles& tiles, const SplitSearch& search, const std::vector<std::uint8_t>& in_use,
                  const Packed* pairs, HistogramScratch& scratch, Interrupt& interrupt);

  // The histogram of the root, unless it is `known` (else null), its sums and, if its columns are not empty, its best split.
  void plant(SearchedNode& root, const Packed* known, int n_threads) const;

  // `large` comes with the histograms of the parent. `small` has one of the listed columns only if `large` has.
  void divide(SearchedNode& small, SearchedNode& large, int n_threads, int worker) const;

  // The same where `small` has its histogram; no column is listed.
  void divide_filled(SearchedNode& small, SearchedNode& large, int n_threads) const {
    add_and_divide(small, large, {}, n_threads);
  }

  // Is it less work to add up the columns of each node alone, of trees of n_rows that look at a fraction of them?
  bool are_few(std::size_t n_rows, double fraction) const;

  // The same as `plant` and, for one of the children, `divide`, for nodes that have no histograms.
  void plant_drawn(SearchedNode& root) const;
  void search_drawn(SearchedNode& node, int worker) const;
  void fill_drawn(SearchedNode& node, int worker) const;  // until the worker's next node

  const std::vector<std::uint32_t>& tiles_in_use() const { return tiles_in_use_; }

  // The best split of a node that has its histograms. Rows by code are known of some columns; empty: not of this one.
  void search_counted(SearchedNode& node, const std::vector<std::vector<Row>>& counts, int worker) const;

  // How long one thread takes to divide a node of n_rows, n_small in its smaller child, roughly.
  double estimated_ns(double n_rows, double n_small) const;

  // Is a node that has a histogram of listed columns work for several threads?
  bool shares_listed() const { return tiles_.listed().n_cells() >= std::size_t{1} << 15; }

  // Does a node have tiles enough for the threads?
  bool shares_tiles(int n_threads) const { return tiles_in_use_.size() >= 4 * static_cast<std::size_t>(n_threads); }

 private:
  Packed read_pairs(const SearchedNode& node, int worker) const;
  template <class OfLane>
  void for_each_drawn(SearchedNode& node, int worker, OfLane&& of_lane) const;
  void fill_tile(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n) const;
  void add_rows(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n, Tiles::Way way) const;
  void subtract_lane(std::uint32_t lane, Packed* large, const Packed* small) const;
  std::vector<std::uint8_t> fill_parts(Packed* histogram, const Row* rows, std::size_t n, int n_threads) const;
  void add_parts(std::uint32_t lane, Packed* histogram, const std::vector<std::uint8_t>& used) const;
  void divide_tiles(SearchedNode& small, SearchedNode& large, int n_threads) const;
  void divide_rows(SearchedNode& small, SearchedNode& large, int n_threads) const;
  void add_and_divide(SearchedNode& small, SearchedNode& large, const std::vector<std::uint8_t>& used,
                      int n_threads) const;
  void divide_tile(std::uint32_t tile, SearchedNode& small, SearchedNode& large, SplitScratch& scratch) const;
  Packed sum_of_lane(std::uint32_t lane, const Packed* histogram, const std::vector<std::uint8_t>& used) const;
  void search_lane(std::uint32_t lane, SearchedNode& node, SplitScratch& scratch) const;
  using Counts = std::vector<std::vector<Row>>;
  void search_column(std::uint32_t column, const Packed* cells, SearchedNode& node, SplitScratch& scratch,
                     const Counts* counts = nullptr) const;
  void search_listed(std::size_t begin, std::size_t end, SearchedNode& node, SplitScratch& scratch,
                     const Counts* counts = nullptr) const;
  void fill_listed(SearchedNode& node) const;
  std::size_t pieces_of_listed(const SearchedNode& node, int n_threads) const;
  void plant_listed(SearchedNode& root, int n_threads) const;
  void divide_listed(SearchedNode& small, SearchedNode& large, int n_threads, int worker) const;
  template <class Body>
  void for_each_lane(int n_threads, Body&& body) const;

  const Tiles& tiles_;
  const SplitSearch& search_;
  const Packed* pairs_;
  HistogramScratch& scratch_;
  Interrupt& interrupt_;
  std::vector<std::uint32_t> tiles_in_use_, lanes_in_use_;
};

}  // namespace spinney
