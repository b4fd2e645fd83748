#include "boost/codes.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/pool.h"
#include "data/bins.h"
#include "data/edge_search.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::size_t block_rows = 512;

// Rows that edges are learned from: all of positive weight, or so many spread evenly over them.
std::vector<Row> rows_to_learn_from(std::size_t n_rows, const double* weight) {
  constexpr std::size_t most = 200'000;
  std::vector<Row> rows;
  for (std::size_t r = 0; r < n_rows; ++r)
    if (weight == nullptr || weight[r] > 0) rows.push_back(static_cast<Row>(r));
  if (rows.size() <= most) return rows;
  std::vector<Row> some(most);
  for (std::size_t i = 0; i < most; ++i) some[i] = rows[i * rows.size() / most];
  return some;
}

// Marks the columns that lack a value in some row, block by block: a table kept row by row is read once.
void mark_missing(const Table& table, const double* weight, int n_threads, std::vector<std::uint8_t>& missing) {
  const std::size_t n_blocks = (table.n_rows + block_rows - 1) / block_rows;
  std::vector<std::vector<std::uint8_t>> found(static_cast<std::size_t>(n_threads),
                                               std::vector<std::uint8_t>(table.n_columns(), 0));
  const double estimated_ns = 0.5 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns());
  parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int worker) {
    const std::size_t begin = block * block_rows, n = std::min(block_rows, table.n_rows - begin);
    std::array<Row, block_rows> rows;
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    auto& mine = found[static_cast<std::size_t>(worker)];
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      if (mine[f] || table.columns[f].is_category()) continue;
      bool any = false;
      read_rows(table.columns[f], rows.data(), n,
                [&](std::size_t i, double v) { any |= (v != v) & (weight == nullptr || weight[begin + i] > 0); });
      mine[f] = any;
    }
  });
  for (const auto& mine : found)
    for (std::size_t f = 0; f < mine.size(); ++f) missing[f] |= mine[f];
}

CodedColumn learn_column(const Table& table, bool has_missing, std::uint32_t f, std::span<const Row> rows,
                         const double* weight, std::uint32_t max_codes, ColumnSorter& sorter) {
  const Column& column = table.columns[f];
  CodedColumn coded;
  if (column.is_category()) {
    constexpr std::uint32_t most = 0xfffe;
    coded.is_category = true;
    coded.has_missing = true;
    coded.n_codes = std::min(column.n_categories, most) + 1;
  } else {
    coded.edges = bin_edges(column, rows, weight, max_codes, sorter);
    coded.has_missing = has_missing;
    coded.n_codes = static_cast<std::uint32_t>(coded.edges.size()) + 1 + coded.has_missing;
  }
  coded.is_wide = coded.n_codes > 256;
  return coded;
}

}  // namespace

Coding Coding::learn(const Table& table, const Table* later, const double* weight, std::uint32_t max_codes,
                     int n_threads, Interrupt& interrupt) {
  Coding coding;
  coding.columns.resize(table.n_columns());
  const std::vector<Row> rows = rows_to_learn_from(table.n_rows, weight);
  std::vector<std::uint8_t> missing(table.n_columns(), 0);
  mark_missing(table, weight, n_threads, missing);
  if (later != nullptr) mark_missing(*later, nullptr, n_threads, missing);
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  const double estimated_ns = 20.0 * static_cast<double>(table.n_columns()) * static_cast<double>(rows.size());
  parallel_for_if_worth(estimated_ns, table.n_columns(), n_threads, [&](std::size_t f, int worker) {
    interrupt.check();
    coding.columns[f] = learn_column(table, missing[f], static_cast<std::uint32_t>(f), rows, weight, max_codes,
                                     sorters[static_cast<std::size_t>(worker)]);
  });
  return coding;
}

namespace {

// Codes of one column for a block of rows.
class ColumnCoder {
 public:
  ColumnCoder(const Column& column, const CodedColumn& coded) : column_(column), coded_(coded), search_(coded.edges) {}

  void code(const Row* rows, std::size_t n, std::uint32_t* out) const {
    const std::uint32_t last = coded_.n_codes - 1;
    if (coded_.is_category) {
      read_rows(column_, rows, n,
                [&](std::size_t i, double v) { out[i] = v == v && v < last ? static_cast<std::uint32_t>(v) : last; });
      return;
    }
    std::array<double, block_rows> values;
    read_rows(column_, rows, n, [&](std::size_t i, double v) { values[i] = v; });
    search_.find(values.data(), n, out);
    if (coded_.has_missing)
      for (std::size_t i = 0; i < n; ++i) out[i] = values[i] == values[i] ? out[i] : last;
  }

 private:
  const Column& column_;
  const CodedColumn& coded_;
  EdgeSearch search_;
};

template <class Code>
void store(const std::uint32_t* codes, std::size_t n, std::uint8_t* column, std::size_t begin) {
  Code* out = reinterpret_cast<Code*>(column) + begin;
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Code>(codes[i]);
}

}  // namespace

Codes encode(const Table& table, const Coding& coding, int n_threads, Interrupt& interrupt) {
  Codes codes;
  codes.n_rows = table.n_rows;
  codes.columns.resize(table.n_columns());
  std::vector<ColumnCoder> coders;
  for (std::size_t f = 0; f < table.n_columns(); ++f) {
    coders.emplace_back(table.columns[f], coding.columns[f]);
    codes.columns[f].resize(table.n_rows * (coding.columns[f].is_wide ? 2 : 1) + 4);
  }
  const std::size_t n_blocks = (table.n_rows + block_rows - 1) / block_rows;
  const double estimated_ns = 5.0 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns());
  parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
    interrupt.check();
    const std::size_t begin = block * block_rows, n = std::min(block_rows, table.n_rows - begin);
    std::array<Row, block_rows> rows;
    std::array<std::uint32_t, block_rows> found;
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      const CodedColumn& coded = coding.columns[f];
      coders[f].code(rows.data(), n, found.data());
      (coded.is_wide ? store<std::uint16_t> : store<std::uint8_t>)(found.data(), n, codes.columns[f].data(), begin);
    }
  });
  return codes;
}

}  // namespace spinney
