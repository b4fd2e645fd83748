// Linear leaves of a boosted tree: in each leaf a ridge regression of the step on the number columns on its path,
// or on all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/types.h"
#include "boost/boosted_tree.h"
#include "boost/kernels.h"
#include "data/column.h"

namespace spinney {

struct LinearLeafParams {
  std::span<const std::uint8_t> columns;  // 1: may have a slope
  double l2 = 0;                          // for slopes, with columns standardised in the leaf
  bool in_all = false;                    // all of these columns have a slope in each leaf, not only those on its path
};

// `newton(gradient, hessian)` is the step of a constant leaf, `bounded(size)` limits the longest step of a linear leaf.
struct StepRules {
  std::function<double(double, double)> newton;
  std::function<double(double)> bounded;
  double learning_rate = 1;
};

// `rows` are those of the tree, leaf by leaf; pairs are by row of the table. Leaves whose rows do not determine a
// linear model stay constant.
void fit_linear_leaves(BoostedTree& grown, const Table& table, std::span<const Row> rows, const Pair* pairs,
                       const LinearLeafParams& params, const StepRules& rules, int n_threads);

}  // namespace spinney
