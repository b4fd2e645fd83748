#include "data/bins.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "data/keys.h"
#include "data/read.h"

namespace spinney {

double cut_between(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
}

namespace {

std::size_t count_present(std::span<const Entry> entries) {
  std::size_t n = entries.size();
  while (n > 0 && code_of(entries[n - 1]) == missing_code) --n;
  return n;
}

// Goes through n sorted values; a bin is closed once the weight before the next value reaches its fraction of the
// remaining weight. Calls close(i) for the last value of each bin except the last bin.
template <class Code, class Weight, class Close>
void for_each_bin(std::size_t n, Code&& code, Weight&& weight, std::uint32_t max_bins, Close&& close) {
  std::size_t n_distinct = 0;
  double left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    left += weight(i);
    n_distinct += i == 0 || code(i) != code(i - 1);
  }
  double in_bin = 0;
  std::uint32_t bin = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    in_bin += weight(i);
    if (code(i) == code(i + 1)) continue;
    if (n_distinct > max_bins && (bin + 1 >= max_bins || in_bin * (max_bins - bin) < left)) continue;
    close(i);
    ++bin;
    left -= in_bin;
    in_bin = 0;
  }
}

template <class Close>
void for_each_bin(std::span<const Entry> present, const double* weight, std::uint32_t max_bins, Close&& close) {
  for_each_bin(
      present.size(), [&](std::size_t i) { return code_of(present[i]); },
      [&](std::size_t i) { return weight == nullptr ? 1.0 : weight[row_of(present[i])]; }, max_bins, close);
}

// Columns of two values are frequent and only need a count.
bool sort_two_values(std::vector<std::uint32_t>& keys) {
  std::uint32_t low = UINT32_MAX, high = 0;
  for (const std::uint32_t key : keys) {
    low = std::min(low, key);
    high = std::max(high, key);
  }
  std::size_t n_low = 0, n_high = 0;
  for (const std::uint32_t key : keys) {
    n_low += key == low;
    n_high += key != low && key == high;
  }
  if (n_low + n_high < keys.size()) return false;
  std::fill(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n_low), low);
  std::fill(keys.begin() + static_cast<std::ptrdiff_t>(n_low), keys.end(), high);
  return true;
}

// Least significant digit first.
void sort_keys(std::vector<std::uint32_t>& keys, std::vector<std::uint32_t>& spare) {
  constexpr std::size_t medium = 700, n_digits = 3, bits = 11, n_buckets = std::size_t{1} << bits;
  if (keys.size() <= medium) return std::sort(keys.begin(), keys.end());
  if (sort_two_values(keys)) return;
  std::array<std::array<std::uint32_t, n_buckets>, n_digits> counts{};
  const auto digit_of = [](std::uint32_t key, std::size_t digit) { return key >> (bits * digit) & (n_buckets - 1); };
  for (const std::uint32_t key : keys)
    for (std::size_t digit = 0; digit < n_digits; ++digit) ++counts[digit][digit_of(key, digit)];
  spare.resize(keys.size());
  for (std::size_t digit = 0; digit < n_digits; ++digit) {
    auto& count = counts[digit];
    if (count[digit_of(keys[0], digit)] == keys.size()) continue;  // all equal
    std::uint32_t start = 0;
    for (std::uint32_t& c : count) start += std::exchange(c, start);
    for (const std::uint32_t key : keys) spare[count[digit_of(key, digit)]++] = key;
    keys.swap(spare);
  }
}

double edge_after(const Column& column, std::span<const Entry> entries, std::size_t i) {
  return cut_between(value_at(column, row_of(entries[i])), value_at(column, row_of(entries[i + 1])));
}

}  // namespace

std::vector<double> bin_edges(const Column& column, std::span<const Row> rows, const double* weight,
                              std::uint32_t max_bins, ColumnSorter& sorter) {
  std::span<const Entry> entries = sorter.sort(column, rows, false);
  entries = entries.first(count_present(entries));
  std::vector<double> edges;
  for_each_bin(entries, weight, max_bins, [&](std::size_t i) { edges.push_back(edge_after(column, entries, i)); });
  return edges;
}

namespace {

struct WeightedValue {
  double value, weight;
};
double value_of(double v) { return v; }
double value_of(const WeightedValue& v) { return v.value; }
double weight_of(double) { return 1; }
double weight_of(const WeightedValue& v) { return v.weight; }

// The values that a sparse column stores for the rows (ascending), in order, without zeros and missing values.
// Subtracts the weight of non-zero rows from `zeros`.
template <class Value>
std::vector<Value> stored_values(const Column& column, std::span<const Row> rows, const double* weight, double& zeros) {
  std::vector<Value> values;
  values.reserve(column.n_sparse);
  const std::size_t begin = rows.front(), end = rows.back() + std::size_t{1};
  const bool are_all = end - begin == rows.size();
  auto at = rows.begin();
  bool in_order = true;
  read_stored(column, begin, end, [&](Row row, double v) {
    if (!are_all) at = std::lower_bound(at, rows.end(), row);
    if (v == 0 || (!are_all && *at != row)) return;
    const double w = weight == nullptr ? 1.0 : weight[row];
    zeros -= w;
    if (v != v) return;
    in_order &= values.empty() || value_of(values.back()) <= v;
    if constexpr (std::is_same_v<Value, double>)
      values.push_back(v);
    else
      values.push_back({v, w});
  });
  if (!in_order)
    std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return value_of(a) < value_of(b); });
  return values;
}

template <class Value>
std::vector<double> edges_of_stored(const std::vector<Value>& values, double zeros, std::uint32_t max_bins) {
  std::vector<double> distinct, counts;
  const auto add = [&](double v, double count) {
    distinct.push_back(v);
    counts.push_back(count);
  };
  for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
    const double v = value_of(values[i]);
    if (v > 0 && zeros > 0) add(0.0, std::exchange(zeros, 0));
    double count = 0;
    for (; end < values.size() && value_of(values[end]) == v; ++end) count += weight_of(values[end]);
    add(v, count);
  }
  if (zeros > 0) add(0.0, zeros);
  std::vector<double> edges;
  for_each_bin(
      distinct.size(), [](std::size_t k) { return k; }, [&](std::size_t k) { return counts[k]; }, max_bins,
      [&](std::size_t k) { edges.push_back(cut_between(distinct[k], distinct[k + 1])); });
  return edges;
}

}  // namespace

std::vector<double> bin_edges_of_stored(const Column& column, std::span<const Row> rows, const double* weight,
                                        double total, std::uint32_t max_bins) {
  if (rows.empty()) return {};
  double zeros = total;
  if (weight == nullptr) {
    const std::vector<double> values = stored_values<double>(column, rows, weight, zeros);
    return edges_of_stored(values, zeros, max_bins);
  }
  const std::vector<WeightedValue> values = stored_values<WeightedValue>(column, rows, weight, zeros);
  return edges_of_stored(values, zeros, max_bins);
}

bool has_short_keys(const Column& column) {
  return !column.is_category() && (bytes_of(column.dtype) <= 2 || column.dtype == DType::f32);
}

void read_short_keys(const Column& column, std::span<const Row> rows, std::uint32_t* keys) {
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    keys[i] = v != v ? RowKeys::missing : RowKeys::key_of(static_cast<float>(v));
  });
}

std::vector<double> bin_edges(std::vector<std::uint32_t>& keys, std::uint32_t max_bins,
                              std::vector<std::uint32_t>& spare) {
  sort_keys(keys, spare);
  const auto n_present =
      static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), RowKeys::missing) - keys.begin());
  std::vector<double> edges;
  for_each_bin(
      n_present, [&](std::size_t i) { return keys[i]; }, [](std::size_t) { return 1.0; }, max_bins,
      [&](std::size_t i) { edges.push_back(cut_between(RowKeys::value_of(keys[i]), RowKeys::value_of(keys[i + 1]))); });
  return edges;
}

BinnedColumn bin_column(const Column& column, std::size_t n_rows, std::span<const Row> rows, const double* weight,
                        std::uint32_t max_bins, ColumnSorter& sorter) {
  const std::span<const Entry> entries = sorter.sort(column, rows, false);
  const std::size_t n_present = count_present(entries);
  BinnedColumn bins;
  std::vector<std::size_t> ends;
  for_each_bin(entries.first(n_present), weight, max_bins, [&](std::size_t i) {
    bins.edges.push_back(edge_after(column, entries, i));
    ends.push_back(i + 1);
  });
  if (n_present > 0) ends.push_back(n_present);
  bins.n_bins = static_cast<std::uint32_t>(ends.size());
  ends.push_back(entries.size());  // missing
  const auto fill = [&]<class Code>(LargeArray<Code>& codes) {
    codes = LargeArray<Code>(n_rows);
    if (rows.size() < n_rows) std::fill_n(codes.data(), n_rows, Code{0});
    std::size_t i = 0;
    for (std::size_t bin = 0; bin < ends.size(); ++bin)
      for (; i < ends[bin]; ++i) codes.data()[row_of(entries[i])] = static_cast<Code>(bin);
  };
  if (bins.n_bins < 256)
    fill(bins.small);
  else
    fill(bins.large);
  return bins;
}

}  // namespace spinney
