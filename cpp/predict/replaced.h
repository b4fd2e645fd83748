// What trees say of rows when some of their columns are given other values, many of these at once: for partial
// dependence, interactions and the search for counterfactuals.
#pragma once

#include <cstdint>
#include <span>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/shap.h"

namespace spinney {

// sums[row][point][output] += the values of the leaves that the row reaches when its `columns` have the values of a
// point (a row of `points`, whose other columns do not count). Trees are added in order, as everywhere, so that a sum has
// the bits of a prediction of the changed row. The trees must have no surrogates; `scale` does not count.
void sum_replaced(const SummedTrees& trees, const Table& table, const Table& points,
                  std::span<const std::uint32_t> columns, int n_threads, Interrupt& interrupt, double* sums);

}  // namespace spinney
