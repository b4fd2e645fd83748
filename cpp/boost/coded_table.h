// A table in codes, ready for trees of boosting to be grown on any of its rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/codes.h"
#include "boost/split.h"
#include "boost/tiles.h"
#include "data/column.h"

namespace spinney {

// A table in codes, and another one coded the same way if there is one (`later` may be null, or the same table). Boosters
// that learn from different rows of the table share them.
struct CodedTable {
  CodedTable(const Table& table, const Table* later, const double* weight, std::uint32_t max_bins, bool lists_columns,
             const std::vector<ForcedSplit>& forced, int n_threads, Interrupt& interrupt);

  // The codes of tables, one below the other, whose columns are not kept, by a coding that was learned before. `rows` has as
  // many rows.
  CodedTable(std::span<const Table* const> tables, const Table& rows, Coding known, int n_threads,
             Interrupt& interrupt);

  const Table* table;
  const Table* later_table;
  Coding coding;
  Codes codes, later;
  Tiles tiles;
};

// How a table is cut if edges are learned from these rows alone, with these weights, which are clipped where a few rows
// hold nearly all of it; null: all count once.
struct RowsToLearnFrom {
  RowsToLearnFrom(std::size_t n_rows, const double* weight);
  std::vector<Row> rows;
  std::vector<double> weights;  // of these rows; empty: none
};

// Rows of positive weight; all of them if `weight` is null.
std::vector<Row> rows_of_weight(std::size_t n_rows, const double* weight);

// The same, where they are kept.
template <class Rows>
void take_rows_of_weight(std::size_t n_rows, const double* weight, Rows& rows) {
  std::size_t n = n_rows;
  if (weight != nullptr)
    n = static_cast<std::size_t>(std::count_if(weight, weight + n_rows, [](double w) { return w > 0; }));
  rows.resize(n);
  for (std::size_t r = 0, i = 0; i < n; ++r) {
    rows[i] = static_cast<Row>(r);
    i += weight == nullptr || weight[r] > 0;
  }
}

// What weights are summed in units of, and what a row counts for among them (0: for itself): see `count_by_weight`.
struct WeightScale {
  double scale, count_by_weight;
};
WeightScale weight_scale(std::span<const Row> rows, const double* weight, std::size_t n_rows, int n_bits);

// The usual weight, where a few rows hold nearly all of it; else 0.
double usual_weight(std::span<const Row> rows, const double* weight);

}  // namespace spinney
