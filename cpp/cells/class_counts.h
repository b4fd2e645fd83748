// Cuts of a number column by the classes' weights at each of its ranks: nothing is sorted.
//
// The cells of a node are counted in one pass over its rows, and read in the order of their ranks: those in use are known
// from bits, so that a node of few rows does not pay for the values of the whole column. Gini's scores are filtered by a
// form that is quick but rounds otherwise; cuts that may be the best are scored as everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cells/candidate.h"
#include "cells/kernels.h"
#include "criterion/target.h"

namespace spinney {

class ClassCounts {
 public:
  // A row as it is counted: weight << 8 | class.
  static constexpr std::uint32_t most_classes = 256, most_weight = 0xffffff;
  static std::size_t lanes_of(std::size_t n_classes) {
    return n_classes <= 8 ? 8 : n_classes <= 16 ? 16 : n_classes <= 32 ? 32 : 256;
  }
  // Of a column: its cells are to stay in cache.
  static std::uint32_t most_values(std::size_t n_classes) {
    constexpr std::size_t most_cells = std::size_t{1} << 19;
    return static_cast<std::uint32_t>(std::min<std::size_t>(0xfffe, most_cells / lanes_of(n_classes)));
  }

  // `most_ranks`: of any column, the rank of missing values included.
  void start(std::size_t n_classes, std::size_t most_ranks) {
    n_classes_ = n_classes;
    lanes_ = lanes_of(n_classes);
    cells_.assign(most_ranks * lanes_, 0);
    rows_.assign(most_ranks, 0);
    bits_.assign(most_ranks / 64 + 1, 0);
    groups_.assign(bits_.size() / 64 + 1, 0);
    total_.resize(lanes_);
    start_.resize(lanes_);
    left_.resize(1 + n_classes);
  }

  // The best cut of a node's rows by their ranks, of which the last, `n_values`, stands for missing. It lies between the
  // ranks `code_below` and `above`.
  template <class Criterion>
  Candidate search(const Criterion& criterion, std::span<const std::uint16_t> ranks, const std::uint32_t* packed,
                   std::uint32_t n_values, const Totals& total, const Limits& limits) {
    Candidate best;
    std::uint16_t low, high;
    kernels().rank_range(ranks.data(), ranks.size(), &low, &high);
    best.has_missing = high == n_values;
    best.constant = low == high;
    if (best.constant) return best;
    count(ranks, packed, low, high, total, limits.min_leaf > 1 || limits.min_weight > 0);
    if (best.has_missing) present_.pop_back();
    for (std::size_t k = 0; k < n_classes_; ++k) total_[k] = static_cast<double>(total.stat[1 + k]);
    for (const bool missing_left : {false, true}) {
      if (missing_left && !best.has_missing) break;
      sweep(criterion, n_values, total, limits, missing_left, best);
    }
    if (best.has_missing) {
      for (std::size_t k = 0; k < n_classes_; ++k) left_[1 + k] = total.stat[1 + k] - cells_[n_values * lanes_ + k];
      set_weight();
      const Row n_left = total.n - rows_[n_values];
      if (const double score = score_of(criterion, total, limits, n_left); score > best.score) {
        best.score = score;
        best.w_left = static_cast<double>(left_[0]);
        best.n_left = n_left;
        best.missing_left = false;
        best.missing_alone = true;
      }
      present_.push_back(n_values);
    }
    clear();
    return best;
  }

 private:
  void count(std::span<const std::uint16_t> ranks, const std::uint32_t* packed, std::uint32_t low, std::uint32_t high,
             const Totals& total, bool with_rows) {
    present_.clear();
    if (with_rows)
      for (const std::uint16_t rank : ranks) ++rows_[rank];
    if (high - low == 1) return count_two(ranks, packed, low, high, total);
    std::uint32_t* const cells = cells_.data();
    const std::size_t lanes = lanes_;
    const auto add = [&](std::size_t i) { cells[ranks[i] * lanes + (packed[i] & 0xff)] += packed[i] >> 8; };
    if (ranks.size() / 4 >= high - low) {
      for (std::size_t i = 0; i < ranks.size(); ++i) add(i);
      for (std::uint32_t r = low; r <= high; ++r)
        if (is_used(r)) present_.push_back(r);
      return;
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      add(i);
      bits_[ranks[i] / 64] |= std::uint64_t{1} << ranks[i] % 64;
      groups_[ranks[i] / 4096] |= std::uint64_t{1} << ranks[i] / 64 % 64;
    }
    for (std::size_t g = low / 4096; g <= high / 4096; ++g) {
      for (; groups_[g] != 0; groups_[g] &= groups_[g] - 1) {
        const std::size_t word = g * 64 + static_cast<std::size_t>(std::countr_zero(groups_[g]));
        for (; bits_[word] != 0; bits_[word] &= bits_[word] - 1)
          present_.push_back(static_cast<std::uint32_t>(word * 64) +
                             static_cast<std::uint32_t>(std::countr_zero(bits_[word])));
      }
    }
  }

  // Two values: one is counted, the other is the rest. Runs of the lower, as columns of 0 and 1 often have, are skipped.
  void count_two(std::span<const std::uint16_t> ranks, const std::uint32_t* packed, std::uint32_t low,
                 std::uint32_t high, const Totals& total) {
    std::uint32_t* const cell = cells_.data() + high * lanes_;
    const auto add = [&](std::size_t i) { cell[packed[i] & 0xff] += ranks[i] == high ? packed[i] >> 8 : 0; };
    const std::uint64_t all_low = low * 0x0001000100010001u;
    std::size_t i = 0;
    for (; i + 4 <= ranks.size(); i += 4) {
      std::uint64_t four;
      std::memcpy(&four, ranks.data() + i, sizeof four);
      if (four == all_low) continue;
      for (std::size_t j = i; j < i + 4; ++j) add(j);
    }
    for (; i < ranks.size(); ++i) add(i);
    for (std::size_t k = 0; k < n_classes_; ++k)
      cells_[low * lanes_ + k] = static_cast<std::uint32_t>(total.stat[1 + k]) - cell[k];
    present_.push_back(low);
    present_.push_back(high);
  }

  bool is_used(std::uint32_t rank) const {
    std::uint32_t any = 0;
    for (std::size_t k = 0; k < lanes_; ++k) any |= cells_[rank * lanes_ + k];
    return any != 0;
  }

  void clear() {
    for (const std::uint32_t r : present_) {
      std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(r * lanes_), lanes_, 0);
      rows_[r] = 0;
    }
  }

  void add_cell(std::uint32_t rank) {
    const std::uint32_t* cell = cells_.data() + rank * lanes_;
    std::uint32_t* sum = start_.data();
    for (std::size_t k = 0; k < lanes_; k += 8)
      for (std::size_t j = k; j < k + 8; ++j) sum[j] += cell[j];
  }

  // Ties go to the lower cut.
  template <class Criterion>
  void sweep(const Criterion& criterion, std::uint32_t n_values, const Totals& total, const Limits& limits,
             bool missing_left, Candidate& best) {
    const std::size_t n_cuts = present_.size() - 1;
    if (present_.size() < 2) return;
    const std::uint32_t* missing = cells_.data() + n_values * lanes_;
    for (std::size_t k = 0; k < lanes_; ++k) start_[k] = missing_left ? missing[k] : 0;
    double bar = no_score;
    const bool filtered = criterion.rule == Rule::gini && n_cuts > 2;
    if (filtered) bar = filter(n_cuts, total, limits, missing_left ? rows_[n_values] : 0);
    Row n_left = missing_left ? rows_[n_values] : 0;
    for (std::size_t i = 0; i < n_cuts; ++i) {
      const std::uint32_t rank = present_[i];
      add_cell(rank);
      n_left += rows_[rank];
      if (filtered && !(quick_[i] >= bar)) continue;
      for (std::size_t k = 0; k < n_classes_; ++k) left_[1 + k] = start_[k];
      set_weight();
      const double score = score_of(criterion, total, limits, n_left);
      if (score > best.score || (score == best.score && best.found() && rank < best.at)) {
        best.score = score;
        best.at = best.code_below = rank;
        best.above = present_[i + 1];
        best.n_left = n_left;
        best.w_left = static_cast<double>(left_[0]);
        best.missing_left = missing_left;
      }
    }
  }

  // Scores all cuts quickly; those below what is returned are not the best that is allowed.
  double filter(std::size_t n_cuts, const Totals& total, const Limits& limits, Row n_left) {
    const auto weight = static_cast<double>(total.stat[0]);
    quick_.resize(std::max(quick_.size(), n_cuts));
    products_.resize(quick_.size());
    kernels().gini_of_cells(cells_.data(), lanes_, present_.data(), n_cuts, start_.data(), total_.data(), weight,
                            limits.min_weight, quick_.data(), products_.data());
    if (limits.min_leaf > 1)
      for (std::size_t i = 0; i < n_cuts; ++i) {
        n_left += rows_[present_[i]];
        if (n_left < limits.min_leaf || total.n - n_left < limits.min_leaf) quick_[i] = no_score;
      }
    return *std::max_element(quick_.begin(), quick_.begin() + static_cast<std::ptrdiff_t>(n_cuts)) - 1e-9 * weight;
  }

  void set_weight() {
    left_[0] = 0;
    for (std::size_t k = 0; k < n_classes_; ++k) left_[0] += left_[1 + k];
  }

  template <class Criterion>
  double score_of(const Criterion& criterion, const Totals& total, const Limits& limits, Row n_left) const {
    const bool allowed =
        (limits.min_leaf <= 1 && limits.min_weight <= 0) || admits(limits, total, left_.data(), n_left);
    return allowed ? criterion.score(left_.data(), total.stat) : no_score;
  }

  std::size_t n_classes_ = 0, lanes_ = 0;
  std::vector<std::uint32_t> cells_;          // weight by rank and class; all 0 between searches
  std::vector<Row> rows_;                     // by rank, where leaves have a least size
  std::vector<std::uint64_t> bits_, groups_;  // ranks in use; words of bits_ in use
  std::vector<std::uint32_t> present_;        // ranks in use, ascending
  std::vector<std::uint32_t> start_;          // by class: what is left of the cut
  std::vector<double> total_;                 // by class
  std::vector<double> quick_, products_;      // by cut
  std::vector<std::int64_t> left_;            // statistic of a cut's left side
};

}  // namespace spinney
