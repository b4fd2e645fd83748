#include "data/entries.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

struct Found {  // entries of one column, in row order
  std::vector<Row> rows;
  std::vector<double> values;
  void add(Row row, double v) {
    if (v == 0) return;
    rows.push_back(row);
    values.push_back(v);
  }
  // The same for a sparse column.
  void read(const Column& column) {
    rows.resize(column.n_sparse);
    values.resize(column.n_sparse);
    std::size_t n = 0;
    read_stored(column, 0, SIZE_MAX, [&](Row row, double v) {  // every entry is written and retained if it is not 0
      rows[n] = row;
      values[n] = v;
      n += v != 0;
    });
    rows.resize(n);
    values.resize(n);
  }
};

// Counts the entries of all columns against a limit.
class EntryBudget {
 public:
  explicit EntryBudget(std::size_t most) : left_(static_cast<std::int64_t>(most)) {}
  bool take(std::size_t n) { return (left_ -= static_cast<std::int64_t>(n)) >= 0; }
  bool is_left() const { return left_ >= 0; }

 private:
  std::atomic<std::int64_t> left_;
};

std::size_t count_stored(const Column& column, EntryBudget& budget) {
  std::size_t n = 0;
  if (budget.is_left()) read_stored(column, 0, SIZE_MAX, [&](Row, double v) { n += v != 0; });
  budget.take(n);
  return n;
}

// The entries of dense columns; the first rows reveal tables without zeros.
void find_in_all(const Table& table, std::span<const std::size_t> group, std::size_t least_rows,
                 std::vector<Found>& found, EntryBudget& budget, Interrupt& interrupt) {
  constexpr std::size_t chunk = 256;  // rows that stay in cache from one column to the next
  std::array<Row, chunk> rows;
  for (std::size_t begin = 0; begin < table.n_rows && budget.is_left(); begin += chunk) {
    interrupt.check();
    const std::size_t n = std::min(chunk, table.n_rows - begin);
    std::iota(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), static_cast<Row>(begin));
    std::size_t n_found = 0;
    for (const std::size_t f : group) {
      const std::size_t before = found[f].rows.size();
      read_rows(table.columns[f], rows.data(), n, [&](std::size_t i, double v) { found[f].add(rows[i], v); });
      n_found += found[f].rows.size() - before;
    }
    const bool full_at_first = begin == 0 && n_found * least_rows > 2 * n * group.size();
    budget.take(full_at_first ? table.n_rows * table.n_columns() : n_found);
  }
}

// Sorts the entries of a column into place and appends its values.
void sort_found(const Found& found, ColumnSorter& sorter, Entries::OfColumn& column, Entry* out,
                std::vector<double>& values) {
  column.values = values.size();
  if (found.rows.empty()) return;
  const auto first = found.values[0];
  column.is_flag = std::all_of(found.values.begin(), found.values.end(), [&](double v) { return v == first; });
  if (column.is_flag) {
    for (std::size_t i = 0; i < found.rows.size(); ++i) out[i] = entry_of(0, found.rows[i]);
    values.push_back(first);
  } else {
    const std::span<const Entry> sorted = sorter.sort(found.values);
    std::uint32_t n_values = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const std::uint32_t at = row_of(sorted[i]), code = code_of(sorted[i]);
      out[i] = entry_of(code, found.rows[at]);
      if (code != n_values || code == missing_code) continue;
      values.push_back(found.values[at]);
      ++n_values;
    }
    column.has_missing = code_of(sorted.back()) == missing_code;
  }
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(column.values);
  column.first_above = static_cast<std::uint32_t>(std::lower_bound(begin, values.end(), 0.0) - begin);
}

// Adjacent columns that one thread sorts.
struct ColumnRun {
  std::size_t begin = 0, end = 0;
  std::vector<double> values;
};

// Splits the columns into runs with about equal numbers of entries.
std::vector<ColumnRun> split_columns(const std::vector<Entries::OfColumn>& columns, std::size_t n_runs) {
  std::vector<ColumnRun> runs(n_runs);
  const std::size_t n_entries = columns.back().end;
  std::size_t f = 0;
  for (std::size_t i = 0; i < n_runs; ++i) {
    runs[i].begin = f;
    while (f < columns.size() && (i + 1 == n_runs || columns[f].end <= n_entries * (i + 1) / n_runs)) ++f;
    runs[i].end = f;
  }
  return runs;
}

// Takes the entries found in dense columns, and reads those of sparse columns.
void sort_columns(const Table& table, std::vector<Found>& found, Entries& made, int n_threads) {
  constexpr std::size_t runs_per_thread = 4;
  std::vector<ColumnRun> runs = split_columns(made.columns, runs_per_thread * static_cast<std::size_t>(n_threads));
  parallel_for(runs.size(), n_threads, [&](std::size_t i, int) {
    ColumnSorter sorter;
    Found here;
    for (std::size_t f = runs[i].begin; f < runs[i].end; ++f) {
      if (table.columns[f].is_sparse())
        here.read(table.columns[f]);
      else
        here = std::move(found[f]);
      Entries::OfColumn& column = made.columns[f];
      sort_found(here, sorter, column, made.by_column.data() + column.begin, runs[i].values);
    }
  });
  for (const ColumnRun& run : runs) {
    for (std::size_t f = run.begin; f < run.end; ++f) {
      made.columns[f].values += made.values.size();
      if (made.columns[f].is_flag) made.n_of_flags += made.columns[f].end - made.columns[f].begin;
    }
    made.values.insert(made.values.end(), run.values.begin(), run.values.end());
  }
}

// The same entries row by row.
void turn(Entries& made, std::size_t n_rows) {
  made.row_begins.assign(n_rows + 1, 0);
  for (const Entry e : made.by_column) ++made.row_begins[row_of(e) + 1];
  std::partial_sum(made.row_begins.begin(), made.row_begins.end(), made.row_begins.begin());
  std::vector<std::size_t> next(made.row_begins.begin(), made.row_begins.end() - 1);
  made.row_columns.resize(made.by_column.size());
  made.row_codes.resize(made.by_column.size());
  for (std::uint32_t f = 0; f < made.columns.size(); ++f)
    for (const Entry e : made.of_column(f)) {
      const std::size_t at = next[row_of(e)]++;
      made.row_columns[at] = f;
      made.row_codes[at] = code_of(e);
    }
}

}  // namespace

Entries make_entries(const Table& table, std::size_t least_rows, int n_threads, Interrupt& interrupt) {
  Entries made;
  const std::size_t n_columns = table.n_columns();
  const auto is_category = [](const Column& c) { return c.is_category(); };
  if (std::any_of(table.columns.begin(), table.columns.end(), is_category)) return made;
  EntryBudget budget(table.n_rows * n_columns / least_rows);
  std::vector<Found> found(n_columns);  // of dense columns
  std::vector<std::size_t> n_found(n_columns);
  const auto n_groups = std::min<std::size_t>(static_cast<std::size_t>(n_threads), n_columns);
  std::vector<std::vector<std::size_t>> full(n_groups);
  for (std::size_t f = 0; f < n_columns; ++f)
    if (!table.columns[f].is_sparse()) full[f % n_groups].push_back(f);
  parallel_for(n_groups, n_threads, [&](std::size_t g, int) {
    if (!full[g].empty()) find_in_all(table, full[g], least_rows, found, budget, interrupt);
    for (std::size_t f = g; f < n_columns; f += n_groups)
      n_found[f] = table.columns[f].is_sparse() ? count_stored(table.columns[f], budget) : found[f].rows.size();
  });
  if (!budget.is_left()) return made;
  made.columns.resize(n_columns);
  std::size_t n_entries = 0;
  for (std::size_t f = 0; f < n_columns; ++f) {
    made.columns[f].begin = n_entries;
    made.columns[f].end = n_entries += n_found[f];
  }
  made.by_column.resize(n_entries);
  sort_columns(table, found, made, n_threads);
  turn(made, table.n_rows);
  return made;
}

}  // namespace spinney
