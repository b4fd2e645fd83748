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
  std::uint32_t n_bins = 0;         // codes 0 … n_bins - 1; n_bins is missing
  std::vector<double> edges;        // n_bins - 1: x <= edges[b] and no lower bin means bin b
  LargeArray<std::uint8_t> small;   // codes by row, when n_bins + 1 fits a byte
  LargeArray<std::uint16_t> large;  // codes by row otherwise

  template <class F>
  decltype(auto) with_codes(F&& f) const {
    return large.size() == 0 ? f(small.data()) : f(large.data());
  }
  std::uint32_t code(Row r) const { return large.size() == 0 ? small.data()[r] : large.data()[r]; }
};

// A value between low and high, low < high, that separates them: low <= cut < high.
double cut_between(double low, double high);

// Bins of the rows listed (each with its weight, or 1 if `weight` is null); of `n_rows` rows of the table others have code 0.
// With at most max_bins distinct values every value has its own bin.
BinnedColumn bin_column(const Column& column, std::size_t n_rows, std::span<const Row> rows, const double* weight,
                        std::uint32_t max_bins, ColumnSorter& sorter);

// The same of a dense column that lies in a file, as the codes do; all rows have their code. About `most` rows are sorted at
// a time.
BinnedColumn bin_spilled_column(const Column& column, std::size_t n_rows, std::span<const Row> rows,
                                const double* weight, std::uint32_t max_bins, std::size_t most,
                                const std::shared_ptr<Spill>& spill, ColumnSorter& sorter);

// The edges alone, as above.
std::vector<double> bin_edges(const Column& column, std::span<const Row> rows, const double* weight,
                              std::uint32_t max_bins, ColumnSorter& sorter);

// The same of a sparse column. Its rows (ascending) count once each (`weight` is null), or by whole numbers, which add up to
// the same in any order; `total` is what all of them count for.
std::vector<double> bin_edges_of_stored(const Column& column, std::span<const Row> rows, const double* weight,
                                        double total, std::uint32_t max_bins);

// Columns whose values are 32-bit keys, in the order of the values: edges are learned from the keys alone.
bool has_short_keys(const Column& column);
void read_short_keys(const Column& column, std::span<const Row> rows, std::uint32_t* keys);

// The edges of bins of keys, each of which counts once. The keys are sorted; `spare` is scratch.
std::vector<double> bin_edges(std::vector<std::uint32_t>& keys, std::uint32_t max_bins,
                              std::vector<std::uint32_t>& spare);

}  // namespace spinney
