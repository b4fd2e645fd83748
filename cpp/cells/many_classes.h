// Cuts between the values of a number column where the target has many classes.
//
// A row moves one class per output to the left, so a running score costs the same for any number of classes. It is
// rounded differently from the criterion's score: the cuts that may be the best are scored exactly, by the classes that
// occur in the node. The others add 0 to a score.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/math.h"
#include "cells/candidate.h"
#include "criterion/wide.h"

namespace spinney {

class ManyClasses {
 public:
  // Returns whether a running score pays.
  static bool pays(const Wide<ClassRows>& criterion, const Limits& limits) {
    constexpr std::size_t many = 64;
    return criterion.width() > many && !limits.watch_ties &&
           (criterion.rule == Rule::gini || is_entropy(criterion.rule));
  }

  // Scores the cuts after each of the words but the last, to be read by `may_be_best`. The statistic of the left side
  // starts as `missing_left`; null: it is empty.
  template <class Word>
  void start(const Wide<ClassRows>& criterion, const typename Word::Type* words, std::size_t n_present,
             const Totals& total, const Limits& limits, const std::int64_t* missing_left, Row n_missing_left,
             std::vector<std::int64_t>& left) {
    const std::size_t n = total.n, n_outputs = criterion.rows.n_outputs;
    left.resize(criterion.width());
    list_classes<Word>(criterion, words, n);
    clear(missing_left, left);
    __extension__ using Squares = __int128;
    Squares squares_left = 0, squares_right = 0;
    double entropy = 0;
    const auto square = [](std::int64_t x) { return static_cast<Squares>(x) * x; };
    const auto log_term = [](std::int64_t x) { return x_log_x(static_cast<double>(x)); };
    const bool by_entropy = is_entropy(criterion.rule);
    for (const std::uint32_t k : present_) {
      squares_left += square(left[k]);
      squares_right += square(total.stat[k] - left[k]);
    }
    const auto outputs = static_cast<double>(n_outputs);
    scores_.assign(n_present - 1, no_score);
    for (std::size_t i = 0; i + 1 < n_present; ++i) {
      const std::uint32_t row = Word::row(words[i]);
      const std::int64_t w = criterion.rows.weight(row);
      for (std::size_t o = 0; o < n_outputs; ++o) {
        const std::size_t k = criterion.rows.place(row, o);
        const std::int64_t on_left = left[k], on_right = total.stat[k] - on_left;
        if (by_entropy) {
          entropy += log_term(on_left + w) - log_term(on_left) + log_term(on_right - w) - log_term(on_right);
        } else {
          squares_left += square(on_left + w) - square(on_left);
          squares_right += square(on_right - w) - square(on_right);
        }
        left[k] += w;
      }
      left[0] += w;
      if (!Word::differ(words[i], words[i + 1])) continue;
      if (!admits(limits, total, left.data(), n_missing_left + static_cast<Row>(i) + 1)) continue;
      const std::int64_t right = total.stat[0] - left[0];
      scores_[i] = by_entropy ? entropy - outputs * (log_term(left[0]) + log_term(right))
                              : static_cast<double>(squares_left) / static_cast<double>(left[0]) +
                                    static_cast<double>(squares_right) / static_cast<double>(right);
    }
    // more than rounding can be, of sums over rows and over classes
    const double rounding = (1e-9 + 1e-13 * static_cast<double>(n + criterion.width())) * outputs;
    bar_ = *std::max_element(scores_.begin(), scores_.end()) - rounding * static_cast<double>(total.stat[0]);
    clear(missing_left, left);
  }

  bool may_be_best(std::size_t cut) const { return scores_[cut] > no_score && scores_[cut] >= bar_; }
  std::span<const std::uint32_t> present() const { return present_; }

 private:
  static bool is_entropy(Rule rule) { return rule == Rule::entropy || rule == Rule::gain_ratio; }

  // Lists where a statistic has the classes of the node, ascending; where there are many rows, all classes.
  template <class Word>
  void list_classes(const Wide<ClassRows>& criterion, const typename Word::Type* words, std::size_t n) {
    constexpr std::size_t rows_per_class = 4;  // sorting costs more than reading
    const std::size_t n_outputs = criterion.rows.n_outputs;
    present_.clear();
    if (rows_per_class * n * n_outputs >= criterion.width()) {
      for (std::uint32_t k = 1; k < criterion.width(); ++k) present_.push_back(k);
      return;
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t o = 0; o < n_outputs; ++o)
        present_.push_back(static_cast<std::uint32_t>(criterion.rows.place(Word::row(words[i]), o)));
    std::sort(present_.begin(), present_.end());
    present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
  }

  void clear(const std::int64_t* missing_left, std::vector<std::int64_t>& left) const {
    left[0] = missing_left == nullptr ? 0 : missing_left[0];
    for (const std::uint32_t k : present_) left[k] = missing_left == nullptr ? 0 : missing_left[k];
  }

  std::vector<std::uint32_t> present_;
  std::vector<double> scores_;  // by cut
  double bar_ = no_score;
};

}  // namespace spinney
