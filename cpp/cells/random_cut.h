// Extra-trees: one cut per column, drawn at random. Missing rows take the side that gains more.
//   number    a threshold uniform in the range of the node's values
//   category  a random, non-trivial set of the categories present
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
  std::vector<std::uint32_t> codes;
};

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

// In a range that has an end.
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

// Chooses the sides of the present rows; false if the column has only one value.
inline bool draw_sides(const Column& column, std::span<const Row> rows, RandomStream& random, RandomBuffers& b,
                       Candidate& c) {
  b.value.resize(rows.size());
  b.side.assign(rows.size(), Side::right);
  read_values(column, rows.data(), rows.size(), b.value.data());
  double low = INFINITY, high = -INFINITY;
  std::size_t n_present = 0;
  for (const double v : b.value)
    if (v == v) {
      low = std::min(low, v);
      high = std::max(high, v);
      ++n_present;
    }
  c.has_missing = n_present < rows.size();
  if (n_present == 0 || (low == high && !c.has_missing)) return false;
  if (low == high) {
    c.missing_alone = true;
  } else if (!column.is_category()) {
    c.threshold = draw_threshold(b.value, low, high, random);
  } else {
    b.codes.clear();
    for (const double v : b.value)
      if (v == v) b.codes.push_back(static_cast<std::uint32_t>(v));
    std::sort(b.codes.begin(), b.codes.end());
    b.codes.erase(std::unique(b.codes.begin(), b.codes.end()), b.codes.end());
    for (const std::uint32_t code : b.codes)
      if (random.next() & 1) c.left_codes.push_back(code);
    if (c.left_codes.empty() || c.left_codes.size() == b.codes.size())
      c.left_codes.assign(1, b.codes[random.below(b.codes.size())]);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double v = b.value[i];
    bool left = c.missing_alone;
    if (!c.missing_alone)
      left = column.is_category() ? std::binary_search(c.left_codes.begin(), c.left_codes.end(),
                                                       static_cast<std::uint32_t>(v == v ? v : 0))
                                  : v <= c.threshold;
    b.side[i] = v != v ? Side::missing : left ? Side::left : Side::right;
  }
  if (c.missing_alone && column.is_category()) c.left_codes.assign(1, static_cast<std::uint32_t>(low));
  return true;
}

template <class Criterion>
Candidate scan_random(Criterion& criterion, const Column& column, std::span<const Row> rows, const Totals& total,
                      const Limits& limits, RandomStream random, RandomBuffers& b) {
  Candidate best;
  if (!draw_sides(column, rows, random, b, best)) {
    best.constant = true;
    return best;
  }
  for (const bool missing_left : {false, true}) {
    if (missing_left && (!best.has_missing || best.missing_alone)) break;
    Row n_left = 0;
    const double score = score_sides(criterion, rows, b, missing_left, total, limits, n_left);
    if (!(score > best.score)) continue;
    best.score = score;
    best.n_left = n_left;
    best.w_left = b.left.empty() ? 0.0 : static_cast<double>(b.left[0]);
    best.missing_left = missing_left;
  }
  return best;
}

}  // namespace spinney
