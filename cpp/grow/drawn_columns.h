// The columns of a block with random cuts (extra-trees): nothing is sorted, values are read as 32-bit keys.
//
// The cuts are identical to those of scan_random, which handles the cases that keys cannot: nodes with missing values
// in a number column, infinite ranges, and nodes of few rows with many categories.
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

// The part that does not depend on the criterion.
class DrawnBlock : public BlockColumns {
 public:
  DrawnBlock(const Rules& rules, const Bins& bins) : rules_(rules), all_(bins.keys), kernels_(kernels()) {}

  bool finds_constants(const OpenNode& node) const override { return node.n() <= small_rows; }

  // The keys of the columns searched last are still available, and the chosen column is among them.
  std::size_t partition(const OpenNode& node, const Choice& choice) override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;

 protected:
  struct Range {
    std::size_t begin = 0, end = 0;  // in ends_: positions of the lowest and highest keys, where keys are not exact
  };

  std::span<Row> rows_of(const OpenNode& node) const { return rows_.subspan(node.begin, node.n()); }

  std::uint32_t* keys_of(const OpenNode& node, std::size_t c) { return keys_.data() + c * node.n(); }

  // Returns whether the node has enough of all rows to read keys column by column: most cache lines then hold several
  // of them.
  bool reads_by_column(const OpenNode& node) const {
    return all_.by_column.size() > 0 && node.n() >= rules_.table.n_rows / many_rows;
  }
  // Copies the node's keys in columns begin … end - 1 of these, one column after the other, and finds the range of
  // each. Where keys are not exact, the values at the ends are prefetched.
  void read_keys(const OpenNode& node, std::span<const std::uint32_t> columns, std::size_t begin, std::size_t end);
  Range ends_of(const OpenNode& node, std::uint32_t f, std::size_t c);
  double value_of(std::uint32_t f, Row row) const;
  // The lowest or highest value with this key, for a column whose keys are not exact.
  double end_of(const OpenNode& node, std::uint32_t f, std::size_t c, std::uint32_t key, bool lowest);
  // The last key that goes left, for a column whose keys are not exact; unusable keys are replaced by usable ones.
  std::uint32_t settle(const OpenNode& node, std::uint32_t f, double threshold, std::uint32_t* keys);
  // Collects the category codes of the node and replaces the keys by 0 for rows that go left.
  void partition_codes(const Choice& choice, std::span<std::uint32_t> codes);

  static constexpr std::size_t many_rows = 16;  // a node with at least this fraction (1/16) of all rows
  static constexpr std::size_t small_rows = 64;
  // in Candidate::at: what determines the sides
  static constexpr std::uint32_t from_keys = 0, from_values = 1, from_codes = 2;

  const Rules& rules_;
  const RowKeys& all_;
  const Kernels& kernels_;
  std::span<Row> rows_;              // row index of the block
  LargeArray<std::uint32_t> keys_;   // of the node's rows, column by column
  std::vector<std::uint32_t> ends_;  // positions of rows in the node, column by column
  std::size_t n_ends_ = 0;
  // by searched column
  std::vector<std::uint32_t> low_, high_;  // lowest and highest key
  std::vector<Range> ranges_;
  std::vector<std::uint32_t> same_;   // positions of the rows with the key of a cut
  std::vector<std::uint8_t> side_;    // 1: left; by row, or by code
  std::vector<std::uint32_t> codes_;  // categories in the node that was partitioned last
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

  // A large node finishes a column before it reads the next: all of them would not fit in cache.
  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override {
    if (columns.empty()) return;
    // target of the node's rows, contiguous
    local_criterion_.emplace(criterion_.on(local_.fill(criterion_.rows, rows_of(node))));
    const std::size_t n_together = reads_by_column(node) ? 1 : columns.size();
    for (std::size_t begin = 0; begin < columns.size(); begin += n_together) {
      const std::size_t end = begin + n_together;
      read_keys(node, columns, begin, end);
      for (std::size_t c = begin; c < end; ++c) draw_cut(node, columns[c], c, candidates[c]);
      score_cuts(node, columns, begin, end, candidates);
    }
  }

  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override {
    for (std::size_t i = begin; i < end; ++i) criterion_.add(rows_[i], stat);
  }

 private:
  // Leaves the score open where keys determine it.
  void draw_cut(const OpenNode& node, std::uint32_t f, std::size_t c, Candidate& drawn) {
    drawn = {};
    drawn.below = static_cast<std::uint32_t>(c);
    const std::uint32_t low = low_[c], high = high_[c];
    const bool exact = all_.exact[f];
    if (rules_.table.columns[f].is_category()) return draw_categories(node, f, c, drawn);
    if (high == RowKeys::missing || (low == high && !exact)) return search_values(node, f, drawn);
    drawn.constant = low == high;
    if (drawn.constant) return;
    const double lowest = exact ? RowKeys::value_of(low) : end_of(node, f, c, low, true),
                 highest = exact ? RowKeys::value_of(high) : end_of(node, f, c, high, false);
    if (!std::isfinite(highest - lowest)) return search_values(node, f, drawn);
    RandomStream random(derive(node.key, 16 + f));
    drawn.threshold = draw_between(lowest, highest, random);
    drawn.code_below =
        exact ? RowKeys::last_at_most(drawn.threshold) : settle(node, f, drawn.threshold, keys_of(node, c));
  }

  void draw_categories(const OpenNode& node, std::uint32_t f, std::size_t c, Candidate& drawn) {
    const Column& column = rules_.table.columns[f];
    if (!has_few_codes(column, node.n())) return search_values(node, f, drawn);
    const std::uint32_t* keys = keys_of(node, c);
    add_up_categories(
        column, node.n(), criterion_.width(), [keys](std::size_t i) { return keys[i]; },
        [this](std::size_t i, std::int64_t* stat) { local_criterion_->add(static_cast<Row>(i), stat); }, random_);
    drawn = scan_random_sets(criterion_, {node.n(), node.stat.data()}, rules_.limits(node, f),
                             RandomStream(derive(node.key, 16 + f)), random_);
    drawn.below = static_cast<std::uint32_t>(c);
    drawn.at = from_codes;
  }

  void search_values(const OpenNode& node, std::uint32_t f, Candidate& drawn) {
    const std::uint32_t c = drawn.below;
    drawn = scan_random(criterion_, rules_.table.columns[f], rows_of(node), {node.n(), node.stat.data()},
                        rules_.limits(node, f), RandomStream(derive(node.key, 16 + f)), random_);
    drawn.below = c;
    drawn.at = from_values;
  }

  void score_cuts(const OpenNode& node, std::span<const std::uint32_t> columns, std::size_t begin, std::size_t end,
                  std::span<Candidate> candidates) {
    const Totals total{node.n(), node.stat.data()};
    constexpr bool all_at_once = std::is_same_v<decltype(Criterion::rows), ByteRows>;
    if constexpr (all_at_once) {
      for (auto* by_column : {&cuts_, &counts_, &sums_}) resized(*by_column, columns.size());
      for (std::size_t c = begin; c < end; ++c) cuts_[c] = candidates[c].code_below;
      kernels_.sum_bytes(keys_of(node, begin), node.n(), end - begin, cuts_.data() + begin, local_criterion_->rows.v,
                         counts_.data() + begin, sums_.data() + begin);
    }
    Limits limits = rules_.limits(node, columns[begin]);
    for (std::size_t c = begin; c < end; ++c) {
      Candidate& drawn = candidates[c];
      if (drawn.constant || drawn.at != from_keys) continue;
      if constexpr (all_at_once) {
        drawn.n_left = counts_[c];
        left_[0] = counts_[c];
        left_[1] = sums_[c];
      } else {
        drawn.n_left = add_left(keys_of(node, c), drawn.code_below, total.n);
      }
      drawn.w_left = static_cast<double>(left_[0]);
      if (rules_.bounded()) limits = rules_.limits(node, columns[c]);
      if (admits(limits, total, left_.data(), drawn.n_left))
        drawn.score = local_criterion_->score(left_.data(), total.stat);
    }
  }

  // Sums the rows up to a key into left_ and returns their number.
  Row add_left(const std::uint32_t* keys, std::uint32_t cut, std::size_t n) {
    const auto& rows = local_criterion_->rows;
    using Rows = std::remove_cvref_t<decltype(rows)>;
    std::int64_t n_left = 0;
    if constexpr (std::is_same_v<Rows, UnitRows>) {
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
  std::optional<Criterion> local_criterion_;         // of the node that is searched
  std::vector<std::uint32_t> cuts_, counts_, sums_;  // by searched column
  std::vector<std::int64_t> left_;                   // sums on the left, then those on the right
};

}  // namespace spinney
