#include "data/overview.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "base/pool.h"
#include "base/random.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::size_t chunk_rows = 1024;  // rows that stay in cache from one column to the next

// Calls body(c, rows) for the rows of each chunk c.
template <class Body>
void for_each_chunk(const Table& table, int n_threads, Interrupt& interrupt, Body&& body) {
  const std::size_t n_chunks = (table.n_rows + chunk_rows - 1) / chunk_rows;
  const double estimated_ns = 2.0 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns());
  parallel_for_if_worth(estimated_ns, n_chunks, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    std::array<Row, chunk_rows> rows;
    const std::size_t begin = c * chunk_rows, n = std::min(chunk_rows, table.n_rows - begin);
    std::iota(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), static_cast<Row>(begin));
    body(c, std::span<const Row>(rows.data(), n));
  });
}

ColumnRange range_of(const Column& column, std::span<const Row> rows, const double* weight) {
  ColumnRange range{INFINITY, -INFINITY};
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    const bool counts = weight == nullptr || weight[rows[i]] > 0;
    range.has_missing |= counts && v != v;
    range.low = counts && v < range.low ? v : range.low;
    range.high = counts && v > range.high ? v : range.high;
  });
  return range;
}

}  // namespace

std::vector<std::uint64_t> fingerprints(const Table& table, int n_threads, Interrupt& interrupt) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::uint64_t> keys(table.n_rows, 0);
  for_each_chunk(table, n_threads, interrupt, [&](std::size_t, std::span<const Row> rows) {
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      const std::uint64_t by_column = (f + 1) * 0x9e3779b97f4a7c15u;
      std::uint64_t* out = keys.data() + rows[0];
      read_rows(table.columns[f], rows.data(), rows.size(), [&](std::size_t i, double v) {
        const double one_of_many = v != v ? nan : v + 0.0;  // -0 is 0
        out[i] += scramble(std::bit_cast<std::uint64_t>(one_of_many) + by_column);
      });
    }
  });
  return keys;
}

std::vector<ColumnRange> column_ranges(const Table& table, const double* weight, int n_threads, Interrupt& interrupt) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t n_columns = table.n_columns(), n_chunks = (table.n_rows + chunk_rows - 1) / chunk_rows;
  std::vector<ColumnRange> parts(n_chunks * n_columns, {INFINITY, -INFINITY});
  for_each_chunk(table, n_threads, interrupt, [&](std::size_t c, std::span<const Row> rows) {
    for (std::size_t f = 0; f < n_columns; ++f) parts[c * n_columns + f] = range_of(table.columns[f], rows, weight);
  });
  std::vector<ColumnRange> ranges(n_columns, {INFINITY, -INFINITY});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ColumnRange& range = ranges[i % n_columns];
    range.low = std::min(range.low, parts[i].low);
    range.high = std::max(range.high, parts[i].high);
    range.has_missing |= parts[i].has_missing;
  }
  for (std::size_t f = 0; f < n_columns; ++f) {
    ColumnRange& range = ranges[f];
    const bool is_range = range.low <= range.high && !table.columns[f].is_category();
    range.low = is_range ? range.low + 0.0 : nan;
    range.high = is_range ? range.high + 0.0 : nan;
  }
  return ranges;
}

}  // namespace spinney
