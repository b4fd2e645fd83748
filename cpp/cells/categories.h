// Cuts of a category column: x in S goes left. A cell is a category that occurs in the node.
//
// With one sum per statistic (two classes, one regression or Poisson target) the best set is a prefix of the categories
// ordered by their mean (Breiman et al. 1984, theorem 4.5), so one sweep finds it. With several sums, up to
// `max_enumerated` categories are tried in all bipartitions; more are swept in the order of each sum's mean and of the
// first principal component of the categories' mean vectors (Coppersmith, Hong and Hosking 1999), and the best set is
// taken.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "cells/candidate.h"
#include "cells/sorted.h"
#include "cells/words.h"
#include "data/read.h"

namespace spinney {

struct CategoryCells {
  std::size_t width = 0;
  std::vector<std::uint32_t> code;
  std::vector<Row> n;
  std::vector<std::int64_t> stats;  // width per cell
  std::vector<std::int64_t> missing;
  Row n_missing = 0;

  std::size_t size() const { return code.size(); }
  const std::int64_t* stat(std::size_t cell) const { return stats.data() + cell * width; }
};

template <class Word, class Criterion>
CategoryCells collect_cells(const Criterion& criterion, const typename Word::Type* words, std::size_t n) {
  CategoryCells cells;
  cells.width = criterion.width();
  cells.missing.assign(cells.width, 0);
  const std::size_t n_present = count_present<Word>(words, n);
  for (std::size_t i = 0; i < n_present; ++i) {
    if (i == 0 || Word::code(words[i]) != Word::code(words[i - 1])) {
      cells.code.push_back(Word::code(words[i]));
      cells.n.push_back(0);
      cells.stats.resize(cells.stats.size() + cells.width, 0);
    }
    ++cells.n.back();
    criterion.add(Word::row(words[i]), cells.stats.data() + cells.stats.size() - cells.width);
  }
  for (std::size_t i = n_present; i < n; ++i) criterion.add(Word::row(words[i]), cells.missing.data());
  cells.n_missing = static_cast<Row>(n - n_present);
  return cells;
}

// The same for the unsorted rows of a column. Pays if there are more rows than categories.
template <class Criterion>
CategoryCells collect_cells(const Criterion& criterion, const Column& column, std::span<const Row> rows) {
  CategoryCells cells;
  const std::size_t width = cells.width = criterion.width(), n_codes = column.n_categories + std::size_t{1};
  cells.stats.assign(n_codes * width, 0);
  cells.missing.assign(width, 0);
  std::vector<Row> n(n_codes, 0);
  read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
    const auto code = static_cast<std::size_t>(v == v ? v : 0);
    criterion.add(rows[i], v == v ? cells.stats.data() + code * width : cells.missing.data());
    ++(v == v ? n[code] : cells.n_missing);
  });
  for (std::size_t code = 0; code < n_codes; ++code) {
    if (n[code] == 0) continue;
    std::copy_n(cells.stats.data() + code * width, width, cells.stats.data() + cells.size() * width);
    cells.code.push_back(static_cast<std::uint32_t>(code));
    cells.n.push_back(n[code]);
  }
  return cells;
}

// Cells ordered by the mean of sum k (1-based), ties by category; exact.
inline std::vector<std::uint32_t> order_by_mean(const CategoryCells& cells, std::size_t k, bool from_highest = false) {
  __extension__ using Wide = __int128;
  std::vector<std::uint32_t> order(cells.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Wide left = static_cast<Wide>(cells.stat(a)[k]) * cells.stat(b)[0];
    const Wide right = static_cast<Wide>(cells.stat(b)[k]) * cells.stat(a)[0];
    return from_highest ? left > right : left < right;
  });
  return order;
}

// Cells ordered by the first principal component of their mean vectors, by power iteration.
inline std::vector<std::uint32_t> order_by_component(const CategoryCells& cells, const Totals& total) {
  const std::size_t n_sums = cells.width - 1, n = cells.size();
  std::vector<double> deviation(n * n_sums), axis(n_sums), next(n_sums), score(n);
  for (std::size_t c = 0; c < n; ++c)
    for (std::size_t k = 0; k < n_sums; ++k)
      deviation[c * n_sums + k] = static_cast<double>(cells.stat(c)[1 + k]) / static_cast<double>(cells.stat(c)[0]) -
                                  static_cast<double>(total.stat[1 + k]) / static_cast<double>(total.stat[0]);
  const auto project = [&] {
    for (std::size_t c = 0; c < n; ++c)
      score[c] = std::inner_product(axis.begin(), axis.end(),
                                    deviation.begin() + static_cast<std::ptrdiff_t>(c * n_sums), 0.0);
  };
  for (std::size_t k = 0; k < n_sums; ++k)
    axis[k] = 1.0 + 0.5 * static_cast<double>(k % 7);  // unlikely to be orthogonal to the component
  for (int iteration = 0; iteration < 30; ++iteration) {
    project();
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t c = 0; c < n; ++c)
      for (std::size_t k = 0; k < n_sums; ++k)
        next[k] += static_cast<double>(cells.stat(c)[0]) * score[c] * deviation[c * n_sums + k];
    const double norm = std::sqrt(std::inner_product(next.begin(), next.end(), next.begin(), 0.0));
    if (!(norm > 0) || !std::isfinite(norm)) break;
    for (std::size_t k = 0; k < n_sums; ++k) axis[k] = next[k] / norm;
  }
  project();
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return score[a] < score[b]; });
  return order;
}

inline constexpr std::size_t max_enumerable_categories = 22;

// The best cut over all searches of one column.
template <class Criterion>
class CategorySearch {
 public:
  static constexpr std::size_t max_enumerated = 10, max_enumerable = max_enumerable_categories, max_mean_orders = 32;

  CategorySearch(const Criterion& criterion, const CategoryCells& cells, const Totals& total, const Limits& limits)
      : criterion_(criterion), cells_(cells), total_(total), limits_(limits) {}

  Candidate run() {
    best_.has_missing = cells_.n_missing > 0;
    best_.n_ordered = static_cast<std::uint32_t>(cells_.size());
    if (cells_.size() + (cells_.n_missing > 0) <= 1) {
      best_.constant = true;
      return best_;
    }
    if (cells_.size() > 1) {
      if (cells_.width == 2)
        sweep(order_by_mean(cells_, 1, limits_.from_highest));
      else if (cells_.size() <= (limits_.enumerate_all ? max_enumerable : max_enumerated))
        enumerate();
      else
        sweep_in_many_orders();
    }
    if (cells_.n_missing > 0) try_missing_alone();
    return best_;
  }

 private:
  void start(bool missing_left) {
    left_.assign(cells_.width, 0);
    n_left_ = 0;
    if (missing_left) {
      left_ = cells_.missing;
      n_left_ = cells_.n_missing;
    }
  }
  void move(std::size_t cell, std::int64_t sign) {
    for (std::size_t k = 0; k < cells_.width; ++k) left_[k] += sign * cells_.stat(cell)[k];
    n_left_ += static_cast<Row>(sign) * cells_.n[cell];
  }
  bool improves() {
    if (!admits(limits_, total_, left_.data(), n_left_)) return false;
    const double score = criterion_.score(left_.data(), total_.stat);
    if (limits_.watch_ties) note_tie(best_, score);
    if (!(score > best_.score)) return false;
    best_.score = score;
    best_.n_left = n_left_;
    best_.w_left = static_cast<double>(left_[0]);
    best_.missing_alone = false;
    return true;
  }

  void sweep(const std::vector<std::uint32_t>& order) {
    for (const bool missing_left : {false, true}) {
      if (missing_left && cells_.n_missing == 0) break;
      start(missing_left);
      std::size_t n_best = 0;
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        move(order[i], 1);
        if (improves()) n_best = i + 1;
      }
      if (n_best == 0) continue;
      best_.missing_left = missing_left;
      best_.left_codes.clear();
      for (std::size_t j = 0; j < n_best; ++j) best_.left_codes.push_back(cells_.code[order[j]]);
    }
  }

  // All bipartitions with the first cell on the left, in Gray-code order from the last cell: one cell moves at a time.
  void enumerate() {
    const std::uint32_t n_sets = 1u << (cells_.size() - 1);
    for (const bool missing_left : {false, true}) {
      if (missing_left && cells_.n_missing == 0) break;
      start(missing_left);
      for (std::size_t c = 0; c < cells_.size(); ++c) move(c, 1);
      for (std::uint32_t step = 1; step < n_sets; ++step) {
        const std::uint32_t set = step ^ (step >> 1), moved = step & (~step + 1);
        const std::size_t last = cells_.size() - 1;
        move(last - static_cast<std::size_t>(std::countr_zero(moved)), set & moved ? -1 : 1);
        if (!improves()) continue;
        best_.missing_left = missing_left;
        best_.left_codes.clear();
        for (std::size_t c = 0; c < cells_.size(); ++c)
          if (c == 0 || !(set >> (last - c) & 1)) best_.left_codes.push_back(cells_.code[c]);
      }
    }
  }

  void sweep_in_many_orders() {
    constexpr std::size_t work = 20'000'000;  // numbers processed in all orders together
    const std::size_t affordable = std::max<std::size_t>(1, work / (cells_.size() * cells_.width));
    const std::size_t n_orders = std::min({cells_.width - 1, max_mean_orders, affordable});
    sweep(order_by_component(cells_, total_));
    for (std::size_t k = 1; k <= n_orders; ++k) sweep(order_by_mean(cells_, k));
  }

  void try_missing_alone() {
    start(false);
    for (std::size_t c = 0; c < cells_.size(); ++c) move(c, 1);
    if (!improves()) return;
    best_.missing_left = false;
    best_.missing_alone = true;
    best_.left_codes = cells_.code;
  }

  const Criterion& criterion_;
  const CategoryCells& cells_;
  const Totals& total_;
  const Limits& limits_;
  Candidate best_;
  std::vector<std::int64_t> left_;
  Row n_left_ = 0;
};

template <class Word, class Criterion>
Candidate scan_categories(const Criterion& criterion, const typename Word::Type* words, const Totals& total,
                          const Limits& limits) {
  const CategoryCells cells = collect_cells<Word>(criterion, words, total.n);
  return CategorySearch<Criterion>(criterion, cells, total, limits).run();
}

template <class Criterion>
Candidate scan_categories(const Criterion& criterion, const Column& column, std::span<const Row> rows,
                          const Totals& total, const Limits& limits) {
  const CategoryCells cells = collect_cells(criterion, column, rows);
  return CategorySearch<Criterion>(criterion, cells, total, limits).run();
}

}  // namespace spinney
