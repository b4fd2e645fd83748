// Cuts under a user-defined criterion. A column is one sequence of rows, and one call evaluates all its cuts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "cells/candidate.h"
#include "cells/random_cut.h"
#include "cells/sorted.h"
#include "cells/words.h"
#include "criterion/target.h"
#include "criterion/user.h"
#include "data/read.h"

namespace spinney {

struct UserRows {                                // the row data passed to the criterion, by the number stored in a word
  const double *y = nullptr, *weight = nullptr;  // weight: null if every weight is 1, like fixed_weight
  const std::int64_t* fixed_weight = nullptr;
  const Row* row = nullptr;  // row of the table; null: the number itself
  std::size_t n_columns = 1;

  Row table_row(std::uint32_t r) const { return row == nullptr ? r : row[r]; }
  std::int64_t fixed_weight_of(std::uint32_t r) const { return fixed_weight == nullptr ? 1 : fixed_weight[r]; }

  struct Local {  // the rows of a block, by their position
    std::vector<double> y, weight;
    std::vector<std::int64_t> fixed_weight;
    std::vector<Row> row;

    UserRows fill(const UserRows& all, std::span<const Row> rows) {
      row.assign(rows.begin(), rows.end());
      y.clear();
      for (const Row r : rows) y.insert(y.end(), all.y + r * all.n_columns, all.y + (r + 1) * all.n_columns);
      if (all.weight != nullptr)
        for (const Row r : rows) weight.push_back(all.weight[r]);
      if (all.fixed_weight != nullptr)
        for (const Row r : rows) fixed_weight.push_back(all.fixed_weight[r]);
      return {y.data(), weight.empty() ? nullptr : weight.data(), fixed_weight.empty() ? nullptr : fixed_weight.data(),
              row.data(), all.n_columns};
    }
  };
};

// `stat` is {W}. There is one per worker: it holds the current sequence.
class UserSplits {
 public:
  using Local = UserRows::Local;

  UserSplits(const UserRows& r, const UserCriterion& user) : rows(r), user_(&user) {}
  UserSplits on(const UserRows& local) const { return {local, *user_}; }

  static constexpr std::size_t width() { return 1; }
  void add(std::uint32_t row, std::int64_t* stat) const { stat[0] += rows.fixed_weight_of(row); }

  // Sets the column whose cuts are evaluated next.
  void look_at(const Column& column) { column_ = &column; }

  void clear() { order_.clear(); }
  void append(std::uint32_t row) { order_.push_back(row); }

  // The goodness of a cut after each row of the sequence except the last; x is ascending.
  std::span<const double> goodness_of_cuts() {
    fill_x_from_column();
    return call_split();
  }
  // The same, where x is the index of the row's group.
  std::span<const double> goodness_of_group_cuts(std::span<const std::size_t> group_end) {
    fill_x_from_groups(group_end);
    return call_split();
  }

  // The order of the groups of the sequence, and the goodness of each cut in that order.
  std::span<const double> order_groups(std::vector<std::size_t> group_end, std::vector<std::uint32_t>& order) {
    order.resize(group_end.size());
    std::iota(order.begin(), order.end(), 0u);
    fill_x_from_groups(group_end);
    gather();
    goodness_.assign(group_end.size(), std::nan(""));
    if (user_->split_groups(sequence(), x_.data(), group_end.size(), order.data(), goodness_.data())) return goodness_;
    sort_groups(group_end, order);
    const std::span<const double> goodness_by_row = goodness_of_group_cuts(group_end);
    const std::vector<double> by_row(goodness_by_row.begin(), goodness_by_row.end());
    goodness_.resize(group_end.size());
    for (std::size_t g = 0; g < group_end.size(); ++g) goodness_[g] = by_row[group_end[g] - 1];
    return goodness_;
  }

  UserRows rows;

 private:
  UserCriterion::Rows sequence() const { return {y_.data(), weight_.data(), order_.size()}; }

  void gather() {
    const std::size_t n = order_.size(), p = rows.n_columns;
    y_.resize(n * p);
    weight_.resize(n);
    if (p == 1)
      for (std::size_t i = 0; i < n; ++i) y_[i] = rows.y[order_[i]];
    else
      for (std::size_t i = 0; i < n; ++i) std::copy_n(rows.y + order_[i] * p, p, y_.data() + i * p);
    if (rows.weight == nullptr)
      std::fill(weight_.begin(), weight_.end(), 1.0);
    else
      for (std::size_t i = 0; i < n; ++i) weight_[i] = rows.weight[order_[i]];
  }

  void fill_x_from_column() {
    if (!user_->wants_x()) return;
    x_.resize(order_.size());
    std::vector<Row> table_rows;
    for (const std::uint32_t r : order_) table_rows.push_back(rows.table_row(r));
    read_values(*column_, table_rows.data(), table_rows.size(), x_.data());
  }
  void fill_x_from_groups(std::span<const std::size_t> group_end) {
    if (!user_->wants_groups()) return;
    x_.resize(order_.size());
    std::size_t i = 0;
    for (std::size_t g = 0; g < group_end.size(); ++g)
      for (; i < group_end[g]; ++i) x_[i] = static_cast<double>(g);
  }

  std::span<const double> call_split() {
    gather();
    goodness_.assign(order_.size(), std::nan(""));
    user_->split(sequence(), user_->wants_x() ? x_.data() : nullptr, goodness_.data());
    return goodness_;
  }

  // Sorts the groups of the sequence by the first value of evaluate, and updates `group_end` and the sequence.
  void sort_groups(std::vector<std::size_t>& group_end, std::vector<std::uint32_t>& order) {
    std::vector<double> key(group_end.size()), value(user_->n_values);
    const auto begin = [&](std::size_t g) { return g == 0 ? 0 : group_end[g - 1]; };
    for (std::size_t g = 0; g < group_end.size(); ++g) {
      const std::size_t first = begin(g);
      user_->evaluate({y_.data() + first * rows.n_columns, weight_.data() + first, group_end[g] - first}, value.data());
      key[g] = std::isnan(value[0]) ? std::numeric_limits<double>::infinity() : value[0];
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key[a] < key[b]; });
    std::vector<std::uint32_t> sorted;
    std::vector<std::size_t> sorted_end;
    for (const std::uint32_t g : order) {
      sorted.insert(sorted.end(), order_.begin() + static_cast<std::ptrdiff_t>(begin(g)),
                    order_.begin() + static_cast<std::ptrdiff_t>(group_end[g]));
      sorted_end.push_back(sorted.size());
    }
    order_ = std::move(sorted);
    group_end = std::move(sorted_end);
  }

  const UserCriterion* user_;
  const Column* column_ = nullptr;
  std::vector<std::uint32_t> order_;  // the sequence
  std::vector<double> y_, weight_, x_, goodness_;
};

// Returns whether a cut is allowed and better than the best so far. The goodness must be positive and finite.
inline bool improves(const Candidate& best, double goodness, Row n_left, std::int64_t w_left, const Totals& total,
                     const Limits& limits) {
  if (!(goodness > 0 && goodness > best.score && std::isfinite(goodness))) return false;
  const std::int64_t left[2] = {w_left, 0};  // there are no bounds, and the second element is not read
  return admits(limits, total, left, n_left);
}

template <class Word>
Candidate scan_numbers(UserSplits& criterion, const typename Word::Type* words, const Totals& total,
                       const Limits& limits, ScanBuffers&) {
  const std::size_t n = total.n, n_present = count_present<Word>(words, n), n_missing = n - n_present;
  Candidate best;
  best.has_missing = n_missing > 0;
  best.constant = Word::code(words[0]) == Word::code(words[n - 1]);
  if (best.constant) return best;
  for (const bool missing_left : {false, true}) {
    if (missing_left && (n_missing == 0 || Word::code(words[0]) == Word::code(words[n_present - 1]))) break;
    const std::size_t shift = missing_left ? n_missing : 0;  // row i of the sequence is words[i - shift]
    criterion.clear();
    std::int64_t w_left = 0;
    for (std::size_t i = 0; i < shift; ++i) {
      criterion.append(Word::row(words[n_present + i]));
      criterion.add(Word::row(words[n_present + i]), &w_left);
    }
    for (std::size_t i = 0; i + shift < n; ++i) criterion.append(Word::row(words[i]));
    const std::span<const double> goodness = criterion.goodness_of_cuts();
    for (std::size_t i = 0; i + shift + 1 < n; ++i) {
      criterion.add(Word::row(words[i]), &w_left);
      if (Word::code(words[i]) == Word::code(words[i + 1])) continue;
      const auto n_left = static_cast<Row>(i + shift + 1);
      if (!improves(best, goodness[i + shift], n_left, w_left, total, limits)) continue;
      best.score = goodness[i + shift];
      best.n_left = n_left;
      best.missing_left = missing_left;
      best.missing_alone = i + 1 == n_present;
      best.at = static_cast<std::uint32_t>(i);
    }
  }
  if (best.found() && !best.missing_alone) {
    best.below = Word::row(words[best.at]);
    best.above = Word::row(words[best.at + 1]);
    best.code_below = Word::code(words[best.at]);
  }
  return best;
}

// Missing rows form a group, the last one.
template <class Word>
Candidate scan_categories(UserSplits& criterion, const typename Word::Type* words, const Totals& total,
                          const Limits& limits) {
  const std::size_t n = total.n;
  Candidate best;
  std::vector<std::size_t> end;
  criterion.clear();
  for (std::size_t i = 0; i < n; ++i) {
    criterion.append(Word::row(words[i]));
    if (i + 1 == n || Word::code(words[i]) != Word::code(words[i + 1])) end.push_back(i + 1);
  }
  best.has_missing = Word::code(words[n - 1]) == Word::missing;
  best.constant = end.size() == 1;
  if (best.constant) return best;
  std::vector<std::uint32_t> order;
  const std::span<const double> goodness = criterion.order_groups(end, order);
  std::size_t best_cut = 0;
  Row n_left = 0;
  std::int64_t w_left = 0;
  for (std::size_t cut = 0; cut + 1 < order.size(); ++cut) {
    const std::size_t first = order[cut] == 0 ? 0 : end[order[cut] - 1];
    for (std::size_t i = first; i < end[order[cut]]; ++i) criterion.add(Word::row(words[i]), &w_left);
    n_left += static_cast<Row>(end[order[cut]] - first);
    if (!improves(best, goodness[cut], n_left, w_left, total, limits)) continue;
    best.score = goodness[cut];
    best.n_left = n_left;
    best_cut = cut;
  }
  if (!best.found()) return best;
  for (std::size_t cut = 0; cut <= best_cut; ++cut) {
    const std::uint32_t code = Word::code(words[end[order[cut]] - 1]);
    if (code == Word::missing)
      best.missing_left = true;
    else
      best.left_codes.push_back(code);
  }
  // if missing rows are alone on one side, that side is the right one
  best.missing_alone = best.has_missing && (best.missing_left ? best.left_codes.empty() : best_cut + 2 == order.size());
  if (best.missing_alone && best.missing_left) {
    best.missing_left = false;
    best.n_left = static_cast<Row>(n) - best.n_left;
    for (std::size_t cut = 1; cut < order.size(); ++cut)
      best.left_codes.push_back(Word::code(words[end[order[cut]] - 1]));
  }
  return best;
}

// A random cut is evaluated as the only cut of two groups.
inline double score_sides(UserSplits& criterion, std::span<const Row> rows, RandomBuffers& b, bool missing_left,
                          const Totals& total, const Limits& limits, Row& n_left) {
  const auto goes_left = [&](std::size_t i) {
    return b.side[i] == Side::left || (missing_left && b.side[i] == Side::missing);
  };
  criterion.clear();
  std::int64_t w_left = 0;
  n_left = 0;
  for (const bool left : {true, false})
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (goes_left(i) != left) continue;
      criterion.append(rows[i]);
      if (!left) continue;
      criterion.add(rows[i], &w_left);
      ++n_left;
    }
  if (n_left == 0 || n_left == rows.size()) return no_score;
  const std::size_t ends[] = {n_left, rows.size()};
  const double goodness = criterion.goodness_of_group_cuts(ends)[n_left - 1];
  return improves({}, goodness, n_left, w_left, total, limits) ? goodness : no_score;
}

}  // namespace spinney
