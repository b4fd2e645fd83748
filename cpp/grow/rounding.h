// Breaks ties between equally good splits as rpart does: its sums are doubles, so the order of additions decides. The
// order is the same here: rows sorted by the column, running sums from left to right, the right side by subtraction.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/math.h"
#include "cells/candidate.h"
#include "cells/categories.h"
#include "data/read.h"
#include "data/sort.h"
#include "grow/rules.h"

namespace spinney {

// The sums over a node's rows as rpart computes them. A vector of sums holds
//   regression  weight, weight * (y - mean)
//   rates       weight * time, weight * events
//   classes     weight under the altered priors, then the case weight of each class
class RoundedFigures {
 public:
  using RpartSums = std::vector<double>;

  RoundedFigures(const Rules& rules, std::span<const Row> node_rows)
      : params_(rules.params.surrogate_params), target_(rules.target), n_classes_(params_.class_factor.size()) {
    if (n_classes_ > 0 || params_.exposure != nullptr) return;
    mean_ = mean_of(node_rows);
    for (const Row r : node_rows) {
      const double d = params_.response[r] - mean_;
      risk_ += params_.case_weight[r] * (d * d);
    }
  }

  std::size_t width() const { return n_classes_ > 0 ? n_classes_ + 1 : 2; }
  bool has_many_classes() const { return n_classes_ > 2; }

  // Call it with the rows that take part, in summation order.
  void start(std::span<const Row> rows) {
    if (n_classes_ == 0 && params_.exposure == nullptr) mean_ = mean_of(rows);
  }

  void add(Row r, double* sum, double* less = nullptr) const {
    const double w = params_.case_weight[r];
    const auto shift = [&](std::size_t k, double by) {
      sum[k] += by;
      if (less != nullptr) less[k] -= by;
    };
    if (n_classes_ > 0) {
      const auto k = static_cast<std::size_t>(target_.input.codes[r]);
      shift(0, params_.class_factor[k] * w);
      shift(1 + k, w);
    } else if (params_.exposure != nullptr) {
      shift(0, w * params_.exposure[r]);
      shift(1, w * params_.response[r]);
    } else {
      shift(0, w);
      shift(1, w * (params_.response[r] - mean_));
    }
  }

  double improvement(const RpartSums& left, const RpartSums& right, const RpartSums& total) const {
    if (n_classes_ > 0) {
      double before = 0, after = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) {
        before += mass(total, k);
        after += mass(left, k);
        after += mass(right, k);
      }
      return before - after;
    }
    if (params_.exposure != nullptr) return 2 * (likelihood(left) + likelihood(right) - likelihood(total));
    const double squared = left[1] * left[1];  // the distances of both sides from the mean add up to 0
    return (squared / left[0] + squared / right[0]) / risk_;
  }

  // The sort key of the levels.
  double rank(const double* sum) const {
    return n_classes_ > 0 ? params_.class_factor[0] * sum[1] / sum[0] : sum[1] / sum[0];
  }

 private:
  double mean_of(std::span<const Row> rows) const {
    double sum = 0, weight = 0;
    for (const Row r : rows) {
      sum += params_.case_weight[r] * params_.response[r];
      weight += params_.case_weight[r];
    }
    return sum / weight;
  }
  double mass(const RpartSums& sum, std::size_t k) const {  // weight times impurity
    const double p = params_.class_factor[k] * sum[1 + k] / sum[0];
    if (target_.rule != Rule::entropy) return sum[0] * (p * (1 - p));
    return p > 0 ? sum[0] * (-p * log_nearest(p)) : 0;
  }
  static double likelihood(const RpartSums& sum) { return sum[1] > 0 ? sum[1] * log_nearest(sum[1] / sum[0]) : 0; }

  const SurrogateParams& params_;
  const Target& target_;
  std::size_t n_classes_;
  double mean_ = 0, risk_ = 0;
};

// Searches one column again in doubles; the first of equally good cuts wins.
class RoundedSearch {
 public:
  RoundedSearch(const Rules& rules, std::span<const Row> node_rows, std::uint32_t feature)
      : figures_(rules, node_rows),
        column_(rules.table.columns[feature]),
        min_leaf_(rules.params.min_samples_leaf),
        left_(figures_.width(), 0.0),
        right_(figures_.width(), 0.0),
        total_(figures_.width(), 0.0) {}

  // `rows` have a value. Moves `candidate` to the split that rpart takes; returns its improvement.
  double run(ColumnSorter& sorter, std::span<const Row> rows, Candidate& candidate) {
    n_ = rows.size();
    if (column_.is_category())
      search_levels(rows, candidate);
    else
      search_cuts(sorter, rows, candidate);
    return best_;
  }

 private:
  bool improves(std::size_t n_left) {
    if (n_left < min_leaf_ || n_ - n_left < min_leaf_) return false;
    const double improve = figures_.improvement(left_, right_, total_);
    if (!(improve > best_)) return false;
    best_ = improve;
    return true;
  }

  void search_cuts(ColumnSorter& sorter, std::span<const Row> rows, Candidate& candidate) {
    const std::span<const Entry> entries = sorter.sort(column_, rows, true);
    std::vector<Row> sorted(n_);
    for (std::size_t i = 0; i < n_; ++i) sorted[i] = rows[row_of(entries[i])];
    figures_.start(sorted);
    for (const Row r : sorted) figures_.add(r, total_.data());
    right_ = total_;
    for (std::size_t i = 0; i + 1 < n_; ++i) {
      figures_.add(sorted[i], left_.data(), right_.data());
      if (code_of(entries[i]) == code_of(entries[i + 1]) || !improves(i + 1)) continue;
      candidate.at = static_cast<std::uint32_t>(i);
      candidate.n_left = static_cast<Row>(i + 1);
      candidate.below = sorted[i];
      candidate.above = sorted[i + 1];
      candidate.code_below = code_of(entries[i]);
    }
  }

  void search_levels(std::span<const Row> rows, Candidate& candidate) {
    collect(rows);
    if (figures_.has_many_classes())
      try_sets(candidate);
    else
      try_prefixes(candidate);
  }

  void collect(std::span<const Row> rows) {
    const std::size_t width = figures_.width(), n_codes = column_.n_categories + std::size_t{1};
    std::vector<double> sums(n_codes * width, 0.0);
    std::vector<std::size_t> counts(n_codes, 0);
    figures_.start(rows);
    read_rows(column_, rows.data(), rows.size(), [&](std::size_t i, double v) {
      const auto code = static_cast<std::size_t>(v);
      ++counts[code];
      figures_.add(rows[i], sums.data() + code * width);
      figures_.add(rows[i], total_.data());  // as rpart does: by row, not by level
    });
    for (std::uint32_t code = 0; code < n_codes; ++code) {
      if (counts[code] == 0) continue;
      levels_.push_back({code,
                         counts[code],
                         {sums.begin() + static_cast<std::ptrdiff_t>(code * width),
                          sums.begin() + static_cast<std::ptrdiff_t>((code + 1) * width)}});
    }
  }

  struct Level {
    std::uint32_t code;
    std::size_t n;
    std::vector<double> sum;
  };

  static void move(const Level& level, std::vector<double>& from, std::vector<double>& to) {
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] += level.sum[k];
      from[k] -= level.sum[k];
    }
  }

  void try_prefixes(Candidate& candidate) {
    std::stable_sort(levels_.begin(), levels_.end(), [&](const Level& a, const Level& b) {
      return figures_.rank(a.sum.data()) < figures_.rank(b.sum.data());
    });
    right_ = total_;
    std::size_t n_left = 0, n_best = 0;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      move(levels_[i], right_, left_);
      n_left += levels_[i].n;
      if (!improves(n_left)) continue;
      n_best = i + 1;
      candidate.n_left = static_cast<Row>(n_left);
    }
    if (n_best == 0) return;
    candidate.left_codes.clear();
    for (std::size_t i = 0; i < n_best; ++i) candidate.left_codes.push_back(levels_[i].code);
  }

  // Gray code from the first level; the last never moves. The moved levels are rpart's first side, the engine's left.
  void try_sets(Candidate& candidate) {
    if (levels_.size() > max_enumerable_categories) return;
    const std::size_t last = levels_.size() - 1;
    right_ = total_;
    std::size_t n_moved = 0;
    for (std::uint32_t step = 1; step < std::uint32_t{1} << last; ++step) {
      const std::uint32_t set = step ^ (step >> 1), moved = step & (~step + 1);
      const Level& level = levels_[static_cast<std::size_t>(std::countr_zero(moved))];
      const bool joins = (set & moved) != 0;
      move(level, joins ? right_ : left_, joins ? left_ : right_);
      n_moved = joins ? n_moved + level.n : n_moved - level.n;
      if (!improves(n_moved)) continue;
      candidate.n_left = static_cast<Row>(n_moved);
      candidate.left_codes.clear();
      for (std::size_t c = 0; c < last; ++c)
        if (set >> c & 1) candidate.left_codes.push_back(levels_[c].code);
    }
  }

  RoundedFigures figures_;
  const Column& column_;
  std::size_t min_leaf_, n_ = 0;
  RoundedFigures::RpartSums left_, right_, total_;
  std::vector<Level> levels_;
  double best_ = 0;
};

}  // namespace spinney
