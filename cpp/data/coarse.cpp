#include "data/coarse.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/pool.h"
#include "data/bins.h"
#include "data/edge_search.h"
#include "data/read.h"

namespace spinney {

// Upper ends of all steps except the last, ascending.
static std::vector<double> steps_of(const Column& column, std::span<const Row> rows) {
  constexpr std::size_t n_sample = 8192;
  std::vector<Row> sample;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / n_sample);
  for (std::size_t i = stride / 2; i < rows.size(); i += stride) sample.push_back(rows[i]);
  std::vector<double> values;
  read_rows(column, sample.data(), sample.size(), [&](std::size_t, double v) {
    if (v == v) values.push_back(v);
  });
  std::sort(values.begin(), values.end());
  std::vector<double> steps;
  for (std::size_t k = 0; k + 1 < n_coarse && !values.empty(); ++k)
    steps.push_back(values[(k + 1) * values.size() / n_coarse]);
  return steps;
}

template <class T>  // a type that holds all values of the column
static void code_rows(const Column& column, std::span<const Row> rows, const EdgeSearch& steps, std::uint8_t* codes) {
  constexpr std::size_t block = 256;
  std::array<T, block> values;
  std::array<std::uint32_t, block> below;
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    const std::size_t n = std::min(block, rows.size() - begin);
    const Row* some = rows.data() + begin;
    read_rows(column, some, n, [&](std::size_t i, double v) { values[i] = static_cast<T>(v); });
    steps.find(values.data(), n, below.data());
    for (std::size_t i = 0; i < n; ++i)
      codes[some[i]] = values[i] == values[i] ? static_cast<std::uint8_t>(below[i]) : coarse_missing;
  }
}

std::vector<std::uint8_t> make_coarse_codes(const Table& table, std::span<const Row> rows, int n_threads,
                                            Interrupt& interrupt) {
  constexpr std::size_t chunk = 1024;  // rows that stay in cache from one column to the next
  std::vector<std::uint8_t> codes(table.n_columns() * table.n_rows);
  std::vector<std::optional<EdgeSearch>> steps(table.n_columns());
  parallel_for(table.n_columns(), n_threads, [&](std::size_t f, int) {
    interrupt.check();
    if (!table.columns[f].is_category()) steps[f].emplace(steps_of(table.columns[f], rows));
  });
  parallel_for((rows.size() + chunk - 1) / chunk, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    const std::span<const Row> some = rows.subspan(c * chunk, std::min(chunk, rows.size() - c * chunk));
    table.touch(some.size());
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      const Column& column = table.columns[f];
      if (column.is_category()) continue;
      const auto code = has_short_keys(column) ? code_rows<float> : code_rows<double>;
      code(column, some, *steps[f], codes.data() + f * table.n_rows);
    }
  });
  return codes;
}

CoarseTiles::CoarseTiles(const Table& table, const Presorted& sorted, int n_threads, Interrupt& interrupt)
    : n_rows(table.n_rows), lane_of(table.n_columns(), none) {
  for (std::uint32_t f = 0; f < table.n_columns(); ++f) {
    if (table.columns[f].is_category()) continue;
    lane_of[f] = static_cast<std::uint32_t>(columns.size());
    columns.push_back(f);
  }
  begin.resize(columns.size());
  codes = LargeArray<std::uint8_t>(n_tiles() * n_rows * lanes);
  parallel_for(n_tiles(), n_threads, [&](std::size_t t, int) {
    const std::size_t end = std::min(columns.size(), (t + 1) * lanes);
    std::fill_n(codes.data() + t * n_rows * lanes, n_rows * lanes, std::uint8_t{0});
    for (std::size_t lane = t * lanes; lane < end; ++lane) {
      interrupt.check();
      fill(lane, sorted);
    }
  });
}

// Steps end where about their fraction of the rows is reached, and never between equal values.
void CoarseTiles::fill(std::size_t lane, const Presorted& sorted) {
  const std::uint32_t f = columns[lane];
  const std::span<const std::uint32_t> entries = sorted.column(f);
  const std::size_t n_present = sorted.n_present[f];
  std::uint8_t* const out = codes.data() + (lane / lanes * n_rows) * lanes + lane % lanes;
  Begins& begins = begin[lane];
  std::size_t code = 0, next = std::max<std::size_t>(1, n_present / n_coarse);  // where the step may end
  begins[0] = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i >= n_present) {
      out[(entries[i] & ~Presorted::new_value) * lanes] = coarse_missing;
      continue;
    }
    if (i >= next && entries[i] >> 31 && code + 1 < n_coarse) {
      begins[++code] = static_cast<std::uint32_t>(i);
      next = std::max(i + 1, (code + 1) * n_present / n_coarse);
    }
    out[(entries[i] & ~Presorted::new_value) * lanes] = static_cast<std::uint8_t>(code);
  }
  std::fill(begins.begin() + static_cast<std::ptrdiff_t>(code) + 1, begins.end() - 1,
            static_cast<std::uint32_t>(n_present));
  begins.back() = static_cast<std::uint32_t>(entries.size());
}

}  // namespace spinney
