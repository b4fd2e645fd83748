#include "grow/sparse_columns.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace spinney {

void SparseBlock::start(const OpenNode& root, std::span<Row> rows) {
  rows_ = rows;
  const std::size_t n_rows = rules_.table.n_rows, n_columns = rules_.table.n_columns();
  gathers_ = rules_.draws_columns();
  row_entries_ = static_cast<double>(all_.by_column.size()) / static_cast<double>(n_rows);
  sums_ = can_sum() && all_.n_of_flags >= all_.by_column.size() / 2;
  side_.assign(n_rows, 0);
  place_.assign(n_rows, UINT32_MAX);
  for (std::uint32_t i = 0; i < rows.size(); ++i) place_[rows[i]] = i;
  State& first = pending_.emplace_back();
  first.end = rows.size();
  if (gathers_) {
    requested_.assign(n_columns, 0);
  } else {
    run_at_.assign(n_columns, 0);
    touched_.assign(n_columns, 0);
    start_runs(root);
  }
}

// The entries of the block's rows. Summed columns need none.
void SparseBlock::start_runs(const OpenNode& root) {
  std::vector<Run>& runs = pending_.back().runs;
  for (const std::uint32_t f : root.features) {
    if (sums_ && all_.columns[f].is_flag) continue;
    const std::size_t begin = entries_.size();
    for (const Entry e : all_.of_column(f))
      if (place_[row_of(e)] != UINT32_MAX) entries_.push_back(e);
    if (entries_.size() > begin) runs.push_back({f, begin, entries_.size()});
  }
}

void SparseBlock::enter(const OpenNode& node, std::span<const std::uint32_t> columns) {
  while (!state_.is_of(node)) {  // nodes that could not be split were not searched
    if (!state_.sums.empty()) spare_sums_.push_back(std::move(state_.sums));
    state_ = std::move(pending_.back());
    pending_.pop_back();
  }
  for (std::uint32_t i = 0; i < state_.runs.size(); ++i) run_at_[state_.runs[i].column] = i;
  if (sums_) sum_flags(node, columns);
}

// Where every column is tried, constant columns are no longer requested, and their sums are meaningless.
void SparseBlock::sum_flags(const OpenNode& node, std::span<const std::uint32_t> columns) {
  if (!state_.sums.empty() || !are_sums_worth(node)) return;
  if (!spare_sums_.empty()) {
    state_.sums = std::move(spare_sums_.back());
    spare_sums_.pop_back();
  }
  if (gathers_) state_.sums.clear();
  state_.sums.resize(all_.columns.size());
  for (const std::uint32_t f : columns) state_.sums[f] = {};
  add_to_sums(rows_of(node), state_.sums);
}

// Where few columns are tried, a node with few entries counts the requested ones.
bool SparseBlock::are_sums_worth(const OpenNode& node) const {
  return !gathers_ || 2 * node.n() * row_entries_ >= static_cast<double>(all_.columns.size());
}

bool SparseBlock::gathers_by_column(const OpenNode& node, std::span<const std::uint32_t> columns) const {
  if (!gathers_) return false;
  std::size_t n_entries = 0;  // of the columns
  for (const std::uint32_t f : columns)
    if (!is_summed(f)) n_entries += all_.columns[f].end - all_.columns[f].begin;
  return static_cast<double>(n_entries) <= node.n() * row_entries_;
}

void SparseBlock::gather(const OpenNode& node, std::span<const std::uint32_t> columns, bool by_column) {
  in_place_ = false;
  if (!gathers_) return;
  gathered_.assign(columns.size() + 1, 0);
  if (by_column)
    gather_by_column(node, columns);
  else
    gather_by_row(node, columns);
}

void SparseBlock::gather_by_column(const OpenNode& node, std::span<const std::uint32_t> columns) {
  constexpr std::size_t ahead = 16;  // columns; they are far apart in memory
  std::size_t n_entries = 0;
  for (const std::uint32_t f : columns) n_entries += all_.of_column(f).size();
  entries_.resize(std::max(entries_.size(), n_entries + 1));
  Entry* out = entries_.data();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    gathered_[c] = static_cast<std::size_t>(out - entries_.data());
    if (c + ahead < columns.size()) fetch(columns[c + ahead]);
    if (!is_summed(columns[c])) out = copy_entries(node, columns[c], out);
  }
  gathered_[columns.size()] = static_cast<std::size_t>(out - entries_.data());
}

// Every entry is written and retained if it belongs to the node.
Entry* SparseBlock::copy_entries(const OpenNode& node, std::uint32_t f, Entry* out) const {
  const std::uint32_t* place = place_.data();
  const auto begin = static_cast<std::uint32_t>(node.begin), n_rows = node.n();
  for (const Entry e : all_.of_column(f)) {
    *out = e;
    out += place[row_of(e)] - begin < n_rows;
  }
  return out;
}

void SparseBlock::gather_none(std::size_t n_columns) {
  in_place_ = true;
  gathered_.assign(n_columns + 1, 0);
}

void SparseBlock::gather_one(const OpenNode& node, std::uint32_t f, std::size_t c) {
  entries_.resize(std::max(entries_.size(), all_.of_column(f).size() + 1));
  gathered_[c] = 0;
  gathered_[c + 1] = static_cast<std::size_t>(copy_entries(node, f, entries_.data()) - entries_.data());
}

// The last cache lines of a column's entries.
void SparseBlock::fetch_last(std::uint32_t f) const {
  constexpr std::size_t line = 64 / sizeof(Entry), most_lines = 4;
  const std::size_t begin = all_.columns[f].begin, end = all_.columns[f].end;
  for (std::size_t i = 0; i < most_lines && begin + i * line < end; ++i)
    __builtin_prefetch(all_.by_column.data() + end - 1 - i * line);
}

void SparseBlock::fetch(std::uint32_t f) const {
  constexpr std::size_t line = 64 / sizeof(Entry), most_lines = 8;
  const std::size_t begin = all_.columns[f].begin, end = all_.columns[f].end;
  for (std::size_t at = begin; at < std::min(end, begin + most_lines * line); at += line)
    __builtin_prefetch(all_.by_column.data() + at);
}

void SparseBlock::gather_by_row(const OpenNode& node, std::span<const std::uint32_t> columns) {
  for (std::uint32_t c = 0; c < columns.size(); ++c)
    if (!is_summed(columns[c])) requested_[columns[c]] = c + 1;
  found_.clear();
  for (const Row r : rows_of(node))
    for (std::size_t i = all_.row_begins[r]; i < all_.row_begins[r + 1]; ++i)
      if (const std::uint32_t requested = requested_[all_.row_columns[i]]; requested != 0) {
        found_.push_back({requested, entry_of(all_.row_codes[i], r)});
        ++gathered_[requested];
      }
  for (const std::uint32_t f : columns) requested_[f] = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) gathered_[c + 1] += gathered_[c];
  entries_.resize(std::max(entries_.size(), found_.size()));
  for (std::size_t i = found_.size(); i-- > 0;) entries_[--gathered_[found_[i].column]] = found_[i].entry;
  // each index was moved from its end to its begin, and is one position too far
  std::copy(gathered_.begin() + 1, gathered_.end(), gathered_.begin());
  gathered_.back() = found_.size();
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (gathered_[c + 1] - gathered_[c] > 1 && !all_.columns[columns[c]].is_flag)
      std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(gathered_[c]),
                entries_.begin() + static_cast<std::ptrdiff_t>(gathered_[c + 1]));
}

std::size_t SparseBlock::partition(const OpenNode& node, const Choice& choice) {
  for (const Row r : marked_) side_[r] = 0;
  marked_.clear();
  if (is_summed(choice.feature))
    mark_flag(node, choice);
  else
    mark_entries(node, choice);
  return partition_rows(node);
}

void SparseBlock::mark(Row row) {
  side_[row] = 1;
  marked_.push_back(row);
}

// A flag's rows are one side, all others the other.
void SparseBlock::mark_flag(const OpenNode& node, const Choice& choice) {
  const std::uint32_t f = choice.feature;
  zeros_left_ = is_above(f);
  below_ = zeros_left_ ? 0.0 : all_.value(f, 0);
  above_ = zeros_left_ ? all_.value(f, 0) : 0.0;
  const std::span<const Entry> all = all_.of_column(f);
  if (all.size() <= node.n()) {
    for (const Entry e : all)
      if (is_in(row_of(e), node)) mark(row_of(e));
    return;
  }
  for (const Row r : rows_of(node)) {
    const std::span<const std::uint32_t> columns = all_.columns_of(r);
    if (std::binary_search(columns.begin(), columns.end(), f)) mark(r);
  }
}

void SparseBlock::mark_entries(const OpenNode& node, const Choice& choice) {
  const Candidate& c = choice.candidate;
  const std::uint32_t f = choice.feature;
  if (in_place_) gather_one(node, f, c.code_below);
  const EntryRun run = run_of(node, f, c.code_below);
  const std::uint32_t at = in_place_ ? run.at_of(all_.values.data() + all_.columns[f].values, c.threshold) : c.at;
  const std::size_t n_left = c.missing_alone ? run.n_present : at / 2;
  zeros_left_ = c.missing_alone || at % 2 != 0;
  for (std::size_t i = 0; i < run.n_present; ++i)
    if ((i < n_left) != zeros_left_) mark(run.row(i));
  for (std::size_t i = run.n_present; i < run.entries.size(); ++i)
    if (c.missing_left != zeros_left_) mark(run.row(i));
  if (c.missing_alone || rules_.params.random_cuts) return;
  const bool next_to_zeros = n_left == run.n_below && run.n_zeros > 0;
  below_ = next_to_zeros && zeros_left_ ? 0.0 : all_.value(f, run.code(n_left - 1));
  above_ = next_to_zeros && !zeros_left_ ? 0.0 : all_.value(f, run.code(n_left));
}

// Swaps the marked rows, which are few in most nodes, with rows in their target range. The order of rows within a node
// does not matter.
std::size_t SparseBlock::partition_rows(const OpenNode& node) {
  const std::size_t n_marked = marked_.size(), begin = zeros_left_ ? node.end - n_marked : node.begin;
  std::size_t next = begin;
  for (const Row row : marked_) {
    const std::size_t at = place_[row];
    if (at - begin < n_marked) continue;
    while (side_[rows_[next]] != 0) ++next;
    const Row other = rows_[next];
    rows_[at] = other;
    place_[other] = static_cast<std::uint32_t>(at);
    rows_[next] = row;
    place_[row] = static_cast<std::uint32_t>(next++);
  }
  return zeros_left_ ? node.end - n_marked : node.begin + n_marked;
}

SplitRecord SparseBlock::describe(const Choice& choice, bool left_heavier) {
  SplitRecord split = describe_sides(rules_, choice, left_heavier, {});
  const Candidate& c = choice.candidate;
  if (c.missing_alone)
    split.threshold = std::numeric_limits<double>::infinity();
  else
    split.threshold = rules_.params.random_cuts ? c.threshold : cut_of(rules_.params, choice.feature, below_, above_);
  return split;
}

void SparseBlock::follow(const OpenNode&, const OpenNode& left, const OpenNode& right) {
  const bool small_is_left = left.n() < right.n();
  const OpenNode& small = small_is_left ? left : right;
  const OpenNode& large = small_is_left ? right : left;
  State of_left, of_right;
  of_left.begin = left.begin;
  of_left.end = of_right.begin = right.begin;
  of_right.end = right.end;
  if (!gathers_) partition_runs(small, small_is_left, of_left, of_right);
  if (!state_.sums.empty() && are_sums_worth(large)) {
    State& larger_state = small_is_left ? of_right : of_left;
    larger_state.sums = std::move(state_.sums);
    state_.sums.clear();
    take_from_sums(rows_of(small), larger_state.sums);
  }
  pending_.push_back(std::move(of_right));
  pending_.push_back(std::move(of_left));
}

// Runs without an entry on the smaller side pass to the larger side unchanged.
void SparseBlock::partition_runs(const OpenNode& small, bool small_is_left, State& left, State& right) {
  ++n_splits_;
  for (const Row r : rows_of(small))
    for (const std::uint32_t f : all_.columns_of(r)) touched_[f] = n_splits_;
  State& larger_state = small_is_left ? right : left;
  larger_state.runs.reserve(state_.runs.size());
  for (const Run& run : state_.runs) {
    if (touched_[run.column] != n_splits_) {
      larger_state.runs.push_back(run);
      continue;
    }
    const std::size_t middle = run.begin + partition_entries(run);
    if (middle > run.begin) left.runs.push_back({run.column, run.begin, middle});
    if (middle < run.end) right.runs.push_back({run.column, middle, run.end});
  }
}

std::size_t SparseBlock::partition_entries(const Run& run) {
  const std::size_t n = run.end - run.begin;
  Entry* entries = entries_.data() + run.begin;
  spare_entries_.resize(std::max(spare_entries_.size(), n));
  std::size_t n_left = 0, n_right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Entry e = entries[i];
    const std::size_t left = goes_left(row_of(e));
    entries[n_left] = spare_entries_[n_right] = e;
    n_left += left;
    n_right += 1 - left;
  }
  std::copy_n(spare_entries_.begin(), n_right, entries + n_left);
  return n_left;
}

}  // namespace spinney
