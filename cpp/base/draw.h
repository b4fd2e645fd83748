// Random draws of columns for a tree or for a node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/random.h"

namespace spinney {

// Moves n_drawn randomly drawn columns to the front (or more, in random order). Without weights every order is equally
// likely; with weights (by column, > 0), each next column is drawn from the remaining ones in proportion to its weight,
// as a race of exponential clocks: a clock of rate w rings after -log(u) / w, and the probability of ringing first is
// proportional to the rate.
inline void shuffle_columns(std::span<std::uint32_t> columns, std::size_t n_drawn, const std::vector<double>& weights,
                            RandomStream random) {
  if (weights.empty()) {
    for (std::size_t i = 0; i < n_drawn; ++i) std::swap(columns[i], columns[i + random.below(columns.size() - i)]);
    return;
  }
  std::vector<std::pair<double, std::uint32_t>> times;
  times.reserve(columns.size());
  for (const std::uint32_t f : columns) times.emplace_back(-log_ieee(1 - random.unit()) / weights[f], f);
  std::sort(times.begin(), times.end());
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = times[i].second;
}

}  // namespace spinney
