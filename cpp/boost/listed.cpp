#include "boost/listed.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace spinney {

ListedColumns::ListedColumns(const Coding& coding, const Codes& codes, std::vector<std::uint32_t> columns) {
  if (columns.empty()) return;
  row_begins_.assign(codes.n_rows + 1, 0);
  for (const std::uint32_t f : columns) {
    const std::uint32_t n_codes = coding.columns[f].n_codes;
    columns_.push_back({f, codes.lists[f].common, n_codes, static_cast<std::uint32_t>(n_cells_)});
    n_cells_ += n_codes;
    for (const Row r : codes.rows_off(f)) ++row_begins_[r + 1];
  }
  if (n_cells_ > UINT32_MAX) throw std::bad_alloc();
  std::partial_sum(row_begins_.begin(), row_begins_.end(), row_begins_.begin());
  entries_.resize(row_begins_.back());
  std::vector<std::size_t> next(row_begins_.begin(), row_begins_.end() - 1);
  for (std::uint32_t i = 0; i < columns.size(); ++i) {
    const auto rows = codes.rows_off(columns[i]);
    const auto off = codes.codes_off(columns[i]);
    for (std::size_t j = 0; j < rows.size(); ++j) entries_[next[rows[j]]++] = {i, columns_[i].first + off[j]};
  }
  entries_a_row_ = static_cast<double>(entries_.size()) / static_cast<double>(std::max<std::size_t>(1, codes.n_rows));
}

// Calls take(entry, pair) for the entries of each row. Entries ahead are prefetched, because they are scattered in
// memory.
template <class Take>
[[gnu::always_inline]] inline void ListedColumns::for_each_entry(const Packed* pairs, const Row* rows, std::size_t n,
                                                                 Take&& take) const {
  constexpr std::size_t ahead = 8;
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) __builtin_prefetch(entries_.data() + row_begins_[rows[i + ahead]]);
    const Packed pair = pairs[rows[i]];
    const Entry* end = entries_.data() + row_begins_[rows[i] + std::size_t{1}];
    for (const Entry* e = entries_.data() + row_begins_[rows[i]]; e != end; ++e) take(*e, pair);
  }
}

void ListedColumns::clear(Packed* histogram) const { std::fill_n(histogram, n_cells(), 0); }

void ListedColumns::add_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const {
  Packed* off = histogram + n_cells_;
  for_each_entry(pairs, rows, n, [&](Entry e, Packed pair) {
    histogram[e.cell] += pair;
    off[e.column] += pair;
  });
}

void ListedColumns::take_rows(const Packed* pairs, const Row* rows, std::size_t n, Packed* histogram) const {
  Packed* off = histogram + n_cells_;
  for_each_entry(pairs, rows, n, [&](Entry e, Packed pair) {
    histogram[e.cell] -= pair;
    off[e.column] -= pair;
  });
}

void ListedColumns::subtract(std::size_t begin, std::size_t end, Packed* large, const Packed* small) const {
  if (begin == end) return;
  const Listed& last = columns_[end - 1];
  const std::size_t first = columns_[begin].first;
  boost_kernels().subtract(large + first, small + first, last.first + last.n_codes - first);
  boost_kernels().subtract(large + n_cells_ + begin, small + n_cells_ + begin, end - begin);
}

// Sums by column, then the cells of columns with enough hessian. Returns whether there are any.
bool ListedColumns::find_cells(const Packed* pairs, const Row* rows, std::size_t n, double least,
                               ListedScratch& scratch) const {
  scratch.off.assign(columns_.size(), 0);
  Packed* off = scratch.off.data();
  for_each_entry(pairs, rows, n, [&](Entry e, Packed pair) { off[e.column] += pair; });
  scratch.first.assign(columns_.size(), none);
  std::uint32_t n_cells = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (static_cast<double>(hessian_of(off[i])) < least) continue;
    scratch.first[i] = n_cells;
    n_cells += columns_[i].n_codes;
  }
  if (n_cells == 0) return false;
  scratch.cells.assign(n_cells, 0);
  for_each_entry(pairs, rows, n, [&](Entry e, Packed pair) {
    const std::uint32_t first = scratch.first[e.column];
    if (first != none) scratch.cells[first + e.cell - columns_[e.column].first] += pair;
  });
  return true;
}

}  // namespace spinney
