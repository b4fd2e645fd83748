// Rows in memory behind the calls of boost/rows.h, for trees whose leaves have one value per score.
//
// A histogram has one section per score, filled like a single-score histogram. Threads work on tiles and scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/boosted_tree.h"
#include "boost/coded_table.h"
#include "boost/histograms.h"
#include "boost/row_partitioner.h"
#include "boost/vector_split.h"

namespace spinney {

struct VectorTree {
  BoostedTree grown;                    // the caller sets values and impurities
  std::vector<std::vector<Sums>> sums;  // by node, then by score
};

// Memory that consecutive trees reuse.
struct VectorMemory {
  VectorMemory(const CodedTable& coded, std::size_t n_scores, int threads)
      : table(coded),
        n_threads(threads),
        n_cells(coded.tiles.n_cells() + (coded.tiles.listed().empty() ? 0 : coded.tiles.listed().n_cells())),
        pool(n_cells * n_scores, threads),
        partitioner(coded.coding, coded.codes, threads),
        scratch(static_cast<std::size_t>(threads)),
        cells(static_cast<std::size_t>(threads), std::vector<std::vector<Packed>>(n_scores)) {}

  const CodedTable& table;
  const int n_threads;
  const std::size_t n_cells;  // per score
  HistogramPool pool;
  RowPartitioner partitioner;
  double least_gain = 0;                                // of the previous tree
  std::vector<VectorSearch::Scratch> scratch;           // by worker
  std::vector<std::vector<std::vector<Packed>>> cells;  // by worker and score
};

VectorTree grow_vector_tree(VectorMemory& memory, const BoostParams& params, std::uint64_t key,
                            std::span<const ScoreTerms> scores, std::vector<Row>& rows, Interrupt& interrupt);

}  // namespace spinney
