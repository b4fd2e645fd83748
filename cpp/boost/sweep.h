// One pass over codes that lie in a file, for several nodes at once: their rows are parted, and those of a child are added up.
//
// A file is read in the order of its rows, some of them at a time, into a buffer that stays in a core's cache: every node
// takes the rows that it has among these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "boost/codes.h"
#include "boost/histograms.h"
#include "boost/part.h"
#include "boost/rows.h"
#include "boost/split.h"
#include "boost/tiles.h"

namespace spinney {

struct SweptNode {
  Row* rows = nullptr;  // ascending; parted afterwards, each side ascending
  std::size_t n = 0;
  const BoostSplit* split = nullptr;            // null: all rows are added up
  ChildHistogram child = ChildHistogram::none;  // whose rows are
  Packed* histogram = nullptr;                  // of these; sums of crossed lanes are left to others
  std::size_t n_left = 0;                       // is set
};

class Sweeper {
 public:
  Sweeper(const Coding& coding, const Codes& codes, const Tiles& tiles, int n_threads)
      : coding_(coding), codes_(codes), tiles_(tiles), buffers_(static_cast<std::size_t>(n_threads)) {}

  // How many nodes a pass takes: each thread has histograms of them all.
  std::size_t most_nodes() const;

  void sweep(std::span<SweptNode> nodes, const std::vector<std::uint32_t>& tiles_in_use, const Packed* pairs,
             RowParter& parter, int n_threads, Interrupt& interrupt);

 private:
  struct Buffer {  // of a worker
    LargeArray<std::uint8_t> tiles;
    std::vector<std::uint8_t> columns;
    std::vector<std::size_t> block;  // by column: the block that was read last, and one
    std::vector<Packed> sums;        // node by node
    std::vector<std::uint8_t> used;  // by node: are there any?
  };
  class Pass;

  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  std::vector<Buffer> buffers_;  // by worker
};

}  // namespace spinney
