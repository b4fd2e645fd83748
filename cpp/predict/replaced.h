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

// For each group of columns, sums[row][group][draw][output] += the same when the columns of the group, and no others, have
// the values of another row: that of `others`, by draw and row. For permutation importance. A row goes down a tree once,
// and again only for the columns that it was asked on its way. Columns of no group have the number no_group.
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
