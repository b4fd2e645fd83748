// Cuts of a number column from the sorted non-zero entries of a node's rows: the cell of the zeros is the rest of the
// node's sums. Cuts and scores are bit-identical to sorting all rows.
//
// A cut is identified by the number of entries on its left and the side of the zeros: at = 2 * entries + (1 if the
// zeros are left). That orders the cuts of a column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "cells/candidate.h"
#include "cells/random_cut.h"
#include "cells/sorted.h"
#include "cells/words.h"
#include "data/entries.h"

namespace spinney {

// The entries of a column in a node of n rows.
struct EntryRun {
  EntryRun(std::span<const Entry> of_node, std::uint32_t first_above, Row n)
      : entries(of_node),
        n_present(count_present<LongWord>(of_node.data(), of_node.size())),
        n_zeros(n - static_cast<Row>(of_node.size())) {
    while (n_below < n_present && code(n_below) < first_above) ++n_below;
  }

  std::span<const Entry> entries;  // sorted; those of missing values last
  std::size_t n_present, n_below = 0;
  Row n_zeros;

  std::uint32_t code(std::size_t i) const { return code_of(entries[i]); }
  std::uint32_t row(std::size_t i) const { return row_of(entries[i]); }
  Row n_missing() const { return static_cast<Row>(entries.size() - n_present); }
  bool has_value() const { return n_present > 0 || n_zeros > 0; }
  bool has_one_value() const {
    if (n_present == 0 || n_zeros == 0) return n_present == 0 || code(0) == code(n_present - 1);
    return false;
  }
  bool is_constant() const { return !has_value() || (has_one_value() && n_missing() == 0); }
  // Returns whether there is a cut after entry i. The cut next to the zeros is handled separately.
  bool is_cut(std::size_t i) const {
    if (i + 1 == n_below) return n_zeros > 0 || n_below < n_present;
    return i + 1 < n_present && code(i) != code(i + 1);
  }
  struct Range {
    double low, high;
  };
  // The range of the values in the node, which has some; `values` are the column's by code.
  Range range(const double* values) const {
    const bool zeros = n_zeros > 0 || n_present == 0;
    return {zeros && n_below == 0 ? 0.0 : values[code(0)],
            zeros && n_below == n_present ? 0.0 : values[code(n_present - 1)]};
  }
  // The cut at a threshold.
  std::uint32_t at_of(const double* values, double threshold) const {
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(n_present);
    const auto cut =
        std::partition_point(entries.begin(), end, [&](Entry e) { return values[code_of(e)] <= threshold; });
    return static_cast<std::uint32_t>(2 * (cut - entries.begin()) + (0 <= threshold));
  }
};

struct EntryBuffers {
  std::vector<std::int64_t> zeros, missing, left;
};

// The side of a random cut that is opposite to the column's zeros.
struct DrawnSide {
  bool zeros_left = false;
  Row n = 0;
  std::int64_t s = 0, w = 0;
};

// The cuts of several columns with scalar statistics, scored together: only the best of all is retained; ties go to the
// first column and its lowest cut.
class EntryCuts {
 public:
  void start(Rule rule, const Totals& total, bool sums_are_weights) {
    rule_ = rule;
    total_ = total;
    sums_are_weights_ = sums_are_weights;
    n_ = 0;
    score_ = no_score;
  }

  // Adds a run without missing values.
  template <class Rows>
  void add(const Rows& rows, const EntryRun& run, std::uint32_t column, Row min_leaf) {
    make_room(run.n_present + 1);
    const std::size_t m = run.n_present, k = run.n_below;
    std::int64_t s = 0, w = 0;
    const auto emit = [&](std::size_t at, Row n_left, bool is_cut) {
      s_[n_] = s;
      w_[n_] = w;
      at_[n_] = static_cast<std::uint32_t>(at);
      column_[n_] = column;
      n_ += is_cut && n_left >= min_leaf && total_.n - n_left >= min_leaf;
    };
    for (std::size_t i = 0; i < k; ++i) {
      s += rows.value(run.row(i));
      w += rows.weight(run.row(i));
      emit(2 * (i + 1), static_cast<Row>(i + 1), run.is_cut(i));
    }
    const std::size_t behind_zeros = n_;
    emit(2 * k + 1, static_cast<Row>(k) + run.n_zeros, run.n_zeros > 0 && k < m);
    for (std::size_t i = k; i + 1 < m; ++i) {
      s += rows.value(run.row(i));
      w += rows.weight(run.row(i));
      emit(2 * (i + 1) + 1, static_cast<Row>(i + 1) + run.n_zeros, run.code(i) != run.code(i + 1));
    }
    if (k < m) {
      s += rows.value(run.row(m - 1));
      w += rows.weight(run.row(m - 1));
    }
    for (std::size_t j = behind_zeros; j < n_; ++j) {  // with the zeros, which are known now, on the left
      s_[j] += total_.stat[1] - s;
      w_[j] += total_.stat[0] - w;
    }
  }

  // Adds one cut of a column whose left side has the sums s and w.
  void add_cut(std::int64_t s, std::int64_t w, std::uint32_t at, std::uint32_t column) {
    if (n_ + 1 >= s_.size()) make_room(1);
    s_[n_] = s;
    w_[n_] = w;
    at_[n_] = at;
    column_[n_++] = column;
  }

  // Adds the only cut of a column whose entries have the sums s and w.
  void add_flag(std::int64_t s, std::int64_t w, bool is_above, std::uint32_t column) {
    if (is_above)
      add_cut(total_.stat[1] - s, total_.stat[0] - w, 1, column);
    else
      add_cut(s, w, 2, column);
  }

  // Adds a random cut of a run without missing values.
  template <class Rows>
  void add_drawn(const Rows& rows, const EntryRun& run, std::uint32_t at, std::uint32_t column, Row min_leaf) {
    const std::size_t n_entries = at / 2;
    DrawnSide side{.zeros_left = at % 2 != 0};
    const std::size_t begin = side.zeros_left ? n_entries : 0, end = side.zeros_left ? run.n_present : n_entries;
    side.n = static_cast<Row>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      side.s += rows.value(run.row(i));
      side.w += rows.weight(run.row(i));
    }
    add_side(side, at, column, min_leaf);
  }

  // The cut of a column, given by the side opposite to the zeros.
  void add_side(const DrawnSide& side, std::uint32_t at, std::uint32_t column, Row min_leaf) {
    if (side.n < min_leaf || total_.n - side.n < min_leaf) return;
    if (side.zeros_left)
      add_cut(total_.stat[1] - side.s, total_.stat[0] - side.w, at, column);
    else
      add_cut(side.s, side.w, at, column);
  }

  // Call it after the last column.
  void settle() {
    if (n_ == 0) return;
    double score;
    const std::size_t j = best(score);
    n_ = 0;
    if (!(score > score_)) return;
    score_ = score;
    best_at_ = at_[j];
    best_column_ = column_[j];
    weight_ = static_cast<double>(w_[j]);
  }

  bool found() const { return score_ > no_score; }
  std::uint32_t column() const { return best_column_; }
  Candidate candidate() const {
    Candidate c;
    c.score = score_;
    c.at = best_at_;
    c.w_left = weight_;
    return c;
  }

 private:
  void make_room(std::size_t n) {
    constexpr std::size_t enough = 512;
    if (n_ + n > enough) settle();
    const std::size_t size = std::max(enough, n) + 8;
    if (s_.size() >= size) return;
    s_.resize(size);
    w_.resize(size);
    at_.resize(size);
    column_.resize(size);
  }

  std::size_t best(double& score) {
    const Kernels::Score kernel = score_kernel(rule_);
    if (kernel == kernels().squared_error)
      return kernels().best_square(s_.data(), w_.data(), n_, total_.stat[1], total_.stat[0], sums_are_weights_, &score);
    for (auto* numbers : {&s_left_, &w_left_, &s_right_, &w_right_, &scores_}) numbers->resize(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      s_left_[i] = static_cast<double>(s_[i]);
      w_left_[i] = static_cast<double>(w_[i]);
      s_right_[i] = static_cast<double>(total_.stat[1] - s_[i]);
      w_right_[i] = static_cast<double>(total_.stat[0] - w_[i]);
    }
    kernel(s_left_.data(), w_left_.data(), s_right_.data(), w_right_.data(), n_, scores_.data());
    const std::size_t j = kernels().first_largest(scores_.data(), n_);
    score = scores_[j];
    return j;
  }

  Rule rule_ = Rule::gini;
  Totals total_;
  bool sums_are_weights_ = false;  // as the kernel defines it
  std::size_t n_ = 0;
  std::vector<std::int64_t> s_, w_;  // to the left of each cut
  std::vector<std::uint32_t> at_, column_;
  std::vector<double> s_left_, w_left_, s_right_, w_right_, scores_;
  double score_ = no_score, weight_ = 0;  // score of the best cut, and the weight on its left
  std::uint32_t best_at_ = 0, best_column_ = 0;
};

// Gini cuts of several columns with any number of classes. An approximate score takes one step per entry: with G_k the
// weight of class k on the side without the zeros and T_k that of the node, it is Σ_k (G_k W - T_k W_G)^2 / (W_G (W -
// W_G)). Only cuts that may be the best are scored exactly.
class ClassCuts {
 public:
  struct Cut {
    std::uint32_t column, at;
    double most = no_score;  // upper bound of its score, slightly above it
  };

  void start(const Totals& total, std::size_t n_classes) {
    total_ = total;
    part_.resize(n_classes, 0);
    squares_ = 0;
    for (std::size_t k = 0; k < n_classes; ++k) squares_ += number(total.stat[1 + k]) * number(total.stat[1 + k]);
    cuts_.clear();
    least_ = no_score;
  }

  // Adds a run without missing values.
  void add(const ClassRows& rows, const EntryRun& run, std::uint32_t column, Row min_leaf) {
    const std::size_t m = run.n_present, k = run.n_below;
    Side side;
    for (std::size_t i = 0; i < k; ++i) {
      step(rows, run.row(i), side);
      if (run.is_cut(i)) keep(side, static_cast<Row>(i + 1), min_leaf, {column, static_cast<std::uint32_t>(2 * i + 2)});
    }
    forget(rows, run, 0, k);
    side = {};
    for (std::size_t i = m; i-- > k;) {
      step(rows, run.row(i), side);
      if (i == k ? run.n_zeros > 0 : run.code(i - 1) != run.code(i))
        keep(side, static_cast<Row>(m - i), min_leaf, {column, static_cast<std::uint32_t>(2 * i + 1)});
    }
    forget(rows, run, k, m);
  }

  // The cuts that may be the best, column by column.
  std::span<const Cut> near_best() {
    std::erase_if(cuts_, [&](const Cut& cut) { return cut.most < least_; });
    return cuts_;
  }

 private:
  struct Side {  // W_G, Σ G_k^2 and Σ G_k T_k
    double w = 0, squares = 0, products = 0;
  };

  static double number(std::int64_t x) { return static_cast<double>(x); }
  static std::size_t class_of(const ClassRows& rows, std::uint32_t row) {
    return static_cast<std::size_t>(rows.codes[row]);
  }

  void step(const ClassRows& rows, std::uint32_t row, Side& side) {
    const std::size_t k = class_of(rows, row);
    const double weight = rows.w == nullptr ? 1.0 : number(rows.w[row]);
    side.squares += weight * (2 * part_[k] + weight);
    side.products += weight * number(total_.stat[1 + k]);
    part_[k] += weight;
    side.w += weight;
  }

  void forget(const ClassRows& rows, const EntryRun& run, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) part_[class_of(rows, run.row(i))] = 0;
  }

  void keep(const Side& side, Row n, Row min_leaf, Cut cut) {
    constexpr double margin = 1e-9;  // exceeds rounding errors
    constexpr std::size_t many = 4096;
    if (n < min_leaf || total_.n - n < min_leaf) return;
    const double all = number(total_.stat[0]), product = side.w * (all - side.w);
    if (!(product > 0)) return;
    const double size = all * all * side.squares + side.w * side.w * squares_;
    const double score = (size - 2 * all * side.w * side.products) / product, slack = margin * size / product;
    cut.most = score + slack;
    if (cut.most < least_) return;
    least_ = std::max(least_, score - slack);
    if (cuts_.size() == many) near_best();
    cuts_.push_back(cut);
  }

  Totals total_;
  double squares_ = 0;        // Σ T_k^2
  std::vector<double> part_;  // G_k; all 0 between runs
  std::vector<Cut> cuts_;
  double least_ = no_score;  // lower bound of the best score
};

// The sums on the left of a cut of a run without missing values.
template <class Criterion>
void sum_left(const Criterion& criterion, const EntryRun& run, std::uint32_t at, const Totals& total,
              std::vector<std::int64_t>& left) {
  const bool zeros_left = at % 2 != 0;
  left.assign(criterion.width(), 0);
  const std::size_t end = zeros_left ? run.n_present : at / 2;
  for (std::size_t i = zeros_left ? at / 2 : 0; i < end; ++i) criterion.add(run.row(i), left.data());
  if (zeros_left)
    for (std::size_t k = 0; k < left.size(); ++k) left[k] = total.stat[k] - left[k];
}

// The sums of a run's zeros and missing values.
template <class Criterion>
void sum_cells(const Criterion& criterion, const EntryRun& run, const Totals& total, EntryBuffers& b) {
  b.missing.assign(criterion.width(), 0);
  b.zeros.assign(total.stat, total.stat + criterion.width());
  b.left.assign(criterion.width(), 0);
  for (std::size_t i = run.n_present; i < run.entries.size(); ++i) criterion.add(run.row(i), b.missing.data());
  if (run.n_zeros == 0) return;
  for (std::size_t i = 0; i < run.n_present; ++i) criterion.add(run.row(i), b.left.data());
  for (std::size_t k = 0; k < b.zeros.size(); ++k) b.zeros[k] -= b.left[k] + b.missing[k];
}

// One pass over the cuts of a column, with the missing values on one side.
template <class Criterion>
void sweep_entries(const Criterion& criterion, const EntryRun& run, const Totals& total, const Limits& limits,
                   bool missing_left, EntryBuffers& b, Candidate& best) {
  const std::size_t width = criterion.width();
  b.left.assign(width, 0);
  if (missing_left) b.left = b.missing;
  Row n_left = missing_left ? run.n_missing() : 0;
  const auto keep = [&](std::size_t at) {
    if (!admits(limits, total, b.left.data(), n_left)) return;
    const double score = criterion.score(b.left.data(), total.stat);
    if (!(score > best.score || (score == best.score && best.found() && at < best.at))) return;
    best.score = score;
    best.at = static_cast<std::uint32_t>(at);
    best.n_left = n_left;
    best.w_left = static_cast<double>(b.left[0]);
    best.missing_left = missing_left;
  };
  for (std::size_t i = 0; i < run.n_present || i == run.n_below; ++i) {
    if (i == run.n_below && run.n_zeros > 0) {
      for (std::size_t k = 0; k < width; ++k) b.left[k] += b.zeros[k];
      n_left += run.n_zeros;
      if (i < run.n_present) keep(2 * i + 1);
    }
    if (i == run.n_present) break;
    criterion.add(run.row(i), b.left.data());
    ++n_left;
    if (run.is_cut(i)) keep(2 * (i + 1) + (i >= run.n_below));
  }
}

// The cut with the present rows on the left and missing values on the right.
template <class Criterion>
void try_missing_alone(const Criterion& criterion, const EntryRun& run, const Totals& total, const Limits& limits,
                       EntryBuffers& b, Candidate& best) {
  for (std::size_t k = 0; k < b.left.size(); ++k) b.left[k] = total.stat[k] - b.missing[k];
  const Row n_left = total.n - run.n_missing();
  if (!admits(limits, total, b.left.data(), n_left)) return;
  const double score = criterion.score(b.left.data(), total.stat);
  if (!(score > best.score)) return;
  best.score = score;
  best.n_left = n_left;
  best.w_left = static_cast<double>(b.left[0]);
  best.missing_left = false;
  best.missing_alone = true;
}

// The best cut of a column.
template <class Criterion>
Candidate scan_entries(const Criterion& criterion, const EntryRun& run, const Totals& total, const Limits& limits,
                       EntryBuffers& b) {
  Candidate best;
  best.has_missing = run.n_missing() > 0;
  best.constant = run.is_constant();
  if (best.constant) return best;
  sum_cells(criterion, run, total, b);
  if (!run.has_one_value())
    for (const bool missing_left : {false, true})
      if (!missing_left || best.has_missing) sweep_entries(criterion, run, total, limits, missing_left, b, best);
  if (best.has_missing) try_missing_alone(criterion, run, total, limits, b, best);
  return best;
}

// One random cut, drawn as by scan_random: `values` are the column's by code.
template <class Criterion>
Candidate draw_entries(const Criterion& criterion, const EntryRun& run, const double* values, const Totals& total,
                       const Limits& limits, double low, double high, RandomStream random, EntryBuffers& b) {
  Candidate best;
  best.has_missing = run.n_missing() > 0;
  best.missing_alone = low == high;
  if (!best.missing_alone) {
    best.threshold = draw_between(low, high, random);
    best.at = run.at_of(values, best.threshold);
  }
  const std::size_t n_entries = best.missing_alone ? run.n_present : best.at / 2;
  const bool zeros_left = best.missing_alone || best.at % 2 != 0;
  sum_cells(criterion, run, total, b);
  for (const bool missing_left : {false, true}) {
    if (missing_left && (!best.has_missing || best.missing_alone)) break;
    b.left.assign(criterion.width(), 0);
    for (std::size_t i = 0; i < n_entries; ++i) criterion.add(run.row(i), b.left.data());
    for (std::size_t k = 0; k < b.left.size(); ++k)
      b.left[k] += (zeros_left && run.n_zeros > 0 ? b.zeros[k] : 0) + (missing_left ? b.missing[k] : 0);
    const Row n_left =
        static_cast<Row>(n_entries) + (zeros_left ? run.n_zeros : 0) + (missing_left ? run.n_missing() : 0);
    if (n_left == 0 || n_left == total.n || !admits(limits, total, b.left.data(), n_left)) continue;
    const double score = criterion.score(b.left.data(), total.stat);
    if (!(score > best.score)) continue;
    best.score = score;
    best.n_left = n_left;
    best.w_left = static_cast<double>(b.left[0]);
    best.missing_left = missing_left;
  }
  return best;
}

}  // namespace spinney
