#include "data/ranks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

// Numbers distinct values in order of appearance.
class ValueNumbers {
 public:
  std::uint32_t number_of(double v) {
    const std::uint64_t key = std::bit_cast<std::uint64_t>(v + 0.0);  // -0 equals +0
    if (key != last_.key || last_.number == none) last_ = {key, find(key)};
    return last_.number;
  }
  std::size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = none;
  };
  std::uint32_t find(std::uint64_t key) {
    for (std::size_t at = hash(key);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].number == none) return add(key, at);
      if (slots_[at].key == key) return slots_[at].number;
    }
  }
  std::size_t hash(std::uint64_t key) const {
    const std::uint64_t folded = key ^ key >> 32;  // the low bits of numbers with few digits are 0
    return static_cast<std::size_t>((folded * 0x9e3779b97f4a7c15u) >> 40) & (slots_.size() - 1);
  }
  std::uint32_t add(std::uint64_t key, std::size_t at) {
    const auto number = static_cast<std::uint32_t>(values_.size());
    values_.push_back(std::bit_cast<double>(key));
    slots_[at] = {key, number};
    if (2 * values_.size() > slots_.size()) grow();
    return number;
  }
  void grow() {
    slots_.assign(4 * slots_.size(), {});
    for (std::uint32_t i = 0; i < values_.size(); ++i) {
      const std::uint64_t key = std::bit_cast<std::uint64_t>(values_[i]);
      std::size_t at = hash(key);
      while (slots_[at].number != none) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {key, i};
    }
  }

  Slot last_;  // of the previous value: many columns are 0 in most rows
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<double> values_;
};

struct ColumnRanks {
  std::vector<std::uint16_t> by_row;
  std::uint32_t n_values = 0;
  std::vector<double> values;

  bool is_flag() const {  // only ranks 0 and 1
    std::uint16_t any = 0;
    for (const std::uint16_t rank : by_row) any |= rank;
    return n_values == 2 && any == 1;
  }
};

constexpr std::size_t chunk = 1024;  // rows that stay in cache from one column to the next

// If most values are rare, sorting is as fast: a node has as many cells as rows.
bool repeat(std::size_t n_values, std::size_t n_columns, std::size_t n_rows) {
  constexpr std::size_t least_rows = 8;  // per value, on average
  return n_values * least_rows <= n_rows * n_columns;
}

// Numbers the values of some columns in order of appearance; false if there are too many. The largest number means
// missing.
bool number_values(const Table& table, std::span<const std::size_t> group, std::uint32_t most_values,
                   std::vector<ColumnRanks>& columns, Interrupt& interrupt) {
  constexpr std::uint16_t missing = 0xffff;
  std::vector<ValueNumbers> numbers(group.size());
  std::array<Row, chunk> rows;
  for (const std::size_t f : group) columns[f].by_row.resize(table.n_rows);
  for (std::size_t begin = 0; begin < table.n_rows; begin += chunk) {
    interrupt.check();
    const std::size_t n = std::min(chunk, table.n_rows - begin);
    std::iota(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), static_cast<Row>(begin));
    for (std::size_t g = 0; g < group.size(); ++g) {
      std::uint16_t* out = columns[group[g]].by_row.data() + begin;
      ValueNumbers& seen = numbers[g];
      read_rows(table.columns[group[g]], rows.data(), n, [&](std::size_t i, double v) {
        out[i] = v != v ? missing : static_cast<std::uint16_t>(seen.number_of(v));
      });
      if (seen.size() > most_values) return false;
    }
    std::size_t n_seen = 0;
    for (const ValueNumbers& seen : numbers) n_seen += seen.size();
    const bool rare_at_first = begin == 0 && n_seen > group.size() * n / 2;
    if (rare_at_first || !repeat(n_seen, group.size(), table.n_rows)) return false;
  }
  for (std::size_t g = 0; g < group.size(); ++g) columns[group[g]].values = numbers[g].values();
  return true;
}

// Converts numbers in order of appearance to ranks.
void rank_values(ColumnRanks& column) {
  std::vector<std::uint32_t> order(column.values.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return column.values[a] < column.values[b]; });
  std::vector<std::uint16_t> rank(0x10000, static_cast<std::uint16_t>(order.size()));
  for (std::size_t r = 0; r < order.size(); ++r) rank[order[r]] = static_cast<std::uint16_t>(r);
  std::sort(column.values.begin(), column.values.end());
  column.n_values = static_cast<std::uint32_t>(order.size());
  for (std::uint16_t& number : column.by_row) number = rank[number];
}

bool rank_bins(const BinnedColumn& binned, std::size_t n_rows, std::uint32_t most_values, ColumnRanks& made) {
  if (binned.n_bins > most_values || !repeat(binned.n_bins, 1, n_rows)) return false;
  made.n_values = binned.n_bins;
  made.by_row.resize(n_rows);
  for (std::size_t r = 0; r < n_rows; ++r)
    made.by_row[r] = static_cast<std::uint16_t>(binned.code(static_cast<Row>(r)));
  return true;
}

void lay_out(const std::vector<ColumnRanks>& columns, RowRanks& made) {
  std::size_t at = 0, n_bytes = 1;
  for (const ColumnRanks& column : columns) {
    RowRanks::Place& place = made.places.emplace_back();
    place.n_values = column.n_values;
    if (made.n_flags < RowRanks::most_flags && column.is_flag()) {
      place.flag = made.n_flags++;
      continue;
    }
    const auto width = static_cast<std::size_t>(std::bit_width(column.n_values));
    place.byte = static_cast<std::uint32_t>(at / 8);
    place.shift = static_cast<std::uint32_t>(at % 8);
    place.mask = (std::uint32_t{1} << width) - 1;
    n_bytes = place.byte + sizeof(std::uint32_t);
    at += width;
  }
  made.row_bytes = (n_bytes + 7) / 8 * 8;
}

// Writes the ranks of some rows.
void pack_rows(const std::vector<ColumnRanks>& columns, std::size_t begin, std::size_t end, RowRanks& made) {
  std::uint64_t* const flags = made.flags.data();
  std::memset(made.bits.data() + begin * made.row_bytes, 0, (end - begin) * made.row_bytes);
  if (made.n_flags > 0) std::fill(flags + begin, flags + end, 0);
  for (std::size_t f = 0; f < columns.size(); ++f) {
    const RowRanks::Place& place = made.places[f];
    const std::uint16_t* const ranks = columns[f].by_row.data();
    if (place.is_flag()) {
      for (std::size_t r = begin; r < end; ++r) flags[r] |= std::uint64_t{ranks[r]} << place.flag;
      continue;
    }
    std::uint8_t* out = made.bits.data() + begin * made.row_bytes + place.byte;
    for (std::size_t r = begin; r < end; ++r, out += made.row_bytes) {
      std::uint32_t word;
      std::memcpy(&word, out, sizeof word);
      word |= std::uint32_t{ranks[r]} << place.shift;
      std::memcpy(out, &word, sizeof word);
    }
  }
}

}  // namespace

RowRanks make_row_ranks(const Table& table, const std::vector<BinnedColumn>& binned, std::uint32_t most_values,
                        int n_threads, Interrupt& interrupt) {
  RowRanks made;
  std::vector<ColumnRanks> columns(table.n_columns());
  const auto n_groups = std::min<std::size_t>(static_cast<std::size_t>(n_threads), table.n_columns());
  std::vector<std::vector<std::size_t>> groups(n_groups);
  for (std::size_t f = 0; f < table.n_columns(); ++f) groups[f % n_groups].push_back(f);
  std::atomic<bool> fits = true;
  parallel_for(n_groups, n_threads, [&](std::size_t g, int) {
    if (binned.empty()) {
      if (!number_values(table, groups[g], most_values, columns, interrupt)) fits = false;
      if (!fits) return;
      for (const std::size_t f : groups[g]) rank_values(columns[f]);
    } else {
      for (const std::size_t f : groups[g])
        if (!rank_bins(binned[f], table.n_rows, most_values, columns[f])) fits = false;
    }
  });
  if (!fits || table.n_rows == 0) return made;
  for (ColumnRanks& column : columns) made.values.push_back(std::move(column.values));
  lay_out(columns, made);
  made.bits = LargeArray<std::uint8_t>(table.n_rows * made.row_bytes);
  if (made.n_flags > 0) made.flags = LargeArray<std::uint64_t>(table.n_rows);
  const std::size_t n_chunks = (table.n_rows + chunk - 1) / chunk;
  parallel_for(n_chunks, n_threads, [&](std::size_t c, int) {
    interrupt.check();
    pack_rows(columns, c * chunk, std::min(table.n_rows, (c + 1) * chunk), made);
  });
  return made;
}

}  // namespace spinney
