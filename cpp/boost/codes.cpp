#include "boost/codes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/near_tasks.h"
#include "data/bins.h"
#include "data/edge_search.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::size_t block_rows = 512;

// The total weight of the rows if every weight is a whole number, so that the sum does not depend on the order.
std::optional<double> whole_total(std::span<const Row> rows, const double* weight) {
  if (weight == nullptr) return static_cast<double>(rows.size());
  double total = 0;
  for (const Row r : rows) {
    if (weight[r] != std::floor(weight[r])) return std::nullopt;
    total += weight[r];
  }
  return total < 0x1p53 ? std::optional(total) : std::nullopt;
}

// Marks the columns with missing values, block by block, so that a row-major table is read once.
void mark_missing(const Table& table, const double* weight, int n_threads, std::vector<std::uint8_t>& missing) {
  const std::size_t n_blocks = (table.n_rows + block_rows - 1) / block_rows;
  std::vector<std::vector<std::uint8_t>> found(static_cast<std::size_t>(n_threads),
                                               std::vector<std::uint8_t>(table.n_columns(), 0));
  const double estimated_ns = 0.5 * static_cast<double>(table.n_rows) * static_cast<double>(table.n_columns());
  parallel_for_near_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int worker) {
    const std::size_t begin = block * block_rows, n = std::min(block_rows, table.n_rows - begin);
    std::array<Row, block_rows> rows;
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    table.touch(n);
    auto& mine = found[static_cast<std::size_t>(worker)];
    for (std::size_t f = 0; f < table.n_columns(); ++f) {
      if (mine[f] || table.columns[f].is_category() || table.columns[f].is_sparse()) continue;
      bool any = false;
      read_rows(table.columns[f], rows.data(), n,
                [&](std::size_t i, double v) { any |= (v != v) & (weight == nullptr || weight[begin + i] > 0); });
      mine[f] = any;
    }
  });
  for (const auto& mine : found)
    for (std::size_t f = 0; f < mine.size(); ++f) missing[f] |= mine[f];
}

// The same for sparse columns.
void mark_missing_stored(const Table& table, const double* weight, int n_threads, std::vector<std::uint8_t>& missing) {
  std::size_t n_stored = 0;
  for (const Column& column : table.columns) n_stored += column.n_sparse;
  parallel_for_if_worth(static_cast<double>(n_stored), table.n_columns(), n_threads, [&](std::size_t f, int) {
    if (!table.columns[f].is_sparse()) return;
    bool any = false;
    read_stored(table.columns[f], 0, SIZE_MAX,
                [&](Row r, double v) { any |= (v != v) & (weight == nullptr || weight[r] > 0); });
    missing[f] |= any;
  });
}

// Learns the bins of several columns on one thread.
class ColumnCutter {
 public:
  ColumnCutter(const Table& table, std::span<const Row> rows, const double* weight, std::uint32_t max_bins)
      : table_(table), rows_(rows), weight_(weight), max_bins_(max_bins), whole_(whole_total(rows, weight)) {}

  void cut(std::size_t begin, std::size_t end, const std::vector<std::uint8_t>& missing, CodedColumn* coded) {
    if (weight_ == nullptr) read_keys(begin, end);
    for (std::size_t f = begin; f < end; ++f) {
      const Column& column = table_.columns[f];
      table_.touch(rows_, 1);
      if (column.is_category())
        take_categories(column, coded[f]);
      else
        take_edges(edges_of(column, f - begin), missing[f], coded[f]);
      coded[f].is_wide = coded[f].n_codes > 256;
    }
  }

 private:
  // Block by block, so that a row-major table is read once.
  void read_keys(std::size_t begin, std::size_t end) {
    keys_.resize(end - begin);
    const auto is_read = [](const Column& c) { return has_short_keys(c) && !c.is_sparse(); };
    for (std::size_t f = begin; f < end; ++f)
      if (is_read(table_.columns[f])) keys_[f - begin].resize(rows_.size());
    for (std::size_t first = 0; first < rows_.size(); first += block_rows) {
      const std::span<const Row> block = rows_.subspan(first, std::min(block_rows, rows_.size() - first));
      table_.touch(block, end - begin);
      for (std::size_t f = begin; f < end; ++f)
        if (is_read(table_.columns[f])) read_short_keys(table_.columns[f], block, keys_[f - begin].data() + first);
    }
  }

  std::vector<double> edges_of(const Column& column, std::size_t i) {
    if (whole_ && column.is_sparse()) return bin_edges_of_stored(column, rows_, weight_, *whole_, max_bins_);
    if (weight_ == nullptr && has_short_keys(column)) return bin_edges(keys_[i], max_bins_, spare_);
    return bin_edges(column, rows_, weight_, max_bins_, sorter_);
  }

  static void take_categories(const Column& column, CodedColumn& coded) {
    constexpr std::uint32_t most = 0xfffe;
    coded.is_category = true;
    coded.has_missing = true;
    coded.n_codes = std::min(column.n_categories, most) + 1;
  }

  static void take_edges(std::vector<double> edges, bool has_missing, CodedColumn& coded) {
    coded.edges = std::move(edges);
    coded.has_missing = has_missing;
    coded.n_codes = static_cast<std::uint32_t>(coded.edges.size()) + 1 + has_missing;
  }

  const Table& table_;
  const std::span<const Row> rows_;
  const double* weight_;
  const std::uint32_t max_bins_;
  const std::optional<double> whole_;  // total weight of the rows if every weight is a whole number
  ColumnSorter sorter_;
  std::vector<std::vector<std::uint32_t>> keys_;
  std::vector<std::uint32_t> spare_;
};

}  // namespace

std::vector<Row> Coding::rows_to_learn_from(std::size_t n_rows, const double* weight) {
  constexpr std::size_t most = 200'000;
  std::vector<Row> rows;
  for (std::size_t r = 0; r < n_rows; ++r)
    if (weight == nullptr || weight[r] > 0) rows.push_back(static_cast<Row>(r));
  if (rows.size() <= most) return rows;
  std::vector<Row> some(most);
  for (std::size_t i = 0; i < most; ++i) some[i] = rows[i * rows.size() / most];
  return some;
}

Coding Coding::learn(const Table& table, const Table* validation, const double* weight, std::uint32_t max_bins,
                     int n_threads, Interrupt& interrupt) {
  std::vector<std::uint8_t> missing(table.n_columns(), 0);
  const auto mark = [&](const Table& some, const double* weights) {
    mark_missing(some, weights, n_threads, missing);
    mark_missing_stored(some, weights, n_threads, missing);
  };
  mark(table, weight);
  if (validation != nullptr) mark(*validation, nullptr);
  return learn(table, rows_to_learn_from(table.n_rows, weight), weight, missing, max_bins, n_threads, interrupt);
}

Coding Coding::learn(const Table& table, const std::vector<Row>& rows, const double* weight,
                     const std::vector<std::uint8_t>& missing, std::uint32_t max_bins, int n_threads,
                     Interrupt& interrupt) {
  Coding coding;
  const std::size_t n_columns = table.n_columns();
  coding.columns.resize(n_columns);
  std::vector<ColumnCutter> cutters(static_cast<std::size_t>(n_threads), {table, rows, weight, max_bins});
  const auto n_beside = std::clamp<std::size_t>(n_columns / (4 * static_cast<std::size_t>(n_threads)), 1, 8);
  const double estimated_ns = 20.0 * static_cast<double>(n_columns) * static_cast<double>(rows.size());
  parallel_for_if_worth(
      estimated_ns, (n_columns + n_beside - 1) / n_beside, n_threads, [&](std::size_t group, int worker) {
        interrupt.check();
        cutters[static_cast<std::size_t>(worker)].cut(group * n_beside, std::min(n_columns, (group + 1) * n_beside),
                                                      missing, coding.columns.data());
      });
  return coding;
}

namespace {

// A sparse column is listed if at most one in this many rows is non-zero.
constexpr std::size_t least_rows_an_entry = 8;

// Codes one column that is not listed, for a block of rows.
class ColumnCoder {
 public:
  ColumnCoder(const Column& column, const CodedColumn& coded) : column_(column), coded_(coded), search_(coded.edges) {}

  // The rows are rows[0] … rows[0] + n - 1.
  void code(const Row* rows, std::size_t n, std::uint32_t* out) const {
    if (coded_.is_category) {
      const std::uint32_t last = coded_.n_codes - 1;
      read_rows(column_, rows, n,
                [&](std::size_t i, double v) { out[i] = v == v && v < last ? static_cast<std::uint32_t>(v) : last; });
      return;
    }
    if (has_short_keys(column_))
      code_numbers<float>(rows, n, out);
    else
      code_numbers<double>(rows, n, out);
  }

 private:
  template <class T>  // a type that holds all values of the column
  void code_numbers(const Row* rows, std::size_t n, std::uint32_t* out) const {
    std::array<T, block_rows> values;
    read_rows(column_, rows, n, [&](std::size_t i, double v) { values[i] = static_cast<T>(v); });
    search_.find(values.data(), n, out);
    if (coded_.has_missing)
      for (std::size_t i = 0; i < n; ++i) out[i] = values[i] == values[i] ? out[i] : coded_.n_codes - 1;
  }

  const Column& column_;
  const CodedColumn& coded_;
  EdgeSearch search_;
};

template <class Code>
void store(const std::uint32_t* codes, std::size_t n, std::uint8_t* column, std::size_t begin) {
  Code* out = reinterpret_cast<Code*>(column) + begin;
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Code>(codes[i]);
}

// Codes the stored values of sparse columns on one thread.
class ColumnLister {
 public:
  // Writes the entries whose code differs from that of 0 to `rows` and `codes`, which have room for all, and their
  // number to list.end.
  void list(const Column& column, const CodedColumn& coded, Codes::List& list, Row* rows, std::uint16_t* codes) {
    const EdgeSearch search(coded.edges);
    const double zero = 0;
    search.find(&zero, 1, &list.common);
    values_.resize(column.n_sparse);
    found_.resize(column.n_sparse);
    std::size_t n = 0;
    read_stored(column, 0, SIZE_MAX, [&](Row, double v) { values_[n++] = v; });
    search.find(values_.data(), values_.size(), found_.data());
    n = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool is_missing = coded.has_missing && values_[i] != values_[i];
      const std::uint32_t code = is_missing ? coded.n_codes - 1 : found_[i];
      rows[n] = static_cast<Row>(column.sparse_rows[i]);
      codes[n] = static_cast<std::uint16_t>(code);
      n += code != list.common;
    }
    list.end = list.begin + n;
  }

 private:
  std::vector<double> values_;
  std::vector<std::uint32_t> found_;
};

// Assigns each column its position for the number of coded rows.
void lay_out(const Table& table, const Coding& coding, bool lists_columns, Codes& codes) {
  std::size_t n_bytes = 0, n_listed = 0;
  codes.lists.resize(table.n_columns());
  for (std::size_t f = 0; f < table.n_columns(); ++f) {
    const Column& column = table.columns[f];
    codes.first.push_back(n_bytes);
    Codes::List& list = codes.lists[f];
    list.is_listed = lists_columns && column.is_sparse() && column.n_sparse * least_rows_an_entry <= codes.n_rows;
    list.begin = list.end = n_listed;
    if (list.is_listed)
      n_listed += column.n_sparse;
    else
      n_bytes += (codes.n_rows * (coding.columns[f].is_wide ? 2 : 1) + 63) / 64 * 64;
  }
  codes.bytes = LargeArray<std::uint8_t>(n_bytes + 4, codes.spill);
  codes.listed_rows.resize(n_listed);
  codes.listed_codes.resize(n_listed);
}

void list_columns(const Table& table, const Coding& coding, Codes& codes, int n_threads, Interrupt& interrupt) {
  constexpr std::size_t beside = 16;
  const std::size_t n_columns = table.n_columns();
  std::vector<ColumnLister> listers(static_cast<std::size_t>(n_threads));
  const double estimated_ns = 10.0 * static_cast<double>(codes.listed_rows.size());
  parallel_for_if_worth(estimated_ns, (n_columns + beside - 1) / beside, n_threads, [&](std::size_t group, int worker) {
    interrupt.check();
    for (std::size_t f = group * beside; f < std::min(n_columns, (group + 1) * beside); ++f) {
      Codes::List& list = codes.lists[f];
      if (list.is_listed)
        listers[static_cast<std::size_t>(worker)].list(table.columns[f], coding.columns[f], list,
                                                       codes.listed_rows.data() + list.begin,
                                                       codes.listed_codes.data() + list.begin);
    }
  });
}

// The columns that are not listed, for the rows of one table; its first row is row `first` of the codes.
void code_rows(const Table& table, const Coding& coding, std::size_t first, Codes& codes, int n_threads,
               Interrupt& interrupt) {
  std::vector<ColumnCoder> coders;
  std::vector<std::size_t> columns;  // by coder
  for (std::size_t f = 0; f < table.n_columns(); ++f) {
    if (codes.lists[f].is_listed) continue;
    coders.emplace_back(table.columns[f], coding.columns[f]);
    columns.push_back(f);
  }
  const std::size_t n_blocks = columns.empty() ? 0 : (table.n_rows + block_rows - 1) / block_rows;
  const double estimated_ns = 5.0 * static_cast<double>(table.n_rows) * static_cast<double>(columns.size());
  parallel_for_near_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
    interrupt.check();
    const std::size_t begin = block * block_rows, n = std::min(block_rows, table.n_rows - begin);
    std::array<Row, block_rows> rows;
    std::array<std::uint32_t, block_rows> found;
    table.touch(n);
    if (codes.spill) codes.spill->touch(2 * n * columns.size());
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t f = columns[i];
      coders[i].code(rows.data(), n, found.data());
      const auto store_codes = coding.columns[f].is_wide ? store<std::uint16_t> : store<std::uint8_t>;
      store_codes(found.data(), n, codes.bytes.data() + codes.first[f], first + begin);
    }
  });
}

}  // namespace

std::uint32_t Codes::listed_code(std::uint32_t f, Row r) const {
  const std::span<const Row> rows = rows_off(f);
  const auto at = std::lower_bound(rows.begin(), rows.end(), r);
  return at == rows.end() || *at != r ? lists[f].common : codes_off(f)[static_cast<std::size_t>(at - rows.begin())];
}

Codes encode(const Table& table, const Coding& coding, bool lists_columns, int n_threads, Interrupt& interrupt) {
  Codes codes;
  codes.n_rows = table.n_rows;
  codes.spill = table.spill;
  lay_out(table, coding, lists_columns, codes);
  list_columns(table, coding, codes, n_threads, interrupt);
  code_rows(table, coding, 0, codes, n_threads, interrupt);
  codes.bytes.seal();
  return codes;
}

Codes encode(std::span<const Table* const> tables, const Coding& coding, int n_threads, Interrupt& interrupt) {
  Codes codes;
  for (const Table* table : tables) codes.n_rows += table->n_rows;
  lay_out(*tables.front(), coding, false, codes);
  std::size_t first = 0;
  for (const Table* table : tables) {
    code_rows(*table, coding, first, codes, n_threads, interrupt);
    first += table->n_rows;
  }
  codes.bytes.seal();
  return codes;
}

}  // namespace spinney
