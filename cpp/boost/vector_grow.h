// One tree of boosting whose leaves hold a value for each of several scores: these share the rows' way down the tree.
//
// A histogram has a part for each score, filled as those of trees of one score are. The threads share its tiles and scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/grow.h"
#include "boost/part.h"
#include "boost/tiles.h"
#include "boost/vector_split.h"

namespace spinney {

struct VectorTree {
  BoostedTree grown;                    // values and impurities are left to the caller
  std::vector<std::vector<Sums>> sums;  // by node, then by score
};

class VectorGrower {
 public:
  VectorGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, std::size_t n_scores, int n_threads);

  // As BoostGrower::grow, with the pairs of each score.
  VectorTree grow(std::vector<Row>& rows, std::span<const ScoreTerms> scores, const BoostParams& params,
                  std::uint64_t key, Interrupt& interrupt);

 private:
  class Growing;

  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  const std::size_t n_cells_;  // of one score
  const int n_threads_;
  HistogramPool pool_;
  RowParter parter_;
  std::vector<VectorSearch::Scratch> scratch_;           // by worker
  std::vector<std::vector<std::vector<Packed>>> rooms_;  // by worker and score
};

}  // namespace spinney
