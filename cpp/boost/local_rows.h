// Rows in memory, or codes of them in a file, behind the calls of boost/rows.h; leaves have one value.
//
// Sums of packed pairs are whole numbers, so they are the same in any order: histograms are filled by many threads, and a
// child's is its parent's less its sibling's. Of codes that lie in a file all leaves of a batch are split in one pass over it:
// to read the file takes longer than to split some of them in vain.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "boost/boosted_tree.h"
#include "boost/coded_table.h"
#include "boost/histograms.h"
#include "boost/part.h"
#include "boost/sweep.h"

namespace spinney {

// What trees use one after the other.
struct LocalMemory {
  LocalMemory(const CodedTable& coded, int threads)
      : table(coded),
        n_threads(threads),
        pool(coded.tiles.n_cells(), threads),
        listed_pool(coded.tiles.listed().n_cells(), threads),
        scratch(coded.tiles.n_cells(), threads),
        parter(coded.coding, coded.codes, threads),
        sweeper(coded.coding, coded.codes, coded.tiles, threads) {}

  const CodedTable& table;
  const int n_threads;
  HistogramPool pool, listed_pool;
  HistogramScratch scratch;
  RowParter parter;
  Sweeper sweeper;
};

// Grows a tree on `rows`, ascending; they are reordered leaf by leaf. `pairs` is by row of the table, `key` stands for (seed,
// round, class). `root` is the histogram of all rows, if it is known, else null.
BoostedTree grow_boosted_tree(LocalMemory& memory, const BoostParams& params, std::uint64_t key, Units units,
                              std::vector<Row>& rows, const Packed* pairs, const Packed* root, Interrupt& interrupt);

}  // namespace spinney
