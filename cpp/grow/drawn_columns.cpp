#include "grow/drawn_columns.h"

#include <algorithm>
#include <optional>

#include "data/read.h"

namespace spinney {

std::size_t DrawnBlock::partition(const OpenNode& node, const Choice& choice) {
  const std::span<Row> rows = rows_of(node);
  const Candidate& c = choice.candidate;
  std::uint32_t* keys = keys_.data() + c.below * rows.size();
  std::uint32_t cut = c.code_below;
  codes_.clear();
  if (c.at == from_codes) {
    partition_codes(choice, {keys, rows.size()});
    cut = 0;
  }
  if (c.at == from_values) {
    mark_sides(rules_, choice, rows, side_, codes_);
    for (std::size_t i = 0; i < rows.size(); ++i) keys_.data()[i] = 1u - side_[i];
    keys = keys_.data();
    cut = 0;
  }
  spare_.resize(std::max(spare_.size(), rows.size() + 16));
  return node.begin + kernels_.partition_by_key(rows.data(), rows.size(), keys, cut, spare_.data());
}

void DrawnBlock::partition_codes(const Choice& choice, std::span<std::uint32_t> codes) {
  const Candidate& c = choice.candidate;
  constexpr std::uint8_t goes_right = 1, in_node = 2;
  const std::size_t n_codes = rules_.table.columns[choice.feature].n_categories + std::size_t{1};
  side_.assign(n_codes + 1, goes_right);
  for (const std::uint32_t code : c.left_codes) side_[code] = 0;
  side_[n_codes] = c.missing_left ? 0 : goes_right;
  for (std::uint32_t& code : codes) {
    std::uint8_t& side = side_[std::min<std::size_t>(code, n_codes)];
    side |= in_node;
    code = side & goes_right;
  }
  for (std::uint32_t code = 0; code < n_codes; ++code)
    if (side_[code] & in_node) codes_.push_back(code);
}

SplitRecord DrawnBlock::describe(const Choice& choice, bool left_heavier) {
  return describe_split(rules_, choice, left_heavier, codes_);
}

void DrawnBlock::read_keys(const OpenNode& node, std::span<const std::uint32_t> columns, std::size_t begin,
                           std::size_t end) {
  const std::size_t n = node.n(), n_rows = rules_.table.n_rows;
  if (begin == 0) {
    if (keys_.size() < n * columns.size() + 16) keys_ = LargeArray<std::uint32_t>(n * columns.size() + 16);
    for (auto* keys : {&low_, &high_}) keys->resize(std::max(keys->size(), columns.size()));
    n_ends_ = 0;
  }
  const Row* rows = rows_.data() + node.begin;
  if (reads_by_column(node)) {
    for (std::size_t c = begin; c < end; ++c)
      kernels_.read_column(all_.by_column.data() + columns[c] * n_rows, rows, n, keys_of(node, c));
  } else {  // the keys of a row are contiguous
    rules_.table.touch(std::span<const Row>(rows, n), 1, sizeof(std::uint32_t) * all_.n_columns);
    kernels_.read_keys(all_.keys.data(), all_.n_columns, rows, n, columns.data() + begin, end - begin,
                       keys_of(node, begin));
  }
  kernels_.key_ranges(keys_of(node, begin), n, end - begin, low_.data() + begin, high_.data() + begin);
  ranges_.resize(std::max(ranges_.size(), columns.size()));
  for (std::size_t c = begin; c < end; ++c)
    if (!all_.exact[columns[c]]) ranges_[c] = ends_of(node, columns[c], c);
}

DrawnBlock::Range DrawnBlock::ends_of(const OpenNode& node, std::uint32_t f, std::size_t c) {
  const Column& column = rules_.table.columns[f];
  Range range{n_ends_, n_ends_};
  ends_.resize(std::max(ends_.size(), n_ends_ + node.n()));
  n_ends_ += kernels_.places_of_keys(keys_of(node, c), node.n(), low_[c], high_[c], ends_.data() + n_ends_);
  range.end = n_ends_;
  if (!column.is_sparse())
    for (std::size_t i = range.begin; i < range.end; ++i)
      __builtin_prefetch(column.data + static_cast<std::ptrdiff_t>(rows_[node.begin + ends_[i]]) * column.stride);
  return range;
}

double DrawnBlock::value_of(std::uint32_t f, Row row) const {
  const Column& c = rules_.table.columns[f];
  const bool plain = c.dtype == DType::f64 && c.mask == nullptr && !c.is_sparse();
  return plain ? load<double>(c, row) : value_at(c, row);
}

double DrawnBlock::end_of(const OpenNode& node, std::uint32_t f, std::size_t c, std::uint32_t key, bool lowest) {
  const std::uint32_t* keys = keys_of(node, c);
  std::optional<double> end;
  for (const std::uint32_t i : std::span(ends_).subspan(ranges_[c].begin, ranges_[c].end - ranges_[c].begin)) {
    if (keys[i] != key) continue;
    const double v = value_of(f, rows_[node.begin + i]);
    if (!end || (lowest ? v < *end : v > *end)) end = v;
  }
  return *end;
}

std::uint32_t DrawnBlock::settle(const OpenNode& node, std::uint32_t f, double threshold, std::uint32_t* keys) {
  const std::uint32_t key = RowKeys::key_of(static_cast<float>(threshold));
  same_.resize(std::max<std::size_t>(same_.size(), node.n()));
  const std::size_t n_same = kernels_.places_of_keys(keys, node.n(), key, key, same_.data());
  for (const std::uint32_t i : std::span(same_).first(n_same))
    if (!(value_of(f, rows_[node.begin + i]) <= threshold)) ++keys[i];
  return key;
}

}  // namespace spinney
