// The columns of a block whose cuts are drawn at random: nothing is sorted, values are read as 32-bit keys.
//
// The cuts are those of scan_random, to the bit; it still serves what keys do not tell: categories, nodes where a column
// lacks values, and ranges without end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "cells/kernels.h"
#include "grow/search.h"

namespace spinney {

template <class Criterion>
class DrawnColumns {
 public:
  DrawnColumns(const Rules& rules, const Bins& bins, Worker<Criterion>& worker)
      : rules_(rules), worker_(worker), all_(bins.keys), kernels_(kernels()) {}

  void start(const OpenNode&, std::span<Row> rows) {
    rows_ = rows;
    left_.resize(2 * worker_.criterion.width());
  }

  bool tells_constants(const OpenNode& node) const { return node.n() <= small_rows; }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) {
    if (columns.empty()) return;
    // the target of the node's rows, side by side
    local_criterion_.emplace(worker_.criterion.on(local_.fill(worker_.criterion.rows, rows_of(node))));
    read_keys(node, columns);
    ranges_.resize(columns.size());
    n_ends_ = 0;
    for (std::size_t c = 0; c < columns.size(); ++c)
      ranges_[c] = range_of(node, columns[c], keys_.data() + c * node.n());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      candidates[c] = search(node, columns[c], ranges_[c], keys_.data() + c * node.n());
      candidates[c].below = static_cast<std::uint32_t>(c);
    }
  }

  // The keys of the columns that were searched last are still here, and the chosen one is among them.
  std::size_t part(const OpenNode& node, const Choice& choice) {
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

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const {
    for (std::size_t i = begin; i < end; ++i) worker_.criterion.add(rows_[i], stat);
  }

  SplitRecord describe(const Choice& choice, bool left_heavier) const {
    return describe_split(rules_, choice, left_heavier, codes_);
  }

 private:
  std::span<Row> rows_of(const OpenNode& node) const { return rows_.subspan(node.begin, node.n()); }

  // Copies the node's keys in these columns, one column after the other.
  void read_keys(const OpenNode& node, std::span<const std::uint32_t> columns) {
    const std::size_t n = node.n();
    if (keys_.size() < n * columns.size()) keys_ = LargeArray<std::uint32_t>(n * columns.size());
    if (const std::size_t n_rows = rules_.table.n_rows; all_.by_column.size() > 0 && n >= n_rows / many_rows) {
      for (std::size_t c = 0; c < columns.size(); ++c)
        kernels_.read_column(all_.by_column.data() + columns[c] * n_rows, rows_.data() + node.begin, n,
                             keys_.data() + c * n);
      return;
    }
    kernels_.read_keys(all_.keys.data(), all_.n_columns, rows_.data() + node.begin, n, columns.data(), columns.size(),
                       keys_.data());
  }

  struct Range {
    std::uint32_t low = 0, high = 0;
    std::size_t begin = 0, end = 0;  // in ends_: places of both, where keys do not tell values
  };

  // Where keys do not tell values, those of the ends are on their way to the cache before they are needed.
  Range range_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys) {
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

  std::span<const std::uint32_t> ends_of(const Range& range) const {
    return std::span(ends_).subspan(range.begin, range.end - range.begin);
  }

  Candidate search(const OpenNode& node, std::uint32_t f, const Range& range, std::uint32_t* keys) {
    const Totals total{node.n(), node.stat.data()};
    const Limits limits = rules_.limits(node, f);
    const Column& column = rules_.table.columns[f];
    RandomStream random(derive(node.key, 16 + f));
    const auto search_values = [&] {
      Candidate found = scan_random(worker_.criterion, column, rows_of(node), total, limits, random, worker_.random);
      found.at = from_values;
      return found;
    };
    if (column.is_category()) return search_values();
    const std::uint32_t low = range.low, high = range.high;
    if (high == RowKeys::missing || (low == high && !all_.exact[f])) return search_values();
    Candidate best;
    best.constant = low == high;
    if (best.constant) return best;
    const double lowest = end_of(node, f, keys, low, ends_of(range), std::less<>()),
                 highest = end_of(node, f, keys, high, ends_of(range), std::greater<>());
    if (!std::isfinite(highest - lowest)) return search_values();
    best.threshold = draw_threshold({}, lowest, highest, random);
    best.code_below = settle(node, f, best.threshold, keys);
    best.n_left = add_left(keys, best.code_below, total.n);
    best.w_left = static_cast<double>(left_[0]);
    if (admits(limits, total, left_.data(), best.n_left))
      best.score = local_criterion_->score(left_.data(), total.stat);
    return best;
  }

  double value_of(std::uint32_t f, Row row) const {
    const Column& c = rules_.table.columns[f];
    const bool plain = c.dtype == DType::f64 && c.mask == nullptr && !c.is_sparse();
    return plain ? load<double>(c, row) : value_at(c, row);
  }

  // The first value, by `before`, of those that have this key; `ends` are their places, and perhaps others.
  template <class Before>
  double end_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys, std::uint32_t key,
                std::span<const std::uint32_t> ends, Before before) const {
    if (all_.exact[f]) return RowKeys::value_of(key);
    std::optional<double> end;
    for (const std::uint32_t i : ends) {
      if (keys[i] != key) continue;
      const double v = value_of(f, rows_[node.begin + i]);
      if (!end || before(v, *end)) end = v;
    }
    return *end;
  }

  // The last key that goes left. Keys that do not tell are replaced by some that do.
  std::uint32_t settle(const OpenNode& node, std::uint32_t f, double threshold, std::uint32_t* keys) {
    const auto rounded = static_cast<float>(threshold);
    const std::uint32_t key = RowKeys::key_of(rounded);
    if (all_.exact[f]) return key - (static_cast<double>(rounded) > threshold);
    same_.resize(std::max<std::size_t>(same_.size(), node.n()));
    const std::size_t n_same = kernels_.places_of_keys(keys, node.n(), key, key, same_.data());
    for (const std::uint32_t i : std::span(same_).first(n_same))
      if (!(value_of(f, rows_[node.begin + i]) <= threshold)) ++keys[i];
    return key;
  }

  // Sums the rows up to a key to left_, and returns how many they are.
  Row add_left(const std::uint32_t* keys, std::uint32_t cut, std::size_t n) {
    const auto& rows = local_criterion_->rows;
    using Rows = std::remove_cvref_t<decltype(rows)>;
    std::int64_t n_left = 0;
    if constexpr (std::is_same_v<Rows, ByteRows>) {
      n_left = left_[0] = static_cast<std::int64_t>(kernels_.sum_bytes(keys, n, cut, rows.v, &left_[1]));
    } else if constexpr (std::is_same_v<Rows, UnitRows>) {
      n_left = left_[0] = static_cast<std::int64_t>(kernels_.sum_values(keys, n, cut, rows.v, &left_[1]));
    } else if constexpr (requires { rows.value(0); }) {
      std::int64_t s = 0, w = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::int64_t left = -std::int64_t{keys[i] <= cut};
        n_left -= left;
        s += rows.value(i) & left;
        w += rows.weight(i) & left;
      }
      left_[0] = w;
      left_[1] = s;
    } else {
      const std::size_t width = left_.size() / 2;
      std::fill(left_.begin(), left_.end(), 0);
      for (std::uint32_t i = 0; i < n; ++i) {
        const bool left = keys[i] <= cut;
        n_left += left;
        local_criterion_->add(i, left_.data() + (left ? 0 : width));
      }
    }
    return static_cast<Row>(n_left);
  }

  // A node of this part of all rows, or more, reads keys column by column: most cache lines hold several that it needs.
  static constexpr std::size_t many_rows = 16;
  static constexpr std::size_t small_rows = 64;
  static constexpr std::uint32_t from_values = 1;  // in Candidate::at: keys do not tell the sides

  const Rules& rules_;
  Worker<Criterion>& worker_;
  const RowKeys& all_;
  const Kernels& kernels_;
  typename Criterion::Local local_;
  std::optional<Criterion> local_criterion_;  // of the node that is searched
  std::span<Row> rows_;                       // row index of the block
  LargeArray<std::uint32_t> keys_;            // of the node's rows, column by column
  std::vector<Range> ranges_;                 // by column that is searched
  std::vector<std::uint32_t> ends_;           // places of rows in the node, column by column
  std::size_t n_ends_ = 0;
  std::vector<std::uint32_t> same_;   // places of the rows that have the key of a cut
  std::vector<std::uint8_t> side_;    // 1: left
  std::vector<std::int64_t> left_;    // sums on the left; behind them, those on the right
  std::vector<std::uint32_t> codes_;  // categories seen in the node that was parted last
  std::vector<Row> spare_;
};

}  // namespace spinney
