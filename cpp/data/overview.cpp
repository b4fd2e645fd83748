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

bool all_sparse(const Table& table) {
  return std::all_of(table.columns.begin(), table.columns.end(), [](const Column& c) { return c.is_sparse(); });
}

// Calls body(c, rows) for the rows of each chunk c, if there are dense columns.
template <class Body>
void for_each_chunk(const Table& table, int n_threads, Interrupt& interrupt, Body&& body) {
  const std::size_t n_chunks = (table.n_rows + chunk_rows - 1) / chunk_rows;
  if (all_sparse(table)) return;
  const double estimated_ns = 2.0 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns());
  parallel_for_if_worth(estimated_ns, n_chunks, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    std::array<Row, chunk_rows> rows;
    const std::size_t begin = c * chunk_rows, n = std::min(chunk_rows, table.n_rows - begin);
    table.touch(n);
    std::iota(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), static_cast<Row>(begin));
    body(c, std::span<const Row>(rows.data(), n));
  });
}

// Calls body(columns) with the sparse columns of each thread.
template <class Body>
void for_sparse_columns(const Table& table, int n_threads, Body&& body) {
  std::vector<std::vector<std::size_t>> groups(static_cast<std::size_t>(n_threads));
  double n_entries = 0;
  for (std::size_t f = 0; f < table.n_columns(); ++f)
    if (table.columns[f].is_sparse()) {
      groups[f % groups.size()].push_back(f);
      n_entries += static_cast<double>(table.columns[f].n_sparse);
    }
  parallel_for_if_worth(2 * n_entries, groups.size(), n_threads, [&](std::size_t g, int) { body(g, groups[g]); });
}

// Eight interleaved ranges, so that consecutive values do not wait for each other.
ColumnRange range_of(const Column& column, std::span<const Row> rows) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> low, high;
  low.fill(INFINITY);
  high.fill(-INFINITY);
  std::array<double, chunk_rows + lanes> values;
  read_values(column, rows.data(), rows.size(), values.data());
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(rows.size()), lanes,
              values[0]);  // padding by a value that is included already
  unsigned has_missing = 0;
  for (std::size_t i = 0; i < rows.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double v = values[i + lane];
      has_missing |= v != v;
      low[lane] = v < low[lane] ? v : low[lane];
      high[lane] = v > high[lane] ? v : high[lane];
    }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end()), has_missing != 0};
}

ColumnRange range_of(const Column& column, std::span<const Row> rows, const double* weight) {
  if (weight == nullptr) return range_of(column, rows);
  ColumnRange range{INFINITY, -INFINITY};
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    const bool counts = weight[rows[i]] > 0;
    range.has_missing |= counts && v != v;
    range.low = counts && v < range.low ? v : range.low;
    range.high = counts && v > range.high ? v : range.high;
  });
  return range;
}

// The same for all rows, `n_rows` of which have positive weight; values that are not stored are 0.
ColumnRange range_of_stored(const Column& column, std::size_t n_rows, const double* weight) {
  ColumnRange range{INFINITY, -INFINITY};
  std::size_t n_stored = 0;
  const auto add = [&](double v) {
    range.has_missing |= v != v;
    range.low = v < range.low ? v : range.low;
    range.high = v > range.high ? v : range.high;
  };
  read_stored(column, 0, SIZE_MAX, [&](Row row, double v) {
    if (weight != nullptr && !(weight[row] > 0)) return;
    ++n_stored;
    add(v);
  });
  if (n_stored < n_rows) add(0.0);
  return range;
}

// The contribution of a column's value to the key of its row.
std::uint64_t key_of(double v, std::size_t f) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double one_of_many = v != v ? nan : v + 0.0;  // -0 is 0
  return scramble(std::bit_cast<std::uint64_t>(one_of_many) + (f + 1) * 0x9e3779b97f4a7c15u);
}

}  // namespace

std::vector<std::uint64_t> fingerprints(const Table& table, int n_threads, Interrupt& interrupt) {
  std::vector<std::uint64_t> keys(table.n_rows, 0);
  for_each_chunk(table, n_threads, interrupt, [&](std::size_t, std::span<const Row> rows) {
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      if (table.columns[f].is_sparse()) continue;
      std::uint64_t* out = keys.data() + rows[0];
      read_rows(table.columns[f], rows.data(), rows.size(), [&](std::size_t i, double v) { out[i] += key_of(v, f); });
    }
  });
  std::vector<std::vector<std::uint64_t>> parts(static_cast<std::size_t>(n_threads));
  for_sparse_columns(table, n_threads, [&](std::size_t g, std::span<const std::size_t> columns) {
    if (columns.empty()) return;
    parts[g].assign(table.n_rows, 0);
    std::uint64_t all_zeros = 0;
    for (const std::size_t f : columns) {
      interrupt.check();
      const std::uint64_t zero = key_of(0.0, f);
      all_zeros += zero;
      read_stored(table.columns[f], 0, SIZE_MAX, [&](Row row, double v) { parts[g][row] += key_of(v, f) - zero; });
    }
    for (std::uint64_t& key : parts[g]) key += all_zeros;
  });
  for (const std::vector<std::uint64_t>& part : parts)
    for (std::size_t r = 0; r < part.size(); ++r) keys[r] += part[r];
  return keys;
}

std::vector<ColumnRange> column_ranges(const Table& table, const double* weight, int n_threads, Interrupt& interrupt) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t n_columns = table.n_columns(), n_chunks = (table.n_rows + chunk_rows - 1) / chunk_rows;
  std::vector<ColumnRange> parts;  // by chunk and column
  if (!all_sparse(table)) parts.assign(n_chunks * n_columns, {INFINITY, -INFINITY});
  for_each_chunk(table, n_threads, interrupt, [&](std::size_t c, std::span<const Row> rows) {
    for (std::size_t f = 0; f < n_columns; ++f)
      if (!table.columns[f].is_sparse()) parts[c * n_columns + f] = range_of(table.columns[f], rows, weight);
  });
  std::vector<ColumnRange> ranges(n_columns, {INFINITY, -INFINITY});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ColumnRange& range = ranges[i % n_columns];
    range.low = std::min(range.low, parts[i].low);
    range.high = std::max(range.high, parts[i].high);
    range.has_missing |= parts[i].has_missing;
  }
  const std::size_t n_rows =
      weight == nullptr
          ? table.n_rows
          : static_cast<std::size_t>(std::count_if(weight, weight + table.n_rows, [](double w) { return w > 0; }));
  for_sparse_columns(table, n_threads, [&](std::size_t, std::span<const std::size_t> columns) {
    for (const std::size_t f : columns) ranges[f] = range_of_stored(table.columns[f], n_rows, weight);
  });
  for (std::size_t f = 0; f < n_columns; ++f) {
    ColumnRange& range = ranges[f];
    const bool is_range = range.low <= range.high && !table.columns[f].is_category();
    range.low = is_range ? range.low + 0.0 : nan;
    range.high = is_range ? range.high + 0.0 : nan;
  }
  return ranges;
}

}  // namespace spinney
