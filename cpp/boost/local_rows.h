// Rows in memory, or with codes in a file, behind the calls of boost/rows.h; leaves have one value.
//
// Sums of packed pairs are integers and do not depend on the order: many threads fill histograms, and a child's
// histogram is its parent's minus its sibling's. If the codes are in a file, all leaves of a batch are split in one
// pass over it, because reading the file takes longer than a few splits that turn out useless.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "boost/boosted_tree.h"
#include "boost/coded_table.h"
#include "boost/histograms.h"
#include "boost/row_partitioner.h"
#include "boost/sweep.h"

namespace spinney {

// Memory that consecutive trees reuse.
struct LocalMemory {
  LocalMemory(const CodedTable& coded, int threads)
      : table(coded),
        n_threads(threads),
        pool(coded.tiles.n_cells(), threads),
        listed_pool(coded.tiles.listed().n_cells(), threads),
        scratch(coded.tiles.n_cells(), threads),
        partitioner(coded.coding, coded.codes, threads),
        sweeper(coded.coding, coded.codes, coded.tiles, threads) {}

  const CodedTable& table;
  const int n_threads;
  HistogramPool pool, listed_pool;
  HistogramScratch scratch;
  RowPartitioner partitioner;
  Sweeper sweeper;
  double least_gain = 0;  // of the previous tree
};

// Grows a tree on `rows` (ascending), which are reordered leaf by leaf. `pairs` is by row of the table, `key` depends
// on (seed, round, class). `root` is the histogram of all rows if it is known, else null.
BoostedTree grow_boosted_tree(LocalMemory& memory, const BoostParams& params, std::uint64_t key, Units units,
                              std::vector<Row>& rows, const Packed* pairs, const Packed* root, Interrupt& interrupt);

}  // namespace spinney
