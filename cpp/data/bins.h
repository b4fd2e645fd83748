// Number columns as small integers: bins of about equal weight, cut between values that occur.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "data/column.h"
#include "data/sort.h"

namespace spinney {

struct BinnedColumn {
  std::uint32_t n_bins = 0;         // codes 0 … n_bins - 1; n_bins means missing
  std::vector<double> edges;        // n_bins - 1: bin b holds the values up to edges[b] that are in no lower bin
  LargeArray<std::uint8_t> small;   // codes by row, if n_bins + 1 fits a byte
  LargeArray<std::uint16_t> large;  // codes by row otherwise

  template <class F>
  decltype(auto) with_codes(F&& f) const {
    return large.size() == 0 ? f(small.data()) : f(large.data());
  }
  std::uint32_t code(Row r) const { return large.size() == 0 ? small.data()[r] : large.data()[r]; }
};

// A value that separates low < high: low <= cut < high.
double cut_between(double low, double high);

// Bins of the given rows (with their weights, or 1 if `weight` is null); the other of `n_rows` rows have code 0. With
// at most max_bins distinct values every value has its own bin.
BinnedColumn bin_column(const Column& column, std::size_t n_rows, std::span<const Row> rows, const double* weight,
                        std::uint32_t max_bins, ColumnSorter& sorter);

// The same for a dense column in a file, with its codes in a file; all rows are coded. About `most` rows are sorted at
// a time.
BinnedColumn bin_spilled_column(const Column& column, std::size_t n_rows, std::span<const Row> rows,
                                const double* weight, std::uint32_t max_bins, std::size_t most,
                                const std::shared_ptr<Spill>& spill, ColumnSorter& sorter);

// The edges alone, as above.
std::vector<double> bin_edges(const Column& column, std::span<const Row> rows, const double* weight,
                              std::uint32_t max_bins, ColumnSorter& sorter);

// The same for a sparse column. Its rows (ascending) have weight 1 (`weight` is null) or integer weights, whose sums do
// not depend on the order; `total` is the total weight.
std::vector<double> bin_edges_of_stored(const Column& column, std::span<const Row> rows, const double* weight,
                                        double total, std::uint32_t max_bins);

// Columns whose values are 32-bit keys in the order of the values: edges are learned from the keys.
bool has_short_keys(const Column& column);
void read_short_keys(const Column& column, std::span<const Row> rows, std::uint32_t* keys);

// The edges of bins of unweighted keys. The keys are sorted; `spare` is scratch.
std::vector<double> bin_edges(std::vector<std::uint32_t>& keys, std::uint32_t max_bins,
                              std::vector<std::uint32_t>& spare);

}  // namespace spinney
