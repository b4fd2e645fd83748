// Cuts under absolute error. A sequence of rows is swept from both ends; words carry positions in the node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cells/candidate.h"
#include "cells/sorted.h"
#include "cells/words.h"
#include "criterion/median.h"

namespace spinney {

// `stat` is {W}. There is one per worker; attach() ranks a node's rows once for all its columns.
class AbsoluteError {
 public:
  explicit AbsoluteError(const Target& target) : target_(&target), medians_(target.input.n_outputs) {}

  static constexpr std::size_t width() { return 1; }
  void add(std::uint32_t row, std::int64_t* stat) const { stat[0] += target_->fixed_weight_of(row); }

  void attach(std::span<const Row> rows) {
    if (rows.data() == rows_.data() && rows.size() == rows_.size()) return;
    rows_ = rows;
    uncut_ = 0;
    for (std::size_t k = 0; k < medians_.size(); ++k) medians_[k].prepare(*target_, rows, k);
    for (std::uint32_t i = 0; i < rows.size(); ++i) move(i);
    uncut_ = deviation();
    std::int64_t total = 0;
    for (const Row r : rows) total += target_->fixed_weight_of(r);
    weight_ = static_cast<double>(total);
  }

  void detach() { rows_ = {}; }  // the attached rows are about to change or disappear

  void clear() {
    for (RunningMedian& m : medians_) m.clear();
  }
  void move(std::uint32_t position) {
    for (RunningMedian& m : medians_) m.add(position);
  }
  double deviation() const {
    double sum = 0;
    for (const RunningMedian& m : medians_) sum += m.deviation();
    return sum;
  }
  double median() const {
    return (medians_[0].median() - target_->offset[0]) * target_->weight_unit / target_->value_unit;
  }
  double score(double deviation_of_sides) const {
    return (uncut_ - deviation_of_sides) / weight_ / static_cast<double>(medians_.size());
  }
  std::uint32_t rank(std::uint32_t position) const { return medians_[0].rank(position); }
  std::int64_t weight(std::uint32_t position) const { return target_->fixed_weight_of(rows_[position]); }

 private:
  const Target* target_;
  std::vector<RunningMedian> medians_;
  std::span<const Row> rows_;
  double uncut_ = 0, weight_ = 0;
};

// The best boundary of a sequence: boundary[i] is true if a cut may follow position order[i].
inline void sweep_medians(AbsoluteError& criterion, const std::vector<std::uint32_t>& order,
                          const std::vector<bool>& boundary, const Totals& total, const Limits& limits,
                          double& best_score, std::size_t& best_at) {
  const std::size_t n = order.size();
  std::vector<double> right(n, 0.0), right_median(n, 0.0);
  criterion.clear();
  for (std::size_t i = n; i-- > 1;) {
    criterion.move(order[i]);
    if (!boundary[i - 1]) continue;
    right[i - 1] = criterion.deviation();
    if (limits.bounded) right_median[i - 1] = criterion.median();
  }
  criterion.clear();
  std::int64_t w = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    criterion.move(order[i]);
    w += criterion.weight(order[i]);
    if (!boundary[i] || i + 1 < limits.min_leaf || n - i - 1 < limits.min_leaf) continue;
    if (static_cast<double>(w) < limits.min_weight || static_cast<double>(total.stat[0] - w) < limits.min_weight)
      continue;
    if (limits.bounded && !limits.admit_means(criterion.median(), right_median[i])) continue;
    const double score = criterion.score(criterion.deviation() + right[i]);
    if (score > best_score) {
      best_score = score;
      best_at = i;
    }
  }
}

// Tries the present cells in the given order, with missing rows on the right, on the left, and alone. `cell_end[c]` is
// where cell c ends in `present`.
inline void sweep_cells(AbsoluteError& criterion, const std::vector<std::uint32_t>& present,
                        const std::vector<std::size_t>& cell_end, const std::vector<std::uint32_t>& missing,
                        const Totals& total, const Limits& limits, Candidate& best, std::size_t& best_cell) {
  best.has_missing = !missing.empty();
  for (const bool missing_left : {false, true}) {
    if (missing_left && missing.empty()) break;
    std::vector<std::uint32_t> order = missing_left ? missing : present;
    const auto& tail = missing_left ? present : missing;
    order.insert(order.end(), tail.begin(), tail.end());
    std::vector<bool> boundary(order.size(), false);
    const std::size_t shift = missing_left ? missing.size() : 0;
    for (const std::size_t end : cell_end)
      if (!missing_left || end != present.size()) boundary[shift + end - 1] = true;
    double score = best.score;
    std::size_t at = 0;
    sweep_medians(criterion, order, boundary, total, limits, score, at);
    if (!(score > best.score)) continue;
    best.score = score;
    best.missing_left = missing_left;
    best.n_left = static_cast<Row>(at + 1);
    const auto cell = std::find(cell_end.begin(), cell_end.end(), at + 1 - shift);
    best_cell = static_cast<std::size_t>(cell - cell_end.begin());
    best.missing_alone = !missing_left && !missing.empty() && at + 1 == present.size();
  }
}

template <class Word>
Candidate scan_numbers(AbsoluteError& criterion, const typename Word::Type* words, const Totals& total,
                       const Limits& limits, ScanBuffers&) {
  const std::size_t n = total.n, n_present = count_present<Word>(words, n);
  Candidate best;
  std::vector<std::uint32_t> present, missing;
  std::vector<std::size_t> cell_end;
  for (std::size_t i = 0; i < n; ++i) (i < n_present ? present : missing).push_back(Word::row(words[i]));
  for (std::size_t i = 1; i <= n_present; ++i)
    if (i == n_present || Word::code(words[i]) != Word::code(words[i - 1])) cell_end.push_back(i);
  if (cell_end.size() + !missing.empty() <= 1) {
    best.constant = true;
    return best;
  }
  std::size_t cell = 0;
  sweep_cells(criterion, present, cell_end, missing, total, limits, best, cell);
  if (best.found() && !best.missing_alone) {
    best.at = static_cast<std::uint32_t>(cell_end[cell] - 1);
    best.below = Word::row(words[best.at]);
    best.above = Word::row(words[best.at + 1]);
    best.code_below = Word::code(words[best.at]);
  }
  return best;
}

// Categories ordered by their (lower) medians: a heuristic that is not always optimal.
template <class Word>
Candidate scan_categories(AbsoluteError& criterion, const typename Word::Type* words, const Totals& total,
                          const Limits& limits) {
  const std::size_t n = total.n, n_present = count_present<Word>(words, n);
  Candidate best;
  struct Cell {
    std::uint32_t code, median;
    std::size_t begin, end;
  };
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < n_present; ++i) {
    if (i == 0 || Word::code(words[i]) != Word::code(words[i - 1])) cells.push_back({Word::code(words[i]), 0, i, i});
    cells.back().end = i + 1;
  }
  if (cells.size() + (n_present < n) <= 1) {
    best.constant = true;
    return best;
  }
  for (Cell& c : cells) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> ranks;
    std::int64_t total_weight = 0, below = 0;
    for (std::size_t i = c.begin; i < c.end; ++i) {
      const std::uint32_t position = Word::row(words[i]);
      ranks.emplace_back(criterion.rank(position), criterion.weight(position));
      total_weight += ranks.back().second;
    }
    std::sort(ranks.begin(), ranks.end());
    for (const auto& [rank, weight] : ranks) {
      below += weight;
      c.median = rank;
      if (below >= total_weight - below) break;
    }
  }
  best.n_ordered = static_cast<std::uint32_t>(cells.size());
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.median < b.median; });
  std::vector<std::uint32_t> present, missing;
  std::vector<std::size_t> cell_end;
  for (const Cell& c : cells) {
    for (std::size_t i = c.begin; i < c.end; ++i) present.push_back(Word::row(words[i]));
    cell_end.push_back(present.size());
  }
  for (std::size_t i = n_present; i < n; ++i) missing.push_back(Word::row(words[i]));
  std::size_t cell = 0;
  sweep_cells(criterion, present, cell_end, missing, total, limits, best, cell);
  if (best.found())
    for (std::size_t c = 0; c <= cell; ++c) best.left_codes.push_back(cells[c].code);
  return best;
}

}  // namespace spinney
