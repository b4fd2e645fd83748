// One tree of boosting, grown leaf by leaf (or level by level) from histograms of gradient pairs.
//
// Sums of packed pairs are whole numbers, so they are the same in any order: histograms are filled by many threads, and a
// child's is its parent's less its sibling's. The leaf with the largest gain is split next; leaves that will soon have
// their turn are split ahead of it, several at a time, which changes nothing but the time it takes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/interrupt.h"
#include "boost/codes.h"
#include "boost/split.h"
#include "tree/tree.h"

namespace spinney {

// Buffers that outlive a tree.
class HistogramPool {
 public:
  explicit HistogramPool(std::size_t n_cells) : n_cells_(n_cells) {}
  std::unique_ptr<Packed[]> take();
  void give_back(std::unique_ptr<Packed[]> histogram);
  std::size_t n_cells() const { return n_cells_; }

 private:
  std::size_t n_cells_;
  std::vector<std::unique_ptr<Packed[]>> free_;
};

// A leaf of a grown tree, and the range of the row index that holds its rows.
struct GrownLeaf {
  std::uint32_t node;
  std::size_t begin, end;
  Bounds bounds;
};

struct BoostedTree {
  Tree tree;                       // values of leaves are left to the caller
  std::vector<std::uint32_t> cut;  // by node: the last code that goes left (number splits)
  std::vector<GrownLeaf> leaves;
};

class BoostGrower {
 public:
  BoostGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, const BoostParams& params);
  ~BoostGrower();

  // `rows` are the rows to grow on, ascending; they are reordered leaf by leaf. `pairs` is by row of the table.
  // `key` stands for (seed, round, class).
  BoostedTree grow(std::vector<Row>& rows, const Packed* pairs, Units units, std::uint64_t key, Interrupt& interrupt);

 private:
  struct Leaf;
  class Growing;

  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  const BoostParams& params_;
  HistogramPool pool_;
  std::vector<SplitScratch> scratch_;             // by thread
  std::vector<std::vector<Row>> spare_;           // by thread
  std::vector<std::unique_ptr<Packed[]>> parts_;  // by thread
};

}  // namespace spinney
