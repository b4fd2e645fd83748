#include "data/entries.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

struct Found {  // of one column, in row order
  std::vector<Row> rows;
  std::vector<double> values;
  void add(Row row, double v) {
    if (v == 0) return;
    rows.push_back(row);
    values.push_back(v);
  }
};

// Counts what was found in all columns, and tells when it is too much.
class Room {
 public:
  explicit Room(std::size_t most) : left_(static_cast<std::int64_t>(most)) {}
  bool take(std::size_t n) { return (left_ -= static_cast<std::int64_t>(n)) >= 0; }
  bool is_left() const { return left_ >= 0; }

 private:
  std::atomic<std::int64_t> left_;
};

void find_stored(const Column& column, Found& found, Room& room) {
  if (!room.take(0)) return;
  found.rows.reserve(column.n_sparse);
  found.values.reserve(column.n_sparse);
  read_stored(column, 0, SIZE_MAX, [&](Row row, double v) { found.add(row, v); });
  room.take(found.rows.size());
}

// The same of columns that are stored in full; tables without zeros are told from their first rows.
void find_in_all(const Table& table, std::span<const std::size_t> group, std::size_t least_rows,
                 std::vector<Found>& found, Room& room, Interrupt& interrupt) {
  constexpr std::size_t chunk = 256;  // rows that stay in cache from one column to the next
  std::array<Row, chunk> rows;
  for (std::size_t begin = 0; begin < table.n_rows && room.is_left(); begin += chunk) {
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
    room.take(full_at_first ? table.n_rows * table.n_columns() : n_found);
  }
}

// Sorts the entries of a column to their place.
void sort_found(const Found& found, ColumnSorter& sorter, Entries::OfColumn& column, Entry* out,
                std::vector<double>& values) {
  values.clear();
  if (found.rows.empty()) return;
  const auto first = found.values[0];
  column.is_flag = std::all_of(found.values.begin(), found.values.end(), [&](double v) { return v == first; });
  if (column.is_flag) {
    for (std::size_t i = 0; i < found.rows.size(); ++i) out[i] = entry_of(0, found.rows[i]);
    values.push_back(first);
  } else {
    const std::span<const Entry> sorted = sorter.sort(found.values);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const std::uint32_t at = row_of(sorted[i]), code = code_of(sorted[i]);
      out[i] = entry_of(code, found.rows[at]);
      if (code != missing_code && code == values.size()) values.push_back(found.values[at]);
    }
  }
  column.first_above = static_cast<std::uint32_t>(std::lower_bound(values.begin(), values.end(), 0.0) - values.begin());
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
  Room room(table.n_rows * n_columns / least_rows);
  std::vector<Found> found(n_columns);
  const auto n_groups = std::min<std::size_t>(static_cast<std::size_t>(n_threads), n_columns);
  std::vector<std::vector<std::size_t>> full(n_groups);  // columns that are stored in full
  for (std::size_t f = 0; f < n_columns; ++f)
    if (!table.columns[f].is_sparse()) full[f % n_groups].push_back(f);
  parallel_for(n_groups, n_threads, [&](std::size_t g, int) {
    if (!full[g].empty()) find_in_all(table, full[g], least_rows, found, room, interrupt);
    for (std::size_t f = g; f < n_columns; f += n_groups)
      if (table.columns[f].is_sparse()) find_stored(table.columns[f], found[f], room);
  });
  if (!room.is_left()) return made;
  made.columns.resize(n_columns);
  std::size_t n_entries = 0;
  for (std::size_t f = 0; f < n_columns; ++f) {
    made.columns[f].begin = n_entries;
    made.columns[f].end = n_entries += found[f].rows.size();
  }
  made.by_column.resize(n_entries);
  std::vector<std::vector<double>> values(n_columns);
  parallel_for(n_groups, n_threads, [&](std::size_t g, int) {
    ColumnSorter sorter;
    for (std::size_t f = g; f < n_columns; f += n_groups) {
      sort_found(found[f], sorter, made.columns[f], made.by_column.data() + made.columns[f].begin, values[f]);
      found[f] = {};
    }
  });
  for (std::size_t f = 0; f < n_columns; ++f) {
    made.columns[f].values = made.values.size();
    if (made.columns[f].is_flag) made.n_of_flags += made.columns[f].end - made.columns[f].begin;
    made.values.insert(made.values.end(), values[f].begin(), values[f].end());
  }
  turn(made, table.n_rows);
  return made;
}

}  // namespace spinney
