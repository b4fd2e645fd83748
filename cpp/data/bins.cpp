#include "data/bins.h"

#include "data/read.h"

namespace spinney {

double cut_between(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
}

// Walks the sorted values; a bin is closed once the weight before the next value reaches its share of what is left.
BinnedColumn bin_column(const Column& column, const std::vector<Row>& rows, const double* weight,
                        std::uint32_t max_bins, ColumnSorter& sorter) {
  const std::span<const Entry> entries = sorter.sort(column, rows, false);
  const auto weight_of = [&](Entry e) { return weight == nullptr ? 1.0 : weight[row_of(e)]; };
  std::size_t n_present = entries.size(), n_distinct = 0;
  while (n_present > 0 && code_of(entries[n_present - 1]) == missing_code) --n_present;
  double left = 0;
  for (std::size_t i = 0; i < n_present; ++i) {
    left += weight_of(entries[i]);
    n_distinct += i == 0 || code_of(entries[i]) != code_of(entries[i - 1]);
  }
  BinnedColumn bins;
  std::vector<std::uint32_t> bin_of(n_present);
  double in_bin = 0;
  std::uint32_t bin = 0;
  for (std::size_t i = 0; i < n_present; ++i) {
    bin_of[i] = bin;
    in_bin += weight_of(entries[i]);
    if (i + 1 == n_present || code_of(entries[i]) == code_of(entries[i + 1])) continue;
    const bool own_bin = n_distinct <= max_bins;
    if (own_bin || (bin + 1 < max_bins && in_bin * (max_bins - bin) >= left)) {
      bins.edges.push_back(cut_between(value_at(column, row_of(entries[i])), value_at(column, row_of(entries[i + 1]))));
      ++bin;
      left -= in_bin;
      in_bin = 0;
    }
  }
  bins.n_bins = n_present == 0 ? 0 : bin + 1;
  const std::size_t n_rows = rows.empty() ? 0 : rows.back() + std::size_t{1};
  const auto fill = [&](auto& codes) {
    codes.assign(n_rows, 0);
    using Code = typename std::remove_reference_t<decltype(codes)>::value_type;
    for (std::size_t i = 0; i < entries.size(); ++i)
      codes[row_of(entries[i])] = static_cast<Code>(i < n_present ? bin_of[i] : bins.n_bins);
  };
  if (bins.n_bins < 256)
    fill(bins.small);
  else
    fill(bins.large);
  return bins;
}

}  // namespace spinney
