#include "grow/sorted_columns.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "data/read.h"

namespace spinney {

void SortedBlock::start(const OpenNode& root, std::span<Row> rows) {
  rows_ = rows;
  block_rows_.assign(rows.begin(), rows.end());
  copy_target(rows);
  positions_.resize(rows.size());
  std::iota(positions_.begin(), positions_.end(), std::uint16_t{0});
  side_.assign(rows.size() + 3, 0);
  spare_.resize(rows.size() + 16);
  right_positions_.resize(rows.size());
  samples_ = rules_.params.max_features < rules_.table.n_columns();
  const Limits limits = rules_.limits(root, 0);
  cuts_compare_ = !rules_.bounded() && rules_.params.feature_costs.empty() && is_square(rules_.target.rule, limits);
  use_presorted();
  sort_columns(root);
}

std::size_t SortedBlock::partition(const OpenNode& node, const Choice& choice) {
  const Candidate& c = choice.candidate;
  const bool by_rank =
      is_small(node) && !rules_.table.columns[choice.feature].is_category() && !bins_.has(rules_.table, choice.feature);
  if (by_rank)
    neighbours_ = {c.below, c.above};
  else
    codes_ = mark_sides(node, choice);
  if (!by_rank) return partition_rows(node, [&](std::uint32_t position) { return side_[position]; });
  const std::uint16_t* ranks = ranks_.data() + slot_[choice.feature];
  const std::uint32_t last = c.missing_alone ? ShortWord::missing - 1 : c.code_below;
  return partition_rows(node, [&](std::uint32_t position) {
    const std::uint32_t rank = ranks[position * n_slots_];
    return static_cast<std::uint8_t>(rank <= last || (rank == ShortWord::missing && c.missing_left));
  });
}

SplitRecord SortedBlock::describe(const Choice& choice, bool left_heavier) {
  Choice outside = choice;  // converts ranks and positions in the block to codes and rows of the table
  Candidate& c = outside.candidate;
  const auto& dictionary = dictionary_[choice.feature];
  for (std::uint32_t& code : c.left_codes) code = dictionary[code];
  return describe_sides(rules_, outside, left_heavier, codes_);
}

void SortedBlock::cut_later(const Choice& choice, Tree& tree, std::size_t node) {
  const Column& column = rules_.table.columns[choice.feature];
  if (column.is_category()) return;
  if (choice.candidate.missing_alone) {
    tree.threshold[node] = std::numeric_limits<double>::infinity();
    return;
  }
  LateCut& cut = late_cuts_[n_late_++ % late_cuts_.size()];
  if (n_late_ > late_cuts_.size()) set_threshold(cut, tree);
  cut = {node, choice.feature, block_rows_[neighbours_.below], block_rows_[neighbours_.above]};
  if (column.is_sparse()) return;
  for (const Row row : {cut.below, cut.above})
    __builtin_prefetch(column.data + static_cast<std::ptrdiff_t>(row) * column.stride);
}

void SortedBlock::cut_now(Tree& tree) {
  for (std::size_t i = 0; i < std::min(n_late_, late_cuts_.size()); ++i) set_threshold(late_cuts_[i], tree);
}

void SortedBlock::follow(const OpenNode& node, const OpenNode& left, const OpenNode& right) {
  if (is_small(left) && is_small(right)) return;
  for (const std::uint32_t f : left.features)
    kernels_.partition(words(f) + node.begin, node.n(), side_.data(), spare_.data());
}

void SortedBlock::set_threshold(const LateCut& cut, Tree& tree) const {
  const Column& column = rules_.table.columns[cut.feature];
  rules_.table.touch(std::array{cut.below, cut.above}, 1);
  tree.threshold[cut.node] =
      cut_of(rules_.params, cut.feature, value_at(column, cut.below), value_at(column, cut.above));
}

void SortedBlock::sort_columns(const OpenNode& root) {
  stride_ = rows_.size() + 16;
  slot_.assign(rules_.table.n_columns(), 0);
  dictionary_.assign(rules_.table.n_columns(), {});
  words_.resize(root.features.size() * stride_);
  std::size_t n_slots = 0;
  for (const std::uint32_t f : root.features) slot_[f] = n_slots++;
  read_ahead(root.features);
  for (const std::uint32_t f : root.features) sort_column(f);
  if (samples_) keep_ranks(n_slots);
}

void SortedBlock::keep_ranks(std::size_t n_slots) {
  n_slots_ = n_slots;
  ranks_.resize(rows_.size() * n_slots);
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    const std::uint32_t* column = words_.data() + slot * stride_;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      ranks_[ShortWord::row(column[i]) * n_slots + slot] = static_cast<std::uint16_t>(ShortWord::code(column[i]));
  }
}

// Keys are stored where the words will be.
void SortedBlock::read_ahead(std::span<const std::uint32_t> columns) {
  constexpr std::size_t chunk = 256;  // rows that stay in cache from one column to the next
  for (std::size_t begin = 0; begin < rows_.size(); begin += chunk)
    for (const std::uint32_t f : columns)
      if (is_read_ahead(f))
        ColumnSorter::read_keys(rules_.table.columns[f], rows_.subspan(begin, std::min(chunk, rows_.size() - begin)),
                                words(f) + begin);
}

void SortedBlock::sort_column(std::uint32_t f) {
  auto& dictionary = dictionary_[f];  // rank in the block -> code, where codes are meaningful
  const Column& column = rules_.table.columns[f];
  const bool keep_codes = column.is_category();
  const auto keep = [&](std::uint32_t rank, std::uint32_t code) {
    if (dictionary.size() <= rank) dictionary.push_back(code);
  };
  if (presorted_) {
    read_presorted(f);
    for (std::size_t i = 0; keep_codes && i < rows_.size(); ++i)
      if (const std::uint32_t w = words(f)[i]; ShortWord::code(w) != ShortWord::missing)
        keep(ShortWord::code(w), static_cast<std::uint32_t>(value_at(column, block_rows_[ShortWord::row(w)])));
    return;
  }
  std::uint32_t* out = words(f);
  if (!is_read_ahead(f)) rules_.table.touch(rows_, 1);
  const std::span<const Entry> entries = is_read_ahead(f) ? sorter_.sort_keys({out, rows_.size()})
                                                          : sort_rows(sorter_, rules_.table, bins_, f, rows_, true);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint32_t code = code_of(entries[i]);
    if (i > 0 && code != code_of(entries[i - 1])) ++rank;
    if (keep_codes && code != missing_code) keep(rank, code);
    out[i] = (code == missing_code ? ShortWord::missing : rank) << 16 | row_of(entries[i]);
  }
}

// Every row is written and retained if it belongs to the block, which avoids a branch.
void SortedBlock::read_presorted(std::uint32_t f) {
  const std::span<const std::uint32_t> entries = bins_.presorted.column(f);
  const std::size_t n_present = bins_.presorted.n_present[f];
  std::uint32_t* const first = words(f);
  std::size_t n = 0;
  std::uint32_t rank = UINT32_MAX, is_new = 1;
  for (std::size_t i = 0; i < n_present; ++i) {
    const std::uint32_t position = position_of_[entries[i] & ~Presorted::new_value];
    const std::uint32_t here = position != absent;
    is_new |= entries[i] >> 31;
    rank += is_new & here;
    is_new &= 1 - here;
    first[n] = rank << 16 | (position & 0xffff);
    n += here;
  }
  for (std::size_t i = n_present; i < entries.size(); ++i) {
    const std::uint32_t position = position_of_[entries[i] & ~Presorted::new_value];
    first[n] = ShortWord::missing << 16 | (position & 0xffff);
    n += position != absent;
  }
}

// Going through all rows of the table in order pays for a block with a large part of them.
void SortedBlock::use_presorted() {
  presorted_ = bins_.presorted.n_rows > 0 && rows_.size() >= bins_.presorted.n_rows / 4;
  if (!presorted_) return;
  position_of_.assign(rules_.table.n_rows, absent);
  for (std::uint32_t i = 0; i < rows_.size(); ++i) position_of_[rows_[i]] = i;
}

// Marks the sides of the node's rows from the sorted words of the chosen column, without comparing values.
std::vector<std::uint32_t> SortedBlock::mark_sides(const OpenNode& node, const Choice& choice) {
  const Candidate& c = choice.candidate;
  const std::uint32_t* first = sorted_words(node, choice.feature);
  const std::size_t n = node.n(), n_present = count_present<ShortWord>(first, n);
  std::vector<std::uint32_t> codes;
  if (rules_.table.columns[choice.feature].is_category()) {
    std::vector<std::uint8_t> left(dictionary_[choice.feature].size(), c.missing_alone);
    for (const std::uint32_t rank : c.left_codes) left[rank] = 1;
    for (std::size_t i = 0; i < n_present; ++i) {
      const std::uint32_t rank = ShortWord::code(first[i]);
      if (i == 0 || rank != ShortWord::code(first[i - 1])) codes.push_back(dictionary_[choice.feature][rank]);
      side_[ShortWord::row(first[i])] = left[rank];
    }
  } else {
    const std::size_t n_left = c.missing_alone ? n_present : c.at + std::size_t{1};
    if (!c.missing_alone) find_neighbours(choice, first, n_present);
    for (std::size_t i = 0; i < n_present; ++i) side_[ShortWord::row(first[i])] = i < n_left;
  }
  for (std::size_t i = n_present; i < n; ++i) side_[ShortWord::row(first[i])] = c.missing_left;
  return codes;
}

// The positions next to the cut. A bin holds rows of several values, whose order is not in the words.
void SortedBlock::find_neighbours(const Choice& choice, const std::uint32_t* first, std::size_t n_present) {
  const std::size_t at = choice.candidate.at;
  neighbours_ = {ShortWord::row(first[at]), ShortWord::row(first[at + 1])};
  if (!bins_.has(rules_.table, choice.feature)) return;
  const auto value = [&](std::uint32_t position) {
    return value_at(rules_.table.columns[choice.feature], block_rows_[position]);
  };
  const auto same_bin = [&](std::size_t i, std::size_t j) {
    return ShortWord::code(first[i]) == ShortWord::code(first[j]);
  };
  for (std::size_t i = at; i-- > 0 && same_bin(i, at);)
    if (const std::uint32_t p = ShortWord::row(first[i]); value(p) > value(neighbours_.below)) neighbours_.below = p;
  for (std::size_t i = at + 2; i < n_present && same_bin(i, at + 1); ++i)
    if (const std::uint32_t p = ShortWord::row(first[i]); value(p) < value(neighbours_.above)) neighbours_.above = p;
}

template <class GoesLeft>
std::size_t SortedBlock::partition_rows(const OpenNode& node, GoesLeft&& goes_left) {
  std::size_t n_left = 0, n_right = 0;
  std::uint16_t* positions = positions_.data() + node.begin;
  Row* rows = rows_.data() + node.begin;
  for (std::size_t i = 0; i < node.n(); ++i) {
    const std::uint16_t position = positions[i];
    const Row row = rows[i];
    const std::size_t left = goes_left(position);
    positions[n_left] = right_positions_[n_right] = position;
    rows[n_left] = spare_[n_right] = row;
    n_left += left;
    n_right += 1 - left;
  }
  std::copy_n(right_positions_.begin(), n_right, positions + n_left);
  std::copy_n(spare_.begin(), n_right, rows + n_left);
  return node.begin + n_left;
}

}  // namespace spinney
