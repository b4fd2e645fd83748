// Cuts of a number column by class weights per rank, without sorting.
//
// The cells of a node are counted in one pass over its rows and read in rank order: a bit mask marks those in use, so
// that the cost for a node of few rows does not depend on the number of values of the column. Gini scores are filtered
// by a faster form with different rounding; cuts that may be the best are scored exactly. For Gini, rows with mostly
// unique ranks are sorted instead: each row on the left changes one class only.
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
  // A row in the counted form: weight << 8 | class.
  static constexpr std::uint32_t most_classes = 256, most_weight = 0xffffff;
  static std::size_t lanes_of(std::size_t n_classes) {
    return n_classes <= 8 ? 8 : n_classes <= 16 ? 16 : n_classes <= 32 ? 32 : 256;
  }
  // Limits per column, so that its cells stay in cache.
  static std::uint32_t most_values(std::size_t n_classes) {
    constexpr std::size_t most_cells = std::size_t{1} << 19;
    return static_cast<std::uint32_t>(std::min<std::size_t>(0xfffe, most_cells / lanes_of(n_classes)));
  }

  // `most_ranks`: maximum over the columns, including the rank of missing values.
  void start(std::size_t n_classes, std::size_t most_ranks, std::size_t n_flags) {
    n_classes_ = n_classes;
    lanes_ = lanes_of(n_classes);
    cells_.assign(most_ranks * lanes_, 0);
    rows_.assign(most_ranks, 0);
    bits_.assign(most_ranks / 64 + 1, 0);
    groups_.assign(bits_.size() / 64 + 1, 0);
    total_.resize(lanes_);
    start_.resize(lanes_);
    left_.resize(1 + n_classes);
    flag_cells_.resize(n_flags * lanes_);
    flag_rows_.resize(n_flags);
  }

  // The best cut of a node's rows by their ranks; the last rank, `n_values`, stands for missing. The cut is between the
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
    constexpr std::size_t most_places = 0x10000;
    const bool limited = limits.min_leaf > 1 || limits.min_weight > 0, plain = !limited && !best.has_missing;
    if (criterion.rule == Rule::gini && plain && ranks.size() <= most_places && is_sparse(ranks.size(), low, high)) {
      sweep_rows(criterion, ranks, packed, total, low, high, best);
      return best;
    }
    count(ranks, packed, low, high, total, limited);
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

  // Counts the classes of the rows with each of the `requested` flags. Columns of two values are often 0 in most rows.
  void count_flags(const std::uint64_t* flags, const std::uint32_t* packed, std::size_t n, std::uint64_t requested) {
    for (std::uint64_t left = requested; left != 0; left &= left - 1) {
      const auto flag = static_cast<std::size_t>(std::countr_zero(left));
      std::fill_n(flag_cells_.begin() + static_cast<std::ptrdiff_t>(flag * lanes_), lanes_, 0);
      flag_rows_[flag] = 0;
    }
    constexpr std::size_t chunk = 256;
    std::uint32_t flagged[chunk];
    for (std::size_t begin = 0; begin < n; begin += chunk) {
      const std::size_t end = std::min(n, begin + chunk);
      std::size_t n_flagged = 0;
      for (std::size_t i = begin; i < end; ++i) {  // branch-free
        flagged[n_flagged] = static_cast<std::uint32_t>(i);
        n_flagged += (flags[i] & requested) != 0;
      }
      for (std::size_t j = 0; j < n_flagged; ++j) {
        const std::uint32_t i = flagged[j];
        for (std::uint64_t left = flags[i] & requested; left != 0; left &= left - 1) {
          const auto flag = static_cast<std::size_t>(std::countr_zero(left));
          flag_cells_[flag * lanes_ + (packed[i] & 0xff)] += packed[i] >> 8;
          ++flag_rows_[flag];
        }
      }
    }
  }

  // The cut between the rows without a flag and those with it, for the rows counted last.
  template <class Criterion>
  Candidate search_flag(const Criterion& criterion, std::uint32_t flag, const Totals& total, const Limits& limits) {
    Candidate best;
    for (std::size_t k = 0; k < n_classes_; ++k) left_[1 + k] = total.stat[1 + k] - flag_cells_[flag * lanes_ + k];
    set_weight();
    best.n_left = total.n - flag_rows_[flag];
    best.constant = best.n_left == 0 || best.n_left == total.n;
    if (best.constant) return best;
    best.score = score_of(criterion, total, limits, best.n_left);
    best.w_left = static_cast<double>(left_[0]);
    best.above = 1;
    return best;
  }

 private:
  static bool is_sparse(std::size_t n, std::uint32_t low, std::uint32_t high) { return n / 4 < high - low; }

  void count(std::span<const std::uint16_t> ranks, const std::uint32_t* packed, std::uint32_t low, std::uint32_t high,
             const Totals& total, bool with_rows) {
    present_.clear();
    if (with_rows)
      for (const std::uint16_t rank : ranks) ++rows_[rank];
    if (high - low == 1) return count_two(ranks, packed, low, high, total);
    std::uint32_t* const cells = cells_.data();
    const std::size_t lanes = lanes_;
    const auto add = [&](std::size_t i) { cells[ranks[i] * lanes + (packed[i] & 0xff)] += packed[i] >> 8; };
    if (!is_sparse(ranks.size(), low, high)) {
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

  // Two values: one is counted, the other is the rest. Runs of the lower value, frequent in 0/1 columns, are skipped.
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

  // Sorts rank << 16 | position in words_.
  void sort_places(std::span<const std::uint16_t> ranks, std::uint32_t low, std::uint32_t high) {
    constexpr std::size_t few = 128;
    const std::size_t n = ranks.size();
    words_.resize(std::max({words_.size(), n, few}));
    for (std::size_t i = 0; i < n; ++i) words_[i] = std::uint32_t{ranks[i]} << 16 | static_cast<std::uint32_t>(i);
    if (n <= few) return kernels().sort_few(words_.data(), n);
    spare_words_.resize(words_.size());
    const std::uint32_t n_bits = (static_cast<std::uint32_t>(std::bit_width(high - low)) + 1) / 2;
    const std::size_t n_buckets = std::size_t{1} << n_bits;
    for (const std::uint32_t shift : {0u, n_bits}) {
      std::uint32_t ends[257];
      std::fill_n(ends, n_buckets + 1, 0);
      const auto bucket = [&](std::uint32_t word) { return ((word >> 16) - low) >> shift & (n_buckets - 1); };
      for (std::size_t i = 0; i < n; ++i) ++ends[bucket(words_[i]) + 1];
      for (std::size_t b = 0; b < n_buckets; ++b) ends[b + 1] += ends[b];
      for (std::size_t i = 0; i < n; ++i) spare_words_[ends[bucket(words_[i])]++] = words_[i];
      words_.swap(spare_words_);
    }
  }

  // The best Gini cut of rows without missing values and limits: like `sweep`, row by row.
  template <class Criterion>
  void sweep_rows(const Criterion& criterion, std::span<const std::uint16_t> ranks, const std::uint32_t* packed,
                  const Totals& total, std::uint32_t low, std::uint32_t high, Candidate& best) {
    const std::size_t n_cuts = ranks.size() - 1;
    sort_places(ranks, low, high);
    quick_.resize(std::max(quick_.size(), n_cuts));
    products_.resize(quick_.size());
    std::int64_t squares = 0;
    for (std::size_t k = 1; k <= n_classes_; ++k) squares += total.stat[k] * total.stat[k];
    std::fill(left_.begin(), left_.end(), 0);
    kernels().gini_of_rows(words_.data(), packed, ranks.size(), total.stat, squares, left_.data() + 1, quick_.data(),
                           products_.data());
    const double bar =
        quick_[kernels().first_largest(quick_.data(), n_cuts)] - 1e-9 * static_cast<double>(total.stat[0]);
    std::fill(left_.begin(), left_.end(), 0);
    for (std::size_t i = 0, next = 0; i < n_cuts; ++i) {
      if (!(quick_[i] >= bar)) continue;
      for (; next <= i; ++next) {
        const std::uint32_t row = packed[words_[next] & 0xffff];
        left_[0] += row >> 8;
        left_[1 + (row & 0xff)] += row >> 8;
      }
      const double score = criterion.score(left_.data(), total.stat);
      if (!(score > best.score)) continue;
      best.score = score;
      best.at = best.code_below = words_[i] >> 16;
      best.above = words_[i + 1] >> 16;
      best.n_left = static_cast<Row>(i + 1);
      best.w_left = static_cast<double>(left_[0]);
    }
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

  // Scores all cuts approximately; cuts below the returned score are not the best admissible cut.
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
  std::vector<std::uint32_t> cells_;                // weight by rank and class; all 0 between searches
  std::vector<Row> rows_;                           // by rank, if leaves have a minimum size
  std::vector<std::uint64_t> bits_, groups_;        // ranks in use; words of bits_ in use
  std::vector<std::uint32_t> present_;              // ranks in use, ascending
  std::vector<std::uint32_t> start_;                // by class: weight to the left of all cuts
  std::vector<double> total_;                       // by class
  std::vector<double> quick_, products_;            // by cut
  std::vector<std::uint32_t> words_, spare_words_;  // rank and position of rows, sorted
  std::vector<std::int64_t> left_;                  // statistic of the left side of a cut
  std::vector<std::uint32_t> flag_cells_;           // weight by flag and class
  std::vector<Row> flag_rows_;                      // by flag
};

}  // namespace spinney
