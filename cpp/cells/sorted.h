// Cuts between the distinct values of a number column, from its sorted words. A cell is a run of equal codes.
// Rows that lack a value are tried on the right, then on the left, then alone against all others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cells/candidate.h"
#include "cells/kernels.h"
#include "cells/words.h"
#include "criterion/scalar.h"
#include "criterion/wide.h"

namespace spinney {

// Scratch of one worker.
struct ScanBuffers {
  static constexpr std::size_t chunk = 512;
  alignas(64) std::array<double, chunk> s_left{}, w_left{}, s_right{}, w_right{}, score{};
  std::array<std::uint32_t, chunk> at{};
  std::vector<std::int64_t> left, missing;
  std::vector<Row> chosen;
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

// Scores the first n cuts of the buffers and keeps the best; ties go to the lower cut.
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

// Scalar statistics: sums are emitted at every boundary into buffers, then scored by a vector kernel.
template <class Word, class Rows>
void sweep_scalar(const Scalar<Rows>& criterion, const typename Word::Type* words, std::size_t n_present,
                  const Totals& total, const Limits& limits, Row n_missing_left, ScanBuffers& b, Candidate& best) {
  const Rows rows = criterion.rows;
  std::int64_t w = n_missing_left > 0 ? b.missing[0] : 0, s = n_missing_left > 0 ? b.missing[1] : 0;
  const std::int64_t w_total = total.stat[0], s_total = total.stat[1];
  // cut i leaves words 0 … i on the left
  const std::size_t min_leaf = limits.min_leaf, last = n_present - 1;
  const std::size_t first = std::min(last, min_leaf > n_missing_left + 1 ? min_leaf - n_missing_left - 1 : 0);
  const std::size_t room = total.n - n_missing_left;  // rows that may still go left
  const std::size_t end = std::min(last, room >= min_leaf ? room - min_leaf : 0);
  for (std::size_t i = 0; i < first; ++i) {
    s += rows.value(Word::row(words[i]));
    w += rows.weight(Word::row(words[i]));
  }
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
      b.at[n] = static_cast<std::uint32_t>(i);
      n += Word::code(words[i]) != Word::code(words[i + 1]);
    }
    keep_best(b, n, score, limits, n_missing_left > 0, best);
  }
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
    if (Word::code(words[i]) == Word::code(words[i + 1])) continue;
    if (!admits(limits, total, b.left.data(), n_missing_left + static_cast<Row>(i) + 1)) continue;
    const double score = criterion.score(b.left.data(), total.stat);
    if (limits.watch_ties) note_tie(best, score);
    if (score > best.score || (score == best.score && best.found() && i < best.at)) {
      best.score = score;
      best.at = static_cast<std::uint32_t>(i);
      best.w_left = static_cast<double>(b.left[0]);
      best.missing_left = n_missing_left > 0;
    }
  }
}

template <class Word, class Criterion>
void sweep(const Criterion& criterion, const typename Word::Type* words, std::size_t n_present, const Totals& total,
           const Limits& limits, Row n_missing_left, ScanBuffers& b, Candidate& best) {
  if constexpr (requires { criterion.rows.value(0); })
    sweep_scalar<Word>(criterion, words, n_present, total, limits, n_missing_left, b, best);
  else
    sweep_any<Word>(criterion, words, n_present, total, limits, n_missing_left, b, best);
}

template <class Word, class Criterion>
Candidate scan_numbers(const Criterion& criterion, const typename Word::Type* words, const Totals& total,
                       const Limits& limits, ScanBuffers& b) {
  Candidate best;
  const std::size_t n = total.n, n_present = count_present<Word>(words, n);
  const Row n_missing = static_cast<Row>(n - n_present);
  best.has_missing = n_missing > 0;
  const bool one_value = n_present == 0 || Word::code(words[0]) == Word::code(words[n_present - 1]);
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
    best.code_below = Word::code(words[best.at]);
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

}  // namespace spinney
