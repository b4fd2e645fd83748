// What rounds of trees with vector leaves work with.
#pragma once

#include <vector>

#include "boost/vector_grow.h"
#include "learn/boosting.h"

namespace spinney {

struct Boosting::VectorSpace {
  explicit VectorSpace(const Boosting& home)
      : grower(home.coded_->coding, home.coded_->codes, home.coded_->tiles, home.n_scores(),
               home.params_.tree.n_threads) {
    for (std::uint32_t k = 0; k < home.n_scores(); ++k) packed.emplace_back(home.n_rows());
  }
  std::vector<Row> rows;                   // of the tree, leaf by leaf
  std::vector<LargeArray<Packed>> packed;  // by score
  VectorGrower grower;
};

}  // namespace spinney
