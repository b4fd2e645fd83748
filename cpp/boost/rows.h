// What a tree of boosting asks of rows, wherever these are: the seam behind which they lie in memory, on the workers of a
// cluster or, one day, on a GPU.
//
// Rows have the codes of their columns, and their gradients; they are parted node by node, and add up histograms. Whoever grows
// the tree adds up what all partitions of the rows answer, which are whole numbers, and finds the splits. All that can be asked
// for at once is one batch. A node is known by a number: the root's is 0, and children follow one another.
//
// A round: `plant` draws rows and makes the roots of some trees; `partition` and `histograms` take turns until the trees are
// grown; `leaf_sums` tell the values of the leaves; `add` adds these to the scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/interrupt.h"
#include "boost/codes.h"
#include "boost/kernels.h"
#include "boost/split.h"

namespace spinney {

struct RootsRequest {
  std::uint32_t round = 0;
  std::vector<GradientSums> totals;           // by score: units follow from them
  std::uint32_t first_tree = 0, n_trees = 0;  // scores
  bool takes_all = false;                     // no partition has drawn a row
};

struct DrawnRows {  // of a round
  std::uint64_t first_row = 0, n_in_bag = 0;
  std::uint64_t n_weighted = 0, n_out_of_bag = 0;  // of these, so many have a weight and come first
};

struct NodeSplit {
  std::uint32_t node = 0;
  BoostSplit split;
  std::uint32_t left = 0;  // the number of the left child; the right one's is the next
};

struct ColumnCount {  // rows of a node by code of a column
  std::uint32_t node = 0, column = 0;
};

enum class ChildHistogram : std::uint8_t { none, left, right };  // that a split wants of its children

struct LeafSums {  // of a node's rows, in whole numbers, so that those of its children add up to them
  std::int64_t gradient = 0, hessian = 0, weight = 0;

  LeafSums& operator+=(const LeafSums& other) {
    gradient += other.gradient;
    hessian += other.hessian;
    weight += other.weight;
    return *this;
  }
};

struct LeafAdded {
  std::uint32_t node = 0;
  double value = 0;
};

// Takes the sum of a histogram, and its cells column by column: see PlainCells.
using CellSink = FunctionRef<void(std::span<const Packed>)>;

class Rows {
 public:
  virtual ~Rows() = default;

  // For each tree the sum of the root's pairs, then its cells.
  virtual DrawnRows plant(const RootsRequest& roots, CellSink sink, Interrupt& interrupt) = 0;

  // Parts the rows of nodes; returns how many went left. A node that is parted again takes its new children.
  virtual std::vector<std::uint64_t> partition(std::uint32_t tree, std::span<const NodeSplit> splits) = 0;

  virtual void histograms(std::uint32_t tree, std::span<const std::uint32_t> nodes, CellSink sink,
                          Interrupt& interrupt) = 0;
  virtual std::vector<Row> counts(std::uint32_t tree, ColumnCount of) = 0;

  virtual std::vector<LeafSums> leaf_sums(std::uint32_t tree, std::span<const std::uint32_t> nodes) = 0;

  // To the scores of the rows that the tree was grown on.
  virtual void add(std::uint32_t tree, std::span<const LeafAdded> leaves) = 0;
};

// A histogram as rows give it: the cells of the columns that the tree may use, column by column.
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
