// Node histograms and the best splits found in them.
//
// A tile is a section of every histogram that fits the cache of a core. Several threads divide nodes by tiles if there
// are enough, else by rows; a tile is filled, subtracted from the parent's and searched in one pass. Listed columns
// have a separate histogram in nodes with many entries, and are searched from the rows in others. Where a node with few
// rows considers few columns, only the cells of these are summed from its rows, and the node has no histogram.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/split.h"
#include "boost/tiles.h"

namespace spinney {

using Histogram = std::unique_ptr<Packed[]>;

// Buffers that outlive a tree. A worker gets the buffer it returned last, which may still be in its cache.
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

// The part of a node that the split search needs.
struct SearchedNode {
  Packed* histogram = nullptr;
  Packed* listed = nullptr;   // histogram of the listed columns; null: they are searched from the rows
  const Row* rows = nullptr;  // terms.n_rows of them
  NodeTerms terms;
  std::vector<std::uint8_t> columns = {};  // by column: whether it may be split on; empty: the node is not searched
  BoostSplit best = {};

  void consider(BoostSplit split);  // the first column wins a tie
};

// A node that has been split: `large` has the histograms of the parent. `small` has one of the listed columns only if
// `large` has one.
struct DividedNode {
  SearchedNode small, large;
  bool is_filled = false;  // `small` already has its histogram; no column is listed
};

// Scratch memory of a tree's threads besides the histograms.
struct HistogramScratch {
  HistogramScratch(std::size_t n_cells, int n_threads);
  const std::size_t n_cells;
  std::vector<SplitScratch> search;  // by worker
  HistogramPool parts;               // sums of chunks of rows
  struct Drawn {
    Histogram cells;
    std::vector<Packed> pairs;      // by position among a node's rows
    std::vector<std::uint32_t> at;  // lanes, by position in a tile
  };
  std::vector<Drawn> drawn;  // by worker: cells of the columns a node considers
};

class HistogramSearch {
 public:
  // `in_use`: the columns that any node of the tree may be split on.
  HistogramSearch(const Tiles& tiles, const SplitSearch& search, const std::vector<std::uint8_t>& in_use,
                  const Packed* pairs, HistogramScratch& scratch, Interrupt& interrupt);

  // Computes the root's histogram unless `known` has it (else null), its sums and, if its columns are not empty, its
  // best split.
  void init_root(SearchedNode& root, const Packed* known, int n_threads) const;

  // Sums the histograms of both children and searches them, by one thread or for several nodes by all.
  void divide(DividedNode& node, int worker) const;
  void divide(std::span<DividedNode> nodes, int n_threads) const;

  // Returns whether it is faster to sum only the considered columns of each node, for trees of n_rows that consider
  // this fraction.
  bool are_few(std::size_t n_rows, double fraction) const;

  // The same as `init_root` and, for one child, `divide`, for nodes without histograms.
  void init_drawn_root(SearchedNode& root) const;
  void search_drawn(SearchedNode& node, int worker) const;
  void fill_drawn(SearchedNode& node, int worker) const;  // valid until the worker's next node

  const std::vector<std::uint32_t>& tiles_in_use() const { return tiles_in_use_; }

  // The best split of a node that has its histograms. Row counts by code are known for some columns; empty: unknown.
  void search_counted(SearchedNode& node, const std::vector<std::vector<Row>>& counts, int worker) const;

  // The approximate time one thread needs to divide a node of n_rows, n_small of them in its smaller child.
  double estimated_ns(double n_rows, double n_small) const;

  // Returns whether several threads should work on a node with a histogram of listed columns.
  bool splits_listed_work() const { return tiles_.listed().n_cells() >= std::size_t{1} << 15; }

  // Returns whether a node has enough tiles for the threads: with many threads the sums of each thread's rows, which are
  // as large as the histogram, would cost more than the threads that wait for the last tiles.
  bool splits_tile_work(int n_threads) const {
    const auto threads = static_cast<std::size_t>(n_threads);
    return tiles_in_use_.size() >= std::min(4 * threads, threads + 16);
  }

 private:
  Packed read_pairs(const SearchedNode& node, int worker) const;
  template <class OfLane>
  void for_each_drawn(SearchedNode& node, int worker, OfLane&& of_lane) const;
  void fill_tile(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n) const;
  void add_rows(std::uint32_t tile, Packed* histogram, const Row* rows, std::size_t n,
                Tiles::Operation operation) const;
  void subtract_lane(std::uint32_t lane, Packed* large, const Packed* small) const;
  struct FilledNode {
    Packed* histogram;
    const Row* rows;
    std::size_t n_rows;
    std::vector<Histogram> parts = {};  // output: sums that `histogram` lacks
  };
  void fill(std::span<FilledNode> nodes, int n_threads) const;
  void add_parts(std::uint32_t lane, const FilledNode& node) const;
  void give_back(std::span<FilledNode> nodes) const;
  template <class Body>
  void divide_sections(std::span<DividedNode> nodes, std::size_t n_sections, int n_threads, Body&& body) const;
  void divide_rows(std::span<DividedNode> nodes, int n_threads) const;
  void divide_tile(std::uint32_t tile, SearchedNode& small, SearchedNode& large, SplitScratch& scratch) const;
  void divide_lane(std::uint32_t lane, SearchedNode& small, SearchedNode& large, SplitScratch& scratch) const;
  void search_lane(std::uint32_t lane, SearchedNode& node, SplitScratch& scratch) const;
  using Counts = std::vector<std::vector<Row>>;
  void search_column(std::uint32_t column, const Packed* cells, SearchedNode& node, SplitScratch& scratch,
                     const Counts* counts = nullptr) const;
  void search_listed(std::size_t begin, std::size_t end, SearchedNode& node, SplitScratch& scratch,
                     const Counts* counts = nullptr) const;
  void fill_listed(SearchedNode& node) const;
  std::size_t ranges_of_listed(const SearchedNode& node, int n_threads) const;
  void init_listed_root(SearchedNode& root, int n_threads) const;
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
