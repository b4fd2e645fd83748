// One tree of boosting, grown leaf by leaf (or level by level, all nodes of a level by one cut if need be) from histograms
// of gradient pairs.
//
// Sums of packed pairs are whole numbers, so they are the same in any order: histograms are filled by many threads, and a
// child's is its parent's less its sibling's. The leaf with the largest gain is split next. A large leaf is split by all
// threads together; while leaves are small each thread splits one, those whose turn will come soon ahead of it, which
// changes nothing but the time it takes. Of codes that lie in a file all leaves whose turn may come are split in one pass
// over it: to read the file takes longer than to split some of them in vain.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "boost/codes.h"
#include "boost/histograms.h"
#include "boost/part.h"
#include "boost/split.h"
#include "boost/sweep.h"
#include "tree/tree.h"

namespace spinney {

// A leaf of a grown tree, and the range of the row index that holds its rows, in ascending order.
struct GrownLeaf {
  std::uint32_t node;
  std::size_t begin, end;
  Bounds bounds;
  std::uint32_t name = 0;  // of its rows, where these are elsewhere
};

struct BoostedTree {
  Tree tree;                       // values of leaves are left to the caller
  std::vector<std::uint32_t> cut;  // by node: the last code that goes left (number splits)
  std::vector<GrownLeaf> leaves;
};

// Writes a split, with its threshold or set of categories, into a node of a tree.
void set_split(Tree& tree, std::size_t at, const Coding& coding, const BoostSplit& split, bool left_heavier);

class BoostGrower {
 public:
  BoostGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, int n_threads);

  // `rows` are the rows to grow on, ascending; they are reordered leaf by leaf. `pairs` is by row of the table.
  // `key` stands for (seed, round, class). `root` is the histogram of all rows, if it is known, else null.
  BoostedTree grow(std::vector<Row>& rows, const Packed* pairs, Units units, const BoostParams& params,
                   std::uint64_t key, const Packed* root, Interrupt& interrupt);

 private:
  class Growing;

  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  const int n_threads_;
  HistogramPool pool_, listed_pool_;
  HistogramScratch scratch_;
  RowParter parter_;
  Sweeper sweeper_;
};

}  // namespace spinney
