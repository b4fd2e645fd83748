// Predictions of trees for rows with some columns replaced, for many replacements at once: partial dependence,
// interactions and counterfactual search.
#pragma once

#include <cstdint>
#include <span>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/shap.h"

namespace spinney {

// sums[row][point][output] += the values of the leaves that the row reaches when its `columns` have the values of a
// point (a row of `points`, whose other columns are ignored). Trees are added in the usual order, so that a sum is
// bit-identical to a prediction of the changed row. The trees must have no surrogates; `scale` is ignored.
void sum_replaced(const SummedTrees& trees, const Table& table, const Table& points,
                  std::span<const std::uint32_t> columns, int n_threads, Interrupt& interrupt, double* sums);

// For each group of columns, sums[row][group][draw][output] += the same when only the columns of the group have the
// values of another row, given by `others` (by draw and row). For permutation importance. A row goes down a tree once,
// and again only for the groups tested on its path. Columns without a group have no_group.
constexpr std::uint32_t no_group = 0xffffffff;

struct Exchange {
  std::span<const Row> others;
  std::size_t n_draws;                      // at most 64
  std::span<const std::uint32_t> group_of;  // by column
  std::size_t n_groups;
};

void sum_exchanged(const SummedTrees& trees, const Table& table, const Exchange& exchange, int n_threads,
                   Interrupt& interrupt, double* sums);

}  // namespace spinney
