// Extra-trees: random cuts. Missing rows take the side with the larger gain.
//   number    one threshold, uniform in the range of the node's values
//   category  random, non-trivial sets of the categories present. k categories have k - 1 degrees of freedom: for small
//             k the best of that many sets is taken; for large k the better of one random set and one cut in code
//             order, which is the order of the values and often informative
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "cells/candidate.h"
#include "cells/median.h"
#include "data/read.h"

namespace spinney {

enum class Side : std::uint8_t { right, left, missing };

struct RandomBuffers {
  std::vector<double> value;
  std::vector<Side> side;
  std::vector<std::int64_t> left;
  std::vector<std::uint32_t> codes;      // codes present, for a category column
  std::vector<std::uint8_t> is_present;  // by code
  std::vector<std::int64_t> sums;        // of the rows of each category, those of missing values last
  std::vector<Row> counts;               // the same
  double low = 0, high = 0;
};

// Statistics that are sums over rows: those of a set of categories are sums over the categories.
template <class Criterion>
concept AddsUp = requires(const Criterion& criterion, const std::int64_t* stat) { criterion.score(stat, stat); };

// Returns whether there are so few categories that one cell for each costs little compared with n rows.
inline bool has_few_codes(const Column& column, std::size_t n) {
  constexpr std::size_t few = 16;
  return column.n_categories > 0 && column.n_categories < std::max(few, n);
}

// Sums the rows of each category, with missing values after the others: code_of(i) is the category (missing: any larger
// code), add(i, stat) adds row i.
template <class CodeOf, class Add>
void add_up_categories(const Column& column, std::size_t n, std::size_t width, CodeOf code_of, Add add,
                       RandomBuffers& b) {
  const std::size_t n_codes = column.n_categories + std::size_t{1};
  b.sums.assign((n_codes + 1) * width, 0);
  b.counts.assign(n_codes + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t place = std::min<std::size_t>(code_of(i), n_codes);
    add(i, b.sums.data() + place * width);
    ++b.counts[place];
  }
  b.codes.clear();
  for (std::uint32_t code = 0; code <= n_codes; ++code) {
    if (b.counts[code] == 0 && code < n_codes) continue;
    const std::size_t place = b.codes.size();
    std::copy_n(b.sums.data() + code * width, width, b.sums.data() + place * width);
    b.counts[place] = b.counts[code];
    if (code < n_codes) b.codes.push_back(code);
  }
}

// `left_codes`: ascending, like the codes present.
template <AddsUp Criterion>
double score_set(const Criterion& criterion, std::span<const std::uint32_t> left_codes, RandomBuffers& b,
                 bool missing_left, const Totals& total, const Limits& limits, Row& n_left) {
  const std::size_t width = criterion.width(), k = b.codes.size();
  b.left.assign(width, 0);
  n_left = 0;
  std::size_t n_found = 0;
  for (std::size_t place = 0; place <= k; ++place) {
    if (place == k ? !missing_left : n_found == left_codes.size() || left_codes[n_found] != b.codes[place]) continue;
    if (place < k) ++n_found;
    for (std::size_t j = 0; j < width; ++j) b.left[j] += b.sums[place * width + j];
    n_left += b.counts[place];
  }
  if (n_left == 0 || n_left == total.n || !admits(limits, total, b.left.data(), n_left)) return no_score;
  return criterion.score(b.left.data(), total.stat);
}

template <class Criterion>
double score_sides(const Criterion& criterion, std::span<const Row> rows, RandomBuffers& b, bool missing_left,
                   const Totals& total, const Limits& limits, Row& n_left) {
  b.left.assign(criterion.width(), 0);
  n_left = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (b.side[i] == Side::left || (missing_left && b.side[i] == Side::missing)) {
      criterion.add(rows[i], b.left.data());
      ++n_left;
    }
  if (n_left == 0 || n_left == rows.size() || !admits(limits, total, b.left.data(), n_left)) return no_score;
  return criterion.score(b.left.data(), total.stat);
}

inline double score_sides(AbsoluteError& criterion, std::span<const Row> rows, RandomBuffers& b, bool missing_left,
                          const Totals& total, const Limits& limits, Row& n_left) {
  std::vector<std::uint32_t> order;
  for (const bool left : {true, false}) {
    for (std::uint32_t i = 0; i < rows.size(); ++i)
      if ((b.side[i] == Side::left || (missing_left && b.side[i] == Side::missing)) == left) order.push_back(i);
    if (left) n_left = static_cast<Row>(order.size());
  }
  if (n_left == 0 || n_left == rows.size()) return no_score;
  std::vector<bool> boundary(order.size(), false);
  boundary[n_left - 1] = true;
  double score = no_score;
  std::size_t at = 0;
  sweep_medians(criterion, order, boundary, total, limits, score, at);
  return score;
}

// For a finite range.
inline double draw_between(double low, double high, RandomStream& random) {
  const double cut = low + random.unit() * (high - low);
  return cut < high ? cut : low;
}

inline double draw_threshold(const std::vector<double>& values, double low, double high, RandomStream& random) {
  if (std::isfinite(high - low)) return draw_between(low, high, random);
  std::vector<double> lower;  // an infinite range: cut at one of the values
  for (const double v : values)
    if (v < high) lower.push_back(v);
  return lower[random.below(lower.size())];
}

// The categories present, ascending.
inline void find_codes(RandomBuffers& b) {
  const auto n_codes = static_cast<std::size_t>(b.high) + 1;
  if (n_codes <= 2 * b.value.size()) {
    b.is_present.assign(n_codes, 0);
    for (const double v : b.value)
      if (v == v) b.is_present[static_cast<std::size_t>(v)] = 1;
    for (std::uint32_t code = 0; code < n_codes; ++code)
      if (b.is_present[code]) b.codes.push_back(code);
    return;
  }
  for (const double v : b.value)
    if (v == v) b.codes.push_back(static_cast<std::uint32_t>(v));
  std::sort(b.codes.begin(), b.codes.end());
  b.codes.erase(std::unique(b.codes.begin(), b.codes.end()), b.codes.end());
}

// Reads the node's values; false if the column has only one.
inline bool read_present(const Column& column, std::span<const Row> rows, RandomBuffers& b, Candidate& c) {
  b.value.resize(rows.size());
  read_values(column, rows.data(), rows.size(), b.value.data());
  b.low = INFINITY;
  b.high = -INFINITY;
  b.codes.clear();
  std::size_t n_present = 0;
  for (const double v : b.value)
    if (v == v) {
      b.low = std::min(b.low, v);
      b.high = std::max(b.high, v);
      ++n_present;
    }
  c.has_missing = n_present < rows.size();
  c.missing_alone = b.low == b.high;
  if (n_present == 0 || (c.missing_alone && !c.has_missing)) return false;
  if (column.is_category()) find_codes(b);
  return true;
}

inline constexpr std::size_t few_categories = 10;  // larger sets would have to be penalised for chance gains

// The number of sets of k categories of which the best is taken.
inline std::size_t n_sets_drawn(std::size_t k) { return k < 3 ? 1 : k > few_categories ? 2 : k - 1; }

// Draws the categories that go left, for the i-th time in this node.
inline void draw_set(RandomStream& random, std::size_t i, const RandomBuffers& b, Candidate& c) {
  c.left_codes.clear();
  if (c.missing_alone) {
    c.left_codes.push_back(b.codes[0]);
    return;
  }
  if (i > 0 && b.codes.size() > few_categories) {
    const std::size_t n_left = 1 + random.below(b.codes.size() - 1);
    c.left_codes.assign(b.codes.begin(), b.codes.begin() + static_cast<std::ptrdiff_t>(n_left));
    return;
  }
  for (const std::uint32_t code : b.codes)
    if (random.next() & 1) c.left_codes.push_back(code);
  if (c.left_codes.empty() || c.left_codes.size() == b.codes.size())
    c.left_codes.assign(1, b.codes[random.below(b.codes.size())]);
}

// Returns whether two sets split k categories alike: they are equal or complementary.
inline bool same_bipartition(std::span<const std::uint32_t> one, std::span<const std::uint32_t> other, std::size_t k) {
  const auto is_in_other = [&](std::uint32_t code) { return std::binary_search(other.begin(), other.end(), code); };
  if (one.size() == other.size() && std::all_of(one.begin(), one.end(), is_in_other)) return true;
  return one.size() + other.size() == k && std::none_of(one.begin(), one.end(), is_in_other);
}

inline void set_sides(const Column& column, const Candidate& c, RandomBuffers& b) {
  b.side.resize(b.value.size());
  for (std::size_t i = 0; i < b.value.size(); ++i) {
    const double v = b.value[i];
    bool left = c.missing_alone;
    if (!c.missing_alone)
      left = column.is_category() ? std::binary_search(c.left_codes.begin(), c.left_codes.end(),
                                                       static_cast<std::uint32_t>(v == v ? v : 0))
                                  : v <= c.threshold;
    b.side[i] = v != v ? Side::missing : left ? Side::left : Side::right;
  }
}

// The best of several cuts: draw(i, candidate) draws the i-th, score(candidate, missing_left, n_left) sums its left
// side and scores it.
template <class Draw, class Score>
Candidate best_of(std::size_t n, const Candidate& start, RandomBuffers& b, Draw draw, Score score) {
  Candidate best = start, drawn = start;
  for (std::size_t i = 0; i < n; ++i) {
    draw(i, drawn);
    // Rounding would distinguish identical cuts.
    if (i > 0 && same_bipartition(drawn.left_codes, best.left_codes, b.codes.size())) continue;
    if (i == 0) best = drawn;
    for (const bool missing_left : {false, true}) {
      if (missing_left && (!drawn.has_missing || drawn.missing_alone)) break;
      Row n_left = 0;
      const double found = score(drawn, missing_left, n_left);
      if (!(found > best.score)) continue;
      best = drawn;
      best.score = found;
      best.n_left = n_left;
      best.w_left = b.left.empty() ? 0.0 : static_cast<double>(b.left[0]);
      best.missing_left = missing_left;
    }
  }
  return best;
}

// For categories with sums.
template <AddsUp Criterion>
Candidate scan_random_sets(const Criterion& criterion, const Totals& total, const Limits& limits, RandomStream random,
                           RandomBuffers& b) {
  const std::size_t k = b.codes.size();
  Candidate start;
  start.has_missing = b.counts[k] > 0;
  start.missing_alone = k == 1;
  start.constant = k == 0 || (k == 1 && !start.has_missing);
  if (start.constant) return start;
  return best_of(
      n_sets_drawn(k), start, b, [&](std::size_t i, Candidate& c) { draw_set(random, i, b, c); },
      [&](const Candidate& c, bool missing_left, Row& n_left) {
        return score_set(criterion, c.left_codes, b, missing_left, total, limits, n_left);
      });
}

template <class Criterion>
Candidate scan_random(Criterion& criterion, const Column& column, std::span<const Row> rows, const Totals& total,
                      const Limits& limits, RandomStream random, RandomBuffers& b) {
  if constexpr (AddsUp<Criterion>)
    if (column.is_category() && has_few_codes(column, rows.size())) {
      b.value.resize(rows.size());
      read_values(column, rows.data(), rows.size(), b.value.data());
      const auto code_of = [&](std::size_t i) {
        return b.value[i] == b.value[i] ? static_cast<std::uint32_t>(b.value[i]) : UINT32_MAX;
      };
      const auto add = [&](std::size_t i, std::int64_t* stat) { criterion.add(rows[i], stat); };
      add_up_categories(column, rows.size(), criterion.width(), code_of, add, b);
      return scan_random_sets(criterion, total, limits, random, b);
    }
  Candidate start;
  if (!read_present(column, rows, b, start)) {
    start.constant = true;
    return start;
  }
  const auto draw = [&](std::size_t i, Candidate& c) {
    if (column.is_category())
      draw_set(random, i, b, c);
    else if (!c.missing_alone)
      c.threshold = draw_threshold(b.value, b.low, b.high, random);
    set_sides(column, c, b);
  };
  return best_of(n_sets_drawn(b.codes.size()), start, b, draw, [&](const Candidate&, bool missing_left, Row& n_left) {
    return score_sides(criterion, rows, b, missing_left, total, limits, n_left);
  });
}

}  // namespace spinney
