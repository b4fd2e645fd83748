// One pass over codes in a file for several nodes: partitions their rows and sums those of a child.
//
// The file is read in row order, a block at a time, into a buffer that stays in a core's cache; every node processes
// its rows of the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "boost/codes.h"
#include "boost/histograms.h"
#include "boost/row_partitioner.h"
#include "boost/rows.h"
#include "boost/split.h"
#include "boost/tiles.h"

namespace spinney {

struct SweptNode {
  Row* rows = nullptr;  // ascending; partitioned afterwards, each side ascending
  std::size_t n = 0;
  const BoostSplit* split = nullptr;            // null: all rows are summed
  ChildHistogram child = ChildHistogram::none;  // the child whose rows are summed
  Packed* histogram = nullptr;                  // of these rows; the caller adds the sums of crossed lanes
  std::size_t n_left = 0;                       // output
};

class Sweeper {
 public:
  Sweeper(const Coding& coding, const Codes& codes, const Tiles& tiles, int n_threads)
      : coding_(coding), codes_(codes), tiles_(tiles), buffers_(static_cast<std::size_t>(n_threads)) {}

  // The number of nodes per pass: each thread has histograms of all of them.
  std::size_t most_nodes() const;

  void sweep(std::span<SweptNode> nodes, const std::vector<std::uint32_t>& tiles_in_use, const Packed* pairs,
             RowPartitioner& partitioner, int n_threads, Interrupt& interrupt);

 private:
  struct Buffer {  // of a worker
    LargeArray<std::uint8_t> tiles;
    std::vector<std::uint8_t> columns;
    std::vector<std::size_t> block;  // by column: the block that was read last, plus one
    std::vector<Packed> sums;        // node by node
    std::vector<std::uint8_t> used;  // by node: whether it has sums
  };
  class Pass;

  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  std::vector<Buffer> buffers_;  // by worker
};

}  // namespace spinney
