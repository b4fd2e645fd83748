// The columns of a block whose cuts are drawn at random: nothing is sorted, values are read as 32-bit keys.
//
// The cuts are those of scan_random, to the bit; it still serves what keys do not tell: categories, nodes where a column
// lacks values, and ranges without end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/large_array.h"
#include "base/random.h"
#include "cells/kernels.h"
#include "cells/random_cut.h"
#include "criterion/scalar.h"
#include "grow/block.h"

namespace spinney {

// What does not depend on the criterion.
class DrawnBlock : public BlockColumns {
 public:
  DrawnBlock(const Rules& rules, const Bins& bins) : rules_(rules), all_(bins.keys), kernels_(kernels()) {}

  bool tells_constants(const OpenNode& node) const override { return node.n() <= small_rows; }

  // The keys of the columns that were searched last are still here, and the chosen one is among them.
  std::size_t part(const OpenNode& node, const Choice& choice) override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;

 protected:
  struct Range {
    std::uint32_t low = 0, high = 0;
    std::size_t begin = 0, end = 0;  // in ends_: places of both, where keys do not tell values
  };

  std::span<Row> rows_of(const OpenNode& node) const { return rows_.subspan(node.begin, node.n()); }

  // Copies the node's keys in these columns, one column after the other.
  void read_keys(const OpenNode& node, std::span<const std::uint32_t> columns);
  // Where keys do not tell values, those of the ends are on their way to the cache before they are needed.
  Range range_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys);
  std::span<const std::uint32_t> ends_of(const Range& range) const;
  double value_of(std::uint32_t f, Row row) const;
  // The lowest or highest value of those that have this key; `ends` are their places, and perhaps others.
  double end_of(const OpenNode& node, std::uint32_t f, const std::uint32_t* keys, std::uint32_t key,
                std::span<const std::uint32_t> ends, bool lowest) const;
  // The last key that goes left. Keys that do not tell are replaced by some that do.
  std::uint32_t settle(const OpenNode& node, std::uint32_t f, double threshold, std::uint32_t* keys);

  // A node of this part of all rows, or more, reads keys column by column: most cache lines hold several that it needs.
  static constexpr std::size_t many_rows = 16;
  static constexpr std::size_t small_rows = 64;
  static constexpr std::uint32_t from_values = 1;  // in Candidate::at: keys do not tell the sides

  const Rules& rules_;
  const RowKeys& all_;
  const Kernels& kernels_;
  std::span<Row> rows_;              // row index of the block
  LargeArray<std::uint32_t> keys_;   // of the node's rows, column by column
  std::vector<std::uint32_t> ends_;  // places of rows in the node, column by column
  std::size_t n_ends_ = 0;
  std::vector<std::uint32_t> same_;   // places of the rows that have the key of a cut
  std::vector<std::uint8_t> side_;    // 1: left
  std::vector<std::uint32_t> codes_;  // categories seen in the node that was parted last
  std::vector<Row> spare_;
};

// The same with a criterion.
template <class Criterion>
class DrawnColumns final : public DrawnBlock {
 public:
  DrawnColumns(const Rules& rules, const Bins& bins, const Criterion& criterion, RandomBuffers& random)
      : DrawnBlock(rules, bins), criterion_(criterion), random_(random) {}

  void start(const OpenNode&, std::span<Row> rows) override {
    rows_ = rows;
    left_.resize(2 * criterion_.width());
  }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override {
    if (columns.empty()) return;
    // the target of the node's rows, side by side
    local_criterion_.emplace(criterion_.on(local_.fill(criterion_.rows, rows_of(node))));
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

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override {
    for (std::size_t i = begin; i < end; ++i) criterion_.add(rows_[i], stat);
  }

 private:
  Candidate search(const OpenNode& node, std::uint32_t f, const Range& range, std::uint32_t* keys) {
    const Totals total{node.n(), node.stat.data()};
    const Limits limits = rules_.limits(node, f);
    const Column& column = rules_.table.columns[f];
    RandomStream random(derive(node.key, 16 + f));
    const auto search_values = [&] {
      Candidate found = scan_random(criterion_, column, rows_of(node), total, limits, random, random_);
      found.at = from_values;
      return found;
    };
    if (column.is_category()) return search_values();
    const std::uint32_t low = range.low, high = range.high;
    if (high == RowKeys::missing || (low == high && !all_.exact[f])) return search_values();
    Candidate best;
    best.constant = low == high;
    if (best.constant) return best;
    const double lowest = end_of(node, f, keys, low, ends_of(range), true),
                 highest = end_of(node, f, keys, high, ends_of(range), false);
    if (!std::isfinite(highest - lowest)) return search_values();
    best.threshold = draw_threshold({}, lowest, highest, random);
    best.code_below = settle(node, f, best.threshold, keys);
    best.n_left = add_left(keys, best.code_below, total.n);
    best.w_left = static_cast<double>(left_[0]);
    if (admits(limits, total, left_.data(), best.n_left))
      best.score = local_criterion_->score(left_.data(), total.stat);
    return best;
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

  const Criterion& criterion_;
  RandomBuffers& random_;
  typename Criterion::Local local_;
  std::optional<Criterion> local_criterion_;  // of the node that is searched
  std::vector<Range> ranges_;                 // by column that is searched
  std::vector<std::int64_t> left_;            // sums on the left; behind them, those on the right
};

}  // namespace spinney
