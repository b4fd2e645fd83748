#include "boost/crossed.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/math.h"

namespace spinney {

namespace {

constexpr std::size_t block = 256;

using RunningSums = std::array<Packed, CrossedLane::most_codes + 1>;

// Prefix sums, then their differences, so that no branch depends on the number of cells per sum.
void take_differences(const RunningSums& sums, const std::vector<std::uint16_t>& ends, Packed* out) {
  Packed before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Packed up_to = sums[ends[i]];
    out[i] = up_to - before;
    before = up_to;
  }
}

}  // namespace

CrossedLane::CrossedLane(const Coding& coding, const Codes& codes, std::uint32_t column)
    : coding_(&coding), codes_(&codes), columns_{column}, n_codes_(n_codes_of(column)) {}

void CrossedLane::read_column(std::uint32_t column, std::size_t begin, std::size_t end, std::uint16_t* out) const {
  if (coding_->columns[column].is_wide)
    std::copy(codes_->wide(column) + begin, codes_->wide(column) + end, out);
  else
    std::copy(codes_->narrow(column) + begin, codes_->narrow(column) + end, out);
}

void CrossedLane::read(std::size_t begin, std::size_t end, std::uint16_t* out) const {
  if (rows_.empty()) return read_column(columns_[0], begin, end, out);
  std::copy(rows_.data() + begin, rows_.data() + end, out);
}

// Calls body(first row, keys, number of rows) for blocks of rows until it returns false. A key combines the codes of
// the lane and the column. Some blocks from all over the table come first, and are repeated later: rows are often
// ordered by time, with columns that stay constant for long.
template <class Body>
void CrossedLane::for_each_key(std::uint32_t column, Body&& body) const {
  const std::uint32_t n_more = n_codes_of(column);
  const std::size_t n_blocks = (codes_->n_rows + block - 1) / block, n_spread = std::min<std::size_t>(64, n_blocks / 8);
  std::array<std::uint16_t, block> ours, theirs;
  std::array<std::uint32_t, block> keys;
  for (std::size_t b = 0; b < n_spread + n_blocks; ++b) {
    const std::size_t begin = block * (b < n_spread ? b * n_blocks / n_spread : b - n_spread);
    const std::size_t end = std::min(codes_->n_rows, begin + block);
    read(begin, end, ours.data());
    read_column(column, begin, end, theirs.data());
    for (std::size_t i = 0; i < end - begin; ++i) keys[i] = ours[i] * n_more + theirs[i];
    if (!body(begin, keys.data(), end - begin)) return;
  }
}

// Returns whether the first rows show no more combinations than expected for `most` combinations. Keys that share a
// slot count once.
bool CrossedLane::may_be_few(std::uint32_t column, std::uint32_t most) const {
  std::array<std::uint8_t, 4096> slots{};
  double n_rows = 0, n_found = 0;
  for_each_key(column, [&](std::size_t, const std::uint32_t* keys, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) n_found += !std::exchange(slots[keys[i] * 0x9e3779b1u >> 20], std::uint8_t{1});
    n_rows = static_cast<double>(n);
    return false;
  });
  return n_found <= most * (1 - exp_ieee(-n_rows / most)) + block / 16.0;
}

// By key: whether it occurs. Empty if more than `most` keys occur, which is checked from time to time.
std::vector<std::uint8_t> CrossedLane::find_keys(std::uint32_t column, std::uint32_t most) const {
  std::vector<std::uint8_t> occurs(std::size_t{n_codes_} * n_codes_of(column), 0);
  const auto are_few = [&] { return std::accumulate(occurs.begin(), occurs.end(), std::uint32_t{0}) <= most; };
  std::size_t n_seen = 0, next_count = 4 * block;
  for_each_key(column, [&](std::size_t, const std::uint32_t* keys, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) occurs[keys[i]] = 1;
    n_seen += n;
    if (n_seen < next_count) return true;
    next_count *= 2;
    return are_few();
  });
  if (!are_few()) occurs.clear();
  return occurs;
}

bool CrossedLane::add(std::uint32_t column, std::uint32_t most) {
  most = std::min(most, most_codes);
  if (n_codes_ * n_codes_of(column) > most && !may_be_few(column, most)) return false;
  const std::vector<std::uint8_t> occurs = find_keys(column, most);
  if (occurs.empty()) return false;
  const std::uint32_t n_more = n_codes_of(column);
  std::vector<std::uint16_t> numbers(occurs.size()), theirs;
  AddedColumn added_column;
  for (std::uint32_t key = 0; key < occurs.size(); ++key) {
    numbers[key] = static_cast<std::uint16_t>(theirs.size());
    if (occurs[key]) theirs.push_back(static_cast<std::uint16_t>(key % n_more));
    if (key % n_more == n_more - 1) added_column.ends.push_back(static_cast<std::uint16_t>(theirs.size()));
  }
  added_column.ends_ordered.assign(n_more, 0);
  for (const std::uint16_t code : theirs) ++added_column.ends_ordered[code];
  std::partial_sum(added_column.ends_ordered.begin(), added_column.ends_ordered.end(),
                   added_column.ends_ordered.begin());
  added_column.order.resize(theirs.size());
  std::iota(added_column.order.begin(), added_column.order.end(), std::uint16_t{0});
  std::stable_sort(added_column.order.begin(), added_column.order.end(),
                   [&](auto a, auto b) { return theirs[a] < theirs[b]; });

  std::vector<std::uint16_t> rows(codes_->n_rows);
  for_each_key(column, [&](std::size_t begin, const std::uint32_t* keys, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) rows[begin + i] = numbers[keys[i]];
    return true;
  });
  rows_ = std::move(rows);
  n_codes_ = static_cast<std::uint32_t>(theirs.size());
  columns_.push_back(column);
  added_columns_.push_back(std::move(added_column));
  return true;
}

// Column by column in reverse order: without its last column the lane has fewer cells.
void CrossedLane::sum_up(const Packed* lane, Packed* cells) const {
  Packed* end = cells;
  for (const std::uint32_t f : columns_) end += n_codes_of(f);
  RunningSums sums, sums_ordered;
  std::array<Packed, most_codes> left;
  sums[0] = sums_ordered[0] = 0;
  for (std::size_t a = added_columns_.size(); a-- > 0; lane = left.data()) {
    const AddedColumn& added_column = added_columns_[a];
    const std::size_t n = added_column.order.size();
    const std::uint16_t* order = added_column.order.data();
    Packed sum = 0, sum_ordered = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sums[i + 1] = sum += lane[i];
      sums_ordered[i + 1] = sum_ordered += lane[order[i]];
    }
    end -= added_column.ends_ordered.size();
    take_differences(sums_ordered, added_column.ends_ordered, end);
    take_differences(sums, added_column.ends, a == 0 ? cells : left.data());
  }
}

}  // namespace spinney
