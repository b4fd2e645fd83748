// A forest of trees, each grown on a sample of the rows; identical for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "criterion/target.h"
#include "data/column.h"
#include "data/sample.h"
#include "grow/params.h"
#include "tree/forest.h"

namespace spinney {

struct ForestParams {
  GrowParams tree;  // the forest's `seed` and `n_threads` apply
  Sampling sampling;
  bool samples = true;  // false: every tree uses all rows
  // Class balancing in every sample: classes of the rows, n_rows x n_outputs (null: off), the number of classes by
  // output, and the weight of a row each time it is drawn (null: 1).
  const std::int32_t* balanced = nullptr;
  std::vector<std::uint32_t> n_balanced;
  const double* balance_weight = nullptr;
  std::uint32_t max_bins = 0;  // 0: exact splits
  std::uint32_t max_features_per_tree = UINT32_MAX;
  double shrinkage = 0;                       // strength of hierarchical shrinkage, as a weight of rows; 0: off
  std::uint32_t first_tree = 0, n_trees = 0;  // trees first_tree … first_tree + n_trees - 1
};

// The table and the target's arrays must outlive the call.
Forest grow_forest(const Table& table, const TargetInput& target, Rule rule, const ForestParams& params,
                   Interrupt& interrupt);

}  // namespace spinney
