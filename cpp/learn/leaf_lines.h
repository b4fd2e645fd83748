// Lines for the leaves of a boosted tree: in each a ridge regression of the step on the columns of numbers that its path asks
// for.
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

struct LinearLeaves {
  std::span<const std::uint8_t> columns;  // 1: may be part of a line
  double l2 = 0;                          // of slopes, for columns of variance 1 in the leaf
};

// `newton(gradient, hessian)` is the step of a constant, `bounded(size)` what becomes of the longest step of a line.
struct StepRules {
  std::function<double(double, double)> newton;
  std::function<double(double)> bounded;
  double learning_rate = 1;
};

// `rows` are those of the tree, leaf by leaf; pairs are by row of the table. Leaves whose rows say nothing of a line keep
// their value alone.
void set_lines(BoostedTree& grown, const Table& table, std::span<const Row> rows, const Pair* pairs,
               const LinearLeaves& params, const StepRules& rules, int n_threads);

}  // namespace spinney
