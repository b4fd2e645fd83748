// What the caller asks of a tree. Defaults live in Python; these are neutral values.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace spinney {

struct GrowParams {
  std::uint32_t max_depth = UINT32_MAX;
  Row min_samples_split = 2, min_samples_leaf = 1;
  double min_weight_leaf = 0;  // in the user's units
  double min_impurity_decrease = 0;
  double min_purity = std::numeric_limits<double>::infinity();
  std::uint32_t max_features = UINT32_MAX;  // columns tried at a node
  std::uint32_t max_leaf_nodes = 0;         // 0: no limit, grown depth-first; else best-first
  bool random_cuts = false;
  std::uint64_t seed = 0;
  std::vector<std::int8_t> monotone;               // by column; empty: none
  std::vector<double> feature_costs;               // by column, > 0; empty: all the same
  std::vector<std::vector<std::uint32_t>> groups;  // columns that may meet on a path; empty: all may
  int n_threads = 1;
};

}  // namespace spinney
