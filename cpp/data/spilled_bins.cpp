// Bins of columns in files: the same as for sorted rows, but only a part is sorted at a time.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/bins.h"
#include "data/edge_search.h"
#include "data/read.h"

namespace spinney {

namespace {

constexpr std::size_t block_rows = 4096;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Values above `low`, if that is a number, and not above `high`.
struct ValueRange {
  double low, high;
  bool holds(double v) const { return !(v <= low) && v <= high; }
  bool is_one_value() const { return low == std::nextafter(high, -infinity); }
};

// Visits the rows of a column ordered by value, then by position.
class RowsByValue {
 public:
  RowsByValue(const Column& column, std::span<const Row> rows, std::size_t most, const std::shared_ptr<Spill>& spill,
              ColumnSorter& sorter)
      : column_(column), rows_(rows), spill_(spill), sorter_(sorter) {
    find_ranges(std::max<std::size_t>(most, 64));
  }

  // Calls visit(row, is_new) for each row with a value until it returns false; `is_new`: the value differs from the
  // previous row's.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const ValueRange& range : ranges_) {
      bool continues = true, is_new = true;
      if (range.is_one_value()) {
        read([&](Row r, double v) {
          if (!continues || !range.holds(v)) return;
          continues = visit(r, is_new);
          is_new = false;
        });
      } else {
        some_.clear();
        read([&](Row r, double v) {
          if (range.holds(v)) some_.push_back(r);
        });
        const std::span<const Entry> entries = sorter_.sort(column_, some_, false);
        for (std::size_t i = 0; continues && i < entries.size(); ++i)
          continues = visit(row_of(entries[i]), i == 0 || code_of(entries[i]) != code_of(entries[i - 1]));
      }
      if (!continues) return;
    }
  }

  // The rows with a value.
  std::size_t count() const {
    std::size_t n = 0;
    read([&](Row, double v) { n += v == v; });
    return n;
  }

 private:
  template <class Take>
  void read(Take&& take) const {
    for (std::size_t begin = 0; begin < rows_.size(); begin += block_rows) {
      const std::span<const Row> block = rows_.subspan(begin, std::min(block_rows, rows_.size() - begin));
      spill_->touch(bytes_of(column_.dtype) * (std::size_t{block.back()} - block.front() + 1));
      read_rows(column_, block.data(), block.size(), [&](std::size_t i, double v) { take(block[i], v); });
    }
  }

  // Ranges of about `most` rows, from a sample of values; a value of many rows is a separate range.
  void find_ranges(std::size_t most) {
    constexpr std::size_t n_looked_at = 65536;
    std::vector<double> values;
    const std::size_t n = std::min(rows_.size(), n_looked_at);
    for (std::size_t i = 0; i < n; ++i) {
      const Row row = rows_[i * rows_.size() / n];
      spill_->touch_some(1, SIZE_MAX);
      if (const double v = value_at(column_, row); v == v) values.push_back(v + 0.0);  // -0 is 0
    }
    std::sort(values.begin(), values.end());
    const std::size_t step = std::max<std::size_t>(1, values.size() * most / std::max<std::size_t>(1, rows_.size()));
    double low = std::numeric_limits<double>::quiet_NaN();
    const auto close = [&](double high) {
      if (high <= low) return;
      ranges_.push_back({low, high});
      low = high;
    };
    for (std::size_t i = step; i < values.size(); i += step) {
      if (values[i] == values[i - step]) close(std::nextafter(values[i], -infinity));
      close(values[i]);
    }
    close(infinity);
  }

  const Column& column_;
  const std::span<const Row> rows_;
  const std::shared_ptr<Spill>& spill_;
  ColumnSorter& sorter_;
  std::vector<ValueRange> ranges_;
  std::vector<Row> some_;
};

// As for sorted rows: a bin is closed once the weight before the next value reaches its fraction of the remaining
// weight.
std::vector<double> edges_of(RowsByValue& rows, const Column& column, const double* weight, std::uint32_t max_bins,
                             std::size_t n_present) {
  const auto weight_of = [&](Row r) { return weight == nullptr ? 1.0 : weight[r]; };
  std::size_t n_distinct = 0;
  double left = weight == nullptr ? static_cast<double>(n_present) : 0;
  rows.for_each([&](Row r, bool is_new) {
    n_distinct += is_new;
    if (weight != nullptr) left += weight[r];
    return weight != nullptr || n_distinct <= max_bins;
  });
  std::vector<double> edges;
  double in_bin = 0;
  Row last = 0;
  bool any = false;
  rows.for_each([&](Row r, bool is_new) {
    const auto bin = static_cast<std::uint32_t>(edges.size());
    const bool is_full = bin + 1 < max_bins && in_bin * (max_bins - bin) >= left;
    if (any && is_new && (n_distinct <= max_bins || is_full)) {
      edges.push_back(cut_between(value_at(column, last), value_at(column, r)));
      left -= in_bin;
      in_bin = 0;
    }
    in_bin += weight_of(r);
    last = r;
    any = true;
    return true;
  });
  return edges;
}

template <class Code>
LargeArray<Code> codes_of(const Column& column, std::size_t n_rows, const BinnedColumn& bins,
                          const std::shared_ptr<Spill>& spill) {
  LargeArray<Code> codes(n_rows, spill);
  const EdgeSearch search(bins.edges);
  std::array<Row, block_rows> rows;
  std::array<double, block_rows> values;
  std::array<std::uint32_t, block_rows> found;
  for (std::size_t begin = 0; begin < n_rows; begin += block_rows) {
    const std::size_t n = std::min(block_rows, n_rows - begin);
    std::iota(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n), static_cast<Row>(begin));
    spill->touch(n * (bytes_of(column.dtype) + sizeof(Code)));
    read_values(column, rows.data(), n, values.data());
    search.find(values.data(), n, found.data());
    for (std::size_t i = 0; i < n; ++i)
      codes.data()[begin + i] = static_cast<Code>(values[i] == values[i] ? found[i] : bins.n_bins);
  }
  codes.seal();
  return codes;
}

}  // namespace

BinnedColumn bin_spilled_column(const Column& column, std::size_t n_rows, std::span<const Row> rows,
                                const double* weight, std::uint32_t max_bins, std::size_t most,
                                const std::shared_ptr<Spill>& spill, ColumnSorter& sorter) {
  RowsByValue by_value(column, rows, most, spill, sorter);
  const std::size_t n_present = by_value.count();
  BinnedColumn bins;
  bins.edges = edges_of(by_value, column, weight, max_bins, n_present);
  bins.n_bins = n_present > 0 ? static_cast<std::uint32_t>(bins.edges.size() + 1) : 0;
  if (bins.n_bins < 256)
    bins.small = codes_of<std::uint8_t>(column, n_rows, bins, spill);
  else
    bins.large = codes_of<std::uint16_t>(column, n_rows, bins, spill);
  return bins;
}

}  // namespace spinney
