// Requests to the rows of other processes, as bytes: the calls of boost/rows.h by node number.
//
// The root is node 0, and siblings have consecutive numbers. Partitions answer in the order of the requests.
#pragma once

#include <cstdint>
#include <vector>

#include "base/message.h"
#include "boost/codes.h"
#include "boost/kernels.h"
#include "boost/split.h"

namespace spinney {

enum class Request : std::uint8_t {
  gradients,     // at the current scores: gradient sums and losses, chunk by chunk
  init_root,     // draws rows and starts trees: DrawnRows, then the sum and the cells of each root
  split,         // batches of trees: numbers of left rows, histograms; then sums of leaves
  leaf_sums,     // of nodes
  add,           // finished trees, for training and validation rows
  out_of_bag,    // targets, weights and scores of some out-of-bag rows
  held_scores,   // scores of the validation set
  save_scores,   // no answer: saves the current scores as the best so far
  saved_scores,  // the scores saved last
};

inline MessageWriter message_of(Request kind) {
  MessageWriter to;
  to.put(static_cast<std::uint8_t>(kind));
  return to;
}

struct RootsRequest {
  std::uint32_t round = 0;
  std::vector<GradientSums> totals;           // by score: they determine the units
  std::uint32_t first_tree = 0, n_trees = 0;  // scores
  bool takes_all = false;                     // no partition has drawn a row, so that all are used
};

struct DrawnRows {  // the rows of a round
  std::uint64_t first_row = 0, n_in_bag = 0;
  std::uint64_t n_weighted = 0, n_out_of_bag = 0;  // `n_weighted` rows have a positive weight and come first
};

struct NodeSplit {
  std::uint32_t node = 0;
  BoostSplit split;
  std::uint32_t left = 0;  // number of the left child; a node that is split again gets new children
};

struct NodeHistogram {  // of pairs in the columns of the tree, or row counts by code of one column
  static constexpr std::uint32_t all_columns = UINT32_MAX;
  std::uint32_t node = 0, counted_column = all_columns;
};

struct RowBatch {  // answered by the numbers of left rows, then the histograms
  std::uint32_t tree = 0;
  std::vector<NodeSplit> splits = {};
  std::vector<NodeHistogram> histograms = {};

  bool empty() const { return splits.empty() && histograms.empty(); }
};

struct LeafSums {  // of a node's rows, as integers, so that the sums of its children add up to them
  std::int64_t gradient = 0, hessian = 0, weight = 0;

  LeafSums& operator+=(const LeafSums& other) {
    gradient += other.gradient;
    hessian += other.hessian;
    weight += other.weight;
    return *this;
  }
};

void put_batch(MessageWriter& to, const RowBatch& batch);
RowBatch get_batch(MessageReader& from);
void put_roots(MessageWriter& to, const RootsRequest& roots);
RootsRequest get_roots(MessageReader& from);

// A histogram as a message: the cells of the columns of the tree, column by column.
class PlainCells {
 public:
  PlainCells(const Coding& coding, const std::vector<std::uint8_t>& in_use) : first_(coding.columns.size(), none) {
    for (std::uint32_t f = 0; f < coding.columns.size(); ++f) {
      if (!in_use[f] || coding.columns[f].n_codes < 2) continue;
      columns_.push_back(f);
      first_[f] = n_cells_;
      n_cells_ += coding.columns[f].n_codes;
    }
  }
  std::size_t n_cells() const { return n_cells_; }
  const std::vector<std::uint32_t>& columns() const { return columns_; }
  std::size_t first(std::uint32_t column) const { return first_[column]; }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t n_cells_ = 0;
  std::vector<std::uint32_t> columns_;
  std::vector<std::size_t> first_;
};

}  // namespace spinney
