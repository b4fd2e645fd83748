// A binned table, ready for boosted trees to be grown on any of its rows.
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

// A table in bin codes, and optionally a second table with the same coding (`validation` may be null or the same
// table). Boosters that learn from different rows of the table share them.
struct CodedTable {
  CodedTable(const Table& table, const Table* validation, const double* weight, std::uint32_t max_bins,
             bool lists_columns, const std::vector<ForcedSplit>& forced, int n_threads, Interrupt& interrupt);

  // Codes vertically stacked tables by a known coding, without retaining their columns. `rows` has the total number of
  // rows.
  CodedTable(std::span<const Table* const> tables, const Table& rows, Coding known, int n_threads,
             Interrupt& interrupt);

  const Table* table;
  const Table* validation_table;
  Coding coding;
  Codes codes, validation;
  Tiles tiles;
};

// Learns the bins from these rows only. Weights are clipped where a few rows hold nearly all of them; null: every row
// counts once.
struct RowsToLearnFrom {
  RowsToLearnFrom(std::size_t n_rows, const double* weight);
  std::vector<Row> rows;
  std::vector<double> weights;  // by row of `rows`; empty: every row counts once
};

// The rows of positive weight; all rows if `weight` is null.
std::vector<Row> rows_of_weight(std::size_t n_rows, const double* weight);

// The same, stored in memory or in a file as the table is.
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

// The unit in which weights are summed, and the weight a row counts as (0: its actual weight); see `count_by_weight`.
struct WeightScale {
  double scale, count_by_weight;
};
WeightScale weight_scale(std::span<const Row> rows, const double* weight, std::size_t n_rows, int n_bits);

// The median weight if a few rows hold nearly all of it, else 0.
double usual_weight(std::span<const Row> rows, const double* weight);

}  // namespace spinney
