#include "data/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "data/read.h"

namespace spinney {

// Order-preserving keys of floating-point numbers; -0 equals +0, NaN is above all.
static std::uint32_t key_of(float v) {
  if (v != v) return missing_code;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v + 0.0f);
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

static std::uint64_t key_of(double v) {
  if (v != v) return UINT64_MAX;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(v + 0.0);
  return bits ^ (bits >> 63 ? UINT64_MAX : std::uint64_t{1} << 63);
}

static bool fits_32_bits(const Column& c) {
  if (c.is_category()) return true;
  switch (c.dtype) {
    case DType::f32:
    case DType::i8:
    case DType::i16:
    case DType::u8:
    case DType::u16:
      return true;
    default:
      return false;
  }
}

void ColumnSorter::fill_keys32(const Column& column, std::span<const Row> rows, bool local) {
  if (has_plain_floats(column)) {
    constexpr std::size_t ahead = 24;  // the rows of a row-major table are cache lines apart
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i + ahead < rows.size())
        __builtin_prefetch(column.data + static_cast<std::ptrdiff_t>(rows[i + ahead]) * column.stride);
      entries_[i] = entry_of(key_of(load<float>(column, rows[i])), local ? static_cast<Row>(i) : rows[i]);
    }
  } else if (column.is_category()) {
    read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
      const std::uint32_t code = v != v ? missing_code : static_cast<std::uint32_t>(v);
      entries_[i] = entry_of(code, local ? static_cast<Row>(i) : rows[i]);
    });
  } else {
    read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
      entries_[i] = entry_of(key_of(static_cast<float>(v)), local ? static_cast<Row>(i) : rows[i]);
    });
  }
}

void ColumnSorter::set_key64(std::size_t i, double v) {
  keys_[i] = key_of(v);
  entries_[i] = entry_of(static_cast<std::uint32_t>(keys_[i] >> 32), static_cast<Row>(i));
}

// 64-bit keys: sorts by the upper half, sorts the runs of equal upper halves, then numbers the distinct keys. Entries
// carry rows, or their positions if `rows` is null.
void ColumnSorter::sort_keys64(const Row* rows) {
  const std::size_t n = keys_.size();
  const auto is_less = [&](Entry a, Entry b) {
    const std::uint64_t ka = keys_[row_of(a)], kb = keys_[row_of(b)];
    return ka != kb ? ka < kb : row_of(a) < row_of(b);
  };
  sort_entries();
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin + 1;
    while (end < n && code_of(entries_[end]) == code_of(entries_[begin])) ++end;
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(begin),
               last = entries_.begin() + static_cast<std::ptrdiff_t>(end);
    if (!std::is_sorted(first, last, is_less)) std::sort(first, last, is_less);  // most are equal and in order
    begin = end;
  }
  std::uint32_t code = 0;
  std::uint64_t last = n > 0 ? keys_[row_of(entries_[0])] : 0;
  for (Entry& entry : entries_) {
    const std::uint32_t at = row_of(entry);
    if (keys_[at] != last) {
      ++code;
      last = keys_[at];
    }
    entry = entry_of(last == UINT64_MAX ? missing_code : code, rows == nullptr ? at : rows[at]);
  }
}

// Least significant digit first, over the code alone: entries are in row order and the passes are stable.
void ColumnSorter::radix_sort() {
  constexpr int n_digits = 3, bits = 11;
  constexpr std::size_t n_buckets = std::size_t{1} << bits;
  std::array<std::array<std::uint32_t, n_buckets>, n_digits> counts{};
  for (const Entry e : entries_) {
    const std::uint32_t code = code_of(e);
    ++counts[0][code & (n_buckets - 1)];
    ++counts[1][code >> bits & (n_buckets - 1)];
    ++counts[2][code >> (2 * bits)];
  }
  spare_.resize(entries_.size());
  for (int digit = 0; digit < n_digits; ++digit) {
    auto& count = counts[static_cast<std::size_t>(digit)];
    const int shift = 32 + bits * digit;
    if (count[entries_[0] >> shift & (n_buckets - 1)] == entries_.size()) continue;  // all equal
    std::uint32_t start = 0;
    for (std::uint32_t& c : count) start += std::exchange(c, start);
    for (const Entry e : entries_) spare_[count[e >> shift & (n_buckets - 1)]++] = e;
    entries_.swap(spare_);
  }
}

std::span<const Entry> ColumnSorter::sort_entries() {
  constexpr std::size_t small = 24,
                        medium = 700;  // measured: std::sort wins below `medium`, insertion sort below `small`
  auto& entries = entries_;
  const std::size_t n = entries.size();
  if (n <= small) {
    for (std::size_t i = 1; i < n; ++i) {
      const Entry e = entries[i];
      std::size_t j = i;
      for (; j > 0 && entries[j - 1] > e; --j) entries[j] = entries[j - 1];
      entries[j] = e;
    }
  } else if (n <= medium) {
    std::sort(entries.begin(), entries.end());
  } else {
    radix_sort();
  }
  return entries_;
}

std::span<const Entry> ColumnSorter::sort(const Column& column, std::span<const Row> rows, bool local) {
  entries_.resize(rows.size());
  if (fits_32_bits(column)) {
    fill_keys32(column, rows, local);
    return sort_entries();
  }
  keys_.resize(rows.size());
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) { set_key64(i, v); });
  sort_keys64(local ? nullptr : rows.data());
  return entries_;
}

void ColumnSorter::read_keys(const Column& column, std::span<const Row> rows, std::uint32_t* keys) {
  for (std::size_t i = 0; i < rows.size(); ++i) keys[i] = key_of(load<float>(column, rows[i]));
}

std::span<const Entry> ColumnSorter::sort_keys(std::span<const std::uint32_t> keys) {
  entries_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) entries_[i] = entry_of(keys[i], static_cast<Row>(i));
  return sort_entries();
}

std::span<const Entry> ColumnSorter::sort(std::span<const double> values) {
  entries_.resize(values.size());
  keys_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) set_key64(i, values[i]);
  sort_keys64(nullptr);
  return entries_;
}

}  // namespace spinney
