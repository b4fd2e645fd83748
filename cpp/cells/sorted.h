// Cuts between the distinct values of a number column, from its sorted words. A cell is a run of equal codes. Rows with
// missing values are tried on the right, on the left, and alone against all others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cells/candidate.h"
#include "cells/kernels.h"
#include "cells/many_classes.h"
#include "cells/words.h"
#include "criterion/scalar.h"
#include "criterion/wide.h"

namespace spinney {

// Scratch of one worker.
struct ScanBuffers {
  static constexpr std::size_t chunk = 512;
  alignas(64) std::array<double, chunk> s_left{}, w_left{}, s_right{}, w_right{}, score{};
  std::array<std::uint32_t, chunk> at{};
  std::array<std::int64_t, chunk> s{}, w{};
  struct First {
    std::uint32_t place, at;
  };
  std::array<First, chunk> first{};  // first cut of each column, where several share the buffers
  static constexpr std::size_t most_places = 0xffff;
  std::vector<double> one_by_places;  // for nodes of n_of_places rows
  std::size_t n_of_places = 0;
  std::vector<std::int64_t> left, missing;
  std::vector<Row> chosen;
  ManyClasses many_classes;

  // The columns of a node follow each other.
  void prepare_places(std::size_t n_rows) {
    if (n_of_places == n_rows) return;
    one_by_places.resize(std::max(one_by_places.size(), n_rows + 2 * std::size_t{8}));
    kernels().about_one_by_places(n_rows, one_by_places.data());
    n_of_places = n_rows;
  }
};

inline Kernels::Score score_kernel(Rule rule) {
  const Kernels& k = kernels();
  switch (rule) {
    case Rule::entropy:
    case Rule::gain_ratio:
      return k.entropy;
    case Rule::misclassification:
      return k.misclassification;
    case Rule::poisson:
      return k.poisson;
    case Rule::rate:
      return k.rate;
    default:
      return k.squared_error;
  }
}

// Scores the first n cuts of the buffers and retains the best; ties go to the lower cut.
inline void keep_best(ScanBuffers& b, std::size_t n, Kernels::Score score, const Limits& limits, bool missing_left,
                      Candidate& best) {
  if (n == 0) return;
  score(b.s_left.data(), b.w_left.data(), b.s_right.data(), b.w_right.data(), n, b.score.data());
  if (limits.min_weight > 0 || limits.bounded)
    for (std::size_t i = 0; i < n; ++i)
      if (b.w_left[i] < limits.min_weight || b.w_right[i] < limits.min_weight ||
          (limits.bounded && !limits.admit_means(b.s_left[i] / b.w_left[i], b.s_right[i] / b.w_right[i])))
        b.score[i] = no_score;
  const std::size_t i = kernels().first_largest(b.score.data(), n);
  if (limits.watch_ties) {
    note_tie(best, b.score[i]);
    const auto as_good = [&](double score) { return is_near(score, b.score[i]); };
    if (!(b.score[i] < best.score) && std::count_if(b.score.begin(), b.score.begin() + n, as_good) > 1)
      best.tied = true;
  }
  if (b.score[i] > best.score || (b.score[i] == best.score && best.found() && b.at[i] < best.at)) {
    best.score = b.score[i];
    best.at = b.at[i];
    best.w_left = b.w_left[i];
    best.missing_left = missing_left;
  }
}

// Returns whether the criterion is the squared error, or equivalent, and every cut with enough rows is allowed.
inline bool is_square(Rule rule, const Limits& limits) {
  const bool limited = limits.min_weight > 0 || limits.bounded || limits.watch_ties;
  return !limited && score_kernel(rule) == kernels().squared_error;
}

// Emits the sums s and w at the boundaries after words begin … end - 1, from index n of the buffers on, and on request
// the index of each cut. Returns the index after the last, at most n + end - begin.
template <class Word, bool stores_cut, class Rows>
[[gnu::always_inline]] inline std::size_t emit_sums(const Rows& rows, const typename Word::Type* words,
                                                    std::size_t begin, std::size_t end, std::uint32_t first_at,
                                                    std::int64_t& s, std::int64_t& w, ScanBuffers& b, std::size_t n) {
  typename Word::Type next = words[begin];  // a local copy, because it would be reloaded after the stores
  for (std::size_t i = begin; i < end; ++i) {
    const typename Word::Type word = next;
    next = words[i + 1];
    const std::uint32_t row = Word::row(word);
    b.s[n] = s += rows.value(row);
    b.w[n] = w += rows.weight(row);
    if constexpr (stores_cut) b.at[n] = first_at + static_cast<std::uint32_t>(i);
    n += Word::differ(word, next);
  }
  return n;
}

// The sums to the left of the swept words.
struct LeftOfWords {
  std::int64_t w = 0, s = 0;
  Row n = 0;
  bool has_missing = false;
  std::uint32_t first_at = 0;  // index of the cut after the first word
};

// Every row has weight 1.
template <class Rows>
concept OfUnitWeight = requires { requires Rows::weight(0) == 1; };

// Returns whether words begin … end have distinct values.
template <class Word>
bool all_differ(const typename Word::Type* words, std::size_t begin, std::size_t end) {
  unsigned same = 0;  // no branch, so that the loop is vectorised
  for (std::size_t i = begin; i < end; ++i) same |= !Word::differ(words[i], words[i + 1]);
  return same == 0;
}

// As below, by squared error. `s` and `w` are to the left of the first cut.
template <class Word, class Rows>
void sweep_squares(const Rows& rows, const typename Word::Type* words, std::size_t begin, std::size_t end,
                   const Totals& total, const LeftOfWords& left, std::int64_t s, std::int64_t w, ScanBuffers& b,
                   Candidate& best) {
  const auto keep = [&](double score, std::uint32_t at, std::int64_t w_left) {
    if (!(score > best.score || (score == best.score && best.found() && at < best.at))) return;
    best.score = score;
    best.at = at;
    best.w_left = static_cast<double>(w_left);
    best.missing_left = left.has_missing;
  };
  while (begin < end) {
    const std::size_t stop = std::min(end, begin + ScanBuffers::chunk);
    double score;
    if constexpr (OfUnitWeight<Rows>)
      if (total.n <= ScanBuffers::most_places && all_differ<Word>(words, begin, stop)) {  // a cut after each row
        const auto n_before = static_cast<std::size_t>(w);
        for (std::size_t i = begin; i < stop; ++i) b.s[i - begin] = s += rows.value(Word::row(words[i]));
        w += static_cast<std::int64_t>(stop - begin);
        b.prepare_places(total.n);
        const std::size_t j = kernels().best_place(b.s.data(), n_before, stop - begin, total.stat[1], total.stat[0],
                                                   b.one_by_places.data() + n_before, &score);
        keep(score, left.first_at + static_cast<std::uint32_t>(begin + j), static_cast<std::int64_t>(n_before + j + 1));
        begin = stop;
        continue;
      }
    const std::size_t n = emit_sums<Word, true>(rows, words, begin, stop, left.first_at, s, w, b, 0);
    begin = stop;
    if (n == 0) continue;
    const std::size_t j =
        kernels().best_square(b.s.data(), b.w.data(), n, total.stat[1], total.stat[0], Rows::sums_are_weights, &score);
    keep(score, b.at[j], b.w[j]);
  }
}

// The best cut by squared error of several columns of a small node, whose cuts share the buffers. Ties go to the first
// column and its lowest cut.
class SmallCuts {
 public:
  static constexpr std::size_t max_rows = 64;

  SmallCuts(const Totals& total, bool sums_are_weights) : total_(total), sums_are_weights_(sums_are_weights) {}

  // `words` are sorted, with several values and none missing.
  template <class Word, class Rows>
  void add(const Rows& rows, const typename Word::Type* words, std::size_t column, Row min_leaf, ScanBuffers& b) {
    const std::size_t last = total_.n - min_leaf;  // cut i leaves i + 1 rows on the left
    if (total_.n < 2 * min_leaf) return;
    if (n_ + max_rows > ScanBuffers::chunk) settle(b);
    std::int64_t s = 0, w = 0;
    const std::size_t before = n_;
    const auto first_at = static_cast<std::uint32_t>(column * max_rows);
    constexpr bool stores_cut = !OfUnitWeight<Rows>;  // unit weights on the left already give the number of rows
    n_ = emit_sums<Word, stores_cut>(rows, words, 0, min_leaf - std::size_t{1}, first_at, s, w, b, n_);
    n_ = emit_sums<Word, stores_cut>(rows, words, min_leaf - std::size_t{1}, last, first_at, s, w, b, before);
    counts_rows_ = !stores_cut;
    if (n_ > before) b.first[n_columns_++] = {static_cast<std::uint32_t>(before), first_at};
  }

  // Call it after the last column.
  void settle(ScanBuffers& b) {
    if (n_ == 0) return;
    double score;
    const std::size_t j =
        kernels().best_square(b.s.data(), b.w.data(), n_, total_.stat[1], total_.stat[0], sums_are_weights_, &score);
    const std::size_t n_columns = n_columns_;
    n_ = n_columns_ = 0;
    if (!(score > score_)) return;
    score_ = score;
    w_left_ = b.w[j];
    at_ = b.at[j];
    if (!counts_rows_) return;
    std::size_t c = n_columns - 1;
    while (b.first[c].place > j) --c;
    at_ = b.first[c].at + static_cast<std::uint32_t>(w_left_ - 1);
  }

  bool empty() const { return n_ == 0; }  // no cut was added since the last settle()
  bool found() const { return score_ > no_score; }
  std::size_t column() const { return at_ / max_rows; }

  // The cut, with the sorted words of its column.
  template <class Word>
  Candidate candidate(const typename Word::Type* words) const {
    Candidate best;
    best.score = score_;
    best.at = at_ % max_rows;
    best.n_left = best.at + 1;
    best.w_left = static_cast<double>(w_left_);
    best.below = Word::row(words[best.at]);
    best.above = Word::row(words[best.at + 1]);
    best.code_below = Word::code(words[best.at]);
    return best;
  }

 private:
  Totals total_;
  bool sums_are_weights_;  // as the kernel defines it
  std::size_t n_ = 0, n_columns_ = 0;
  bool counts_rows_ = false;
  double score_ = no_score;
  std::uint32_t at_ = 0;
  std::int64_t w_left_ = 0;
};

// Scalar statistics: sums at every boundary of the n words are written to buffers and scored by a vector kernel.
template <class Word, class Rows>
void sweep_scalar(const Scalar<Rows>& criterion, const typename Word::Type* words, std::size_t n_words,
                  const Totals& total, const Limits& limits, const LeftOfWords& left, ScanBuffers& b, Candidate& best) {
  const Rows rows = criterion.rows;
  std::int64_t w = left.w, s = left.s;
  const std::int64_t w_total = total.stat[0], s_total = total.stat[1];
  // cut i leaves words 0 … i on the left
  const std::size_t min_leaf = limits.min_leaf, last = n_words - 1;
  const std::size_t first = std::min(last, min_leaf > left.n + std::size_t{1} ? min_leaf - left.n - 1 : 0);
  const std::size_t n_left_max = total.n - left.n;  // rows that may still go left
  const std::size_t end = std::min(last, n_left_max >= min_leaf ? n_left_max - min_leaf : 0);
  for (std::size_t i = 0; i < first; ++i) {
    s += rows.value(Word::row(words[i]));
    w += rows.weight(Word::row(words[i]));
  }
  if (is_square(criterion.rule, limits))
    return sweep_squares<Word>(rows, words, first, end, total, left, s, w, b, best);
  const Kernels::Score score = score_kernel(criterion.rule);
  std::size_t i = first;
  while (i < end) {
    const std::size_t stop = std::min(end, i + ScanBuffers::chunk);
    std::size_t n = 0;
    for (; i < stop; ++i) {
      const std::uint32_t row = Word::row(words[i]);
      s += rows.value(row);
      w += rows.weight(row);
      b.s_left[n] = static_cast<double>(s);
      b.w_left[n] = static_cast<double>(w);
      b.s_right[n] = static_cast<double>(s_total - s);
      b.w_right[n] = static_cast<double>(w_total - w);
      b.at[n] = left.first_at + static_cast<std::uint32_t>(i);
      n += Word::differ(words[i], words[i + 1]);
    }
    keep_best(b, n, score, limits, left.has_missing, best);
  }
}

inline void keep_best(double score, std::size_t at, std::int64_t w_left, bool missing_left, Candidate& best) {
  if (!(score > best.score || (score == best.score && best.found() && at < best.at))) return;
  best.score = score;
  best.at = static_cast<std::uint32_t>(at);
  best.w_left = static_cast<double>(w_left);
  best.missing_left = missing_left;
}

// Any other additive statistic: one score at every boundary.
template <class Word, class Criterion>
void sweep_any(const Criterion& criterion, const typename Word::Type* words, std::size_t n_present, const Totals& total,
               const Limits& limits, Row n_missing_left, ScanBuffers& b, Candidate& best) {
  const std::size_t width = criterion.width();
  b.left.assign(width, 0);
  if (n_missing_left > 0) std::copy_n(b.missing.begin(), width, b.left.begin());
  for (std::size_t i = 0; i + 1 < n_present; ++i) {
    criterion.add(Word::row(words[i]), b.left.data());
    if (!Word::differ(words[i], words[i + 1])) continue;
    if (!admits(limits, total, b.left.data(), n_missing_left + static_cast<Row>(i) + 1)) continue;
    const double score = criterion.score(b.left.data(), total.stat);
    if (limits.watch_ties) note_tie(best, score);
    keep_best(score, i, b.left[0], n_missing_left > 0, best);
  }
}

// Equivalent to sweep_any, for many classes.
template <class Word>
void sweep_many_classes(const Wide<ClassRows>& criterion, const typename Word::Type* words, std::size_t n_present,
                        const Totals& total, const Limits& limits, Row n_missing_left, ScanBuffers& b,
                        Candidate& best) {
  const std::int64_t* missing_left = n_missing_left > 0 ? b.missing.data() : nullptr;
  b.many_classes.start<Word>(criterion, words, n_present, total, limits, missing_left, n_missing_left, b.left);
  for (std::size_t i = 0; i + 1 < n_present; ++i) {
    criterion.add(Word::row(words[i]), b.left.data());
    if (!b.many_classes.may_be_best(i)) continue;
    const double score = criterion.score_of_present(b.left.data(), total.stat, b.many_classes.present());
    keep_best(score, i, b.left[0], n_missing_left > 0, best);
  }
}

template <class Word, class Criterion>
void sweep(const Criterion& criterion, const typename Word::Type* words, std::size_t n_present, const Totals& total,
           const Limits& limits, Row n_missing_left, ScanBuffers& b, Candidate& best) {
  if constexpr (requires { criterion.rows.value(0); }) {
    LeftOfWords left;
    if (n_missing_left > 0) left = {b.missing[0], b.missing[1], n_missing_left, true};
    sweep_scalar<Word>(criterion, words, n_present, total, limits, left, b, best);
  } else {
    if constexpr (std::is_same_v<Criterion, Wide<ClassRows>>)
      if (ManyClasses::pays(criterion, limits))
        return sweep_many_classes<Word>(criterion, words, n_present, total, limits, n_missing_left, b, best);
    sweep_any<Word>(criterion, words, n_present, total, limits, n_missing_left, b, best);
  }
}

// `one_value`: the n_present words that are not missing have no cut.
template <class Word, class Criterion>
Candidate scan_words(const Criterion& criterion, const typename Word::Type* words, std::size_t n_present,
                     bool one_value, const Totals& total, const Limits& limits, ScanBuffers& b) {
  Candidate best;
  const std::size_t n = total.n;
  const Row n_missing = static_cast<Row>(n - n_present);
  best.has_missing = n_missing > 0;
  if (one_value && (n_missing == 0 || n_present == 0)) {
    best.constant = true;
    return best;
  }
  if (n_missing > 0) {
    b.missing.assign(criterion.width(), 0);
    for (std::size_t i = n_present; i < n; ++i) criterion.add(Word::row(words[i]), b.missing.data());
  }
  if (!one_value) {
    sweep<Word>(criterion, words, n_present, total, limits, 0, b, best);
    if (n_missing > 0) sweep<Word>(criterion, words, n_present, total, limits, n_missing, b, best);
  }
  if (best.found()) {
    best.n_left = best.at + 1 + (best.missing_left ? n_missing : 0);
    best.below = Word::row(words[best.at]);
    best.above = Word::row(words[best.at + 1]);
  }
  if (n_missing > 0) {
    b.left.resize(criterion.width());
    for (std::size_t k = 0; k < b.left.size(); ++k) b.left[k] = total.stat[k] - b.missing[k];
    if (admits(limits, total, b.left.data(), static_cast<Row>(n_present))) {
      const double score = criterion.score(b.left.data(), total.stat);
      if (score > best.score) {
        best.score = score;
        best.w_left = static_cast<double>(b.left[0]);
        best.missing_left = false;
        best.missing_alone = true;
        best.n_left = static_cast<Row>(n_present);
      }
    }
  }
  return best;
}

template <class Word, class Criterion>
Candidate scan_numbers(const Criterion& criterion, const typename Word::Type* words, const Totals& total,
                       const Limits& limits, ScanBuffers& b) {
  const std::size_t n_present = count_present<Word>(words, total.n);
  const bool one_value = n_present == 0 || !Word::differ(words[0], words[n_present - 1]);
  Candidate best = scan_words<Word>(criterion, words, n_present, one_value, total, limits, b);
  if (best.found() && !best.missing_alone) best.code_below = Word::code(words[best.at]);
  return best;
}

}  // namespace spinney
