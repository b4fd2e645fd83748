#include "data/bins.h"

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

// Walks the sorted values that are present; a bin is closed once the weight before the next value reaches its share of
// what is left. Calls close(i) for each entry that is the last of its bin, but for the last of all.
template <class Close>
void for_each_bin(std::span<const Entry> present, const double* weight, std::uint32_t max_bins, Close&& close) {
  const auto weight_of = [&](Entry e) { return weight == nullptr ? 1.0 : weight[row_of(e)]; };
  std::size_t n_distinct = 0;
  double left = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    left += weight_of(present[i]);
    n_distinct += i == 0 || code_of(present[i]) != code_of(present[i - 1]);
  }
  double in_bin = 0;
  std::uint32_t bin = 0;
  for (std::size_t i = 0; i + 1 < present.size(); ++i) {
    in_bin += weight_of(present[i]);
    if (code_of(present[i]) == code_of(present[i + 1])) continue;
    if (n_distinct > max_bins && (bin + 1 >= max_bins || in_bin * (max_bins - bin) < left)) continue;
    close(i);
    ++bin;
    left -= in_bin;
    in_bin = 0;
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

BinnedColumn bin_column(const Column& column, const std::vector<Row>& rows, const double* weight,
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
  const std::size_t n_rows = rows.empty() ? 0 : rows.back() + std::size_t{1};
  const auto fill = [&](auto& codes) {
    codes.assign(n_rows, 0);
    using Code = typename std::remove_reference_t<decltype(codes)>::value_type;
    std::size_t i = 0;
    for (std::size_t bin = 0; bin < ends.size(); ++bin)
      for (; i < ends[bin]; ++i) codes[row_of(entries[i])] = static_cast<Code>(bin);
  };
  if (bins.n_bins < 256)
    fill(bins.small);
  else
    fill(bins.large);
  return bins;
}

}  // namespace spinney
