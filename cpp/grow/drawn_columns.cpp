#include "grow/drawn_columns.h"

#include <algorithm>
#include <optional>

#include "data/read.h"

namespace spinney {

std::size_t DrawnBlock::part(const OpenNode& node, const Choice& choice) {
  const std::span<Row> rows = rows_of(node);
  const Candidate& c = choice.candidate;
  const std::uint32_t* keys = keys_.data() + c.below * rows.size();
  std::uint32_t cut = c.code_below;
  codes_.clear();
  if (c.at == from_values) {
    mark_sides(rules_, choice, rows, side_, codes_);
    for (std::size_t i = 0; i < rows.size(); ++i) keys_.data()[i] = 1u - side_[i];
    keys = keys_.data();
    cut = 0;
  }
  spare_.resize(std::max(spare_.size(), rows.size() + 16));
  return node.begin + kernels_.partition_by_key(rows.data(), rows.size(), keys, cut, spare_.data());
}

SplitRecord DrawnBlock::describe(const Choice& choice, bool left_heavier) {
  return describe_split(rules_, choice, left_heavier, codes_);
}

void DrawnBlock::read_keys(const OpenNode& node, std::span<const std::uint32_t> columns) {
  const std::size_t n = node.n();
  if (keys_.size() < n * columns.size() + 16) keys_ = LargeArray<std::uint32_t>(n * columns.size() + 16);
  if (const std::size_t n_rows = rules_.table.n_rows; all_.by_column.size() > 0 && n >= n_rows / many_rows) {
    for (std::size_t c = 0; c < columns.size(); ++c)
      kernels_.read_column(all_.by_column.data() + columns[c] * n_rows, rows_.data() + node.begin, n,
                           keys_.data() + c * n);
    return;
  }
  // a row's keys lie side by side
  rules_.table.touch(std::span<const Row>(rows_).subspan(node.begin, n), 1, sizeof(std::uint32_t) * all_.n_columns);
  kernels_.read_keys(all_.keys.data(), all_.n_columns, rows_.data() + node.begin, n, columns.data(), columns.size(),
                     keys_.data());
}

DrawnBlock::Range DrawnBlock::range_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys) {
  Range range;
  const Column& column = rules_.table.columns[f];
  if (column.is_category()) return range;
  kernels_.key_range(keys, node.n(), &range.low, &range.high);
  if (all_.exact[f]) return range;
  range.begin = n_ends_;
  ends_.resize(std::max(ends_.size(), n_ends_ + node.n()));
  n_ends_ += kernels_.places_of_keys(keys, node.n(), range.low, range.high, ends_.data() + n_ends_);
  range.end = n_ends_;
  if (!column.is_sparse())
    for (const std::uint32_t i : ends_of(range))
      __builtin_prefetch(column.data + static_cast<std::ptrdiff_t>(rows_[node.begin + i]) * column.stride);
  return range;
}

std::span<const std::uint32_t> DrawnBlock::ends_of(const Range& range) const {
  return std::span(ends_).subspan(range.begin, range.end - range.begin);
}

double DrawnBlock::value_of(std::uint32_t f, Row row) const {
  const Column& c = rules_.table.columns[f];
  const bool plain = c.dtype == DType::f64 && c.mask == nullptr && !c.is_sparse();
  return plain ? load<double>(c, row) : value_at(c, row);
}

double DrawnBlock::end_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys, std::uint32_t key,
                          std::span<const std::uint32_t> ends, bool lowest) const {
  if (all_.exact[f]) return RowKeys::value_of(key);
  std::optional<double> end;
  for (const std::uint32_t i : ends) {
    if (keys[i] != key) continue;
    const double v = value_of(f, rows_[node.begin + i]);
    if (!end || (lowest ? v < *end : v > *end)) end = v;
  }
  return *end;
}

std::uint32_t DrawnBlock::settle(const OpenNode& node, std::uint32_t f, double threshold, std::uint32_t* keys) {
  const auto rounded = static_cast<float>(threshold);
  const std::uint32_t key = RowKeys::key_of(rounded);
  if (all_.exact[f]) return key - (static_cast<double>(rounded) > threshold);
  same_.resize(std::max<std::size_t>(same_.size(), node.n()));
  const std::size_t n_same = kernels_.places_of_keys(keys, node.n(), key, key, same_.data());
  for (const std::uint32_t i : std::span(same_).first(n_same))
    if (!(value_of(f, rows_[node.begin + i]) <= threshold)) ++keys[i];
  return key;
}

}  // namespace spinney
