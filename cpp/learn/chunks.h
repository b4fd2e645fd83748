// Rows in chunks, and sums over them that have the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/pool.h"
#include "boost/kernels.h"

namespace spinney {

// Sums of doubles are by chunk, in order: the same bits for any number of threads.
inline constexpr std::size_t chunk_rows = 4096;

template <class Body>  // body(chunk, begin, end)
void for_each_chunk(std::size_t n, int n_threads, double ns_per_row, Body&& body) {
  const std::size_t n_chunks = (n + chunk_rows - 1) / chunk_rows;
  parallel_for_if_worth(ns_per_row * static_cast<double>(n), n_chunks, n_threads,
                        [&](std::size_t c, int) { body(c, c * chunk_rows, std::min(n, (c + 1) * chunk_rows)); });
}

// Sums in lanes, for speed; which row goes to which is the same for all instruction sets.
inline constexpr std::size_t n_lanes = 8;

template <class Value>
double sum_in_lanes(std::size_t n, Value&& value) {
  std::array<double, n_lanes> sums{};
  std::size_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes)
    for (std::size_t l = 0; l < n_lanes; ++l) sums[l] += value(i + l);
  for (std::size_t l = 0; i < n; ++i, ++l) sums[l] += value(i);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

inline void add_sizes(const Pair* pairs, std::size_t n, GradientSums& sums) {
  sums.gradient += sum_in_lanes(n, [&](std::size_t i) { return std::abs(static_cast<double>(pairs[i].gradient)); });
  sums.hessian += sum_in_lanes(n, [&](std::size_t i) { return static_cast<double>(pairs[i].hessian); });
}

}  // namespace spinney
