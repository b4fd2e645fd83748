// Chunks of rows, and sums over them that are bit-identical for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "base/near_tasks.h"
#include "boost/kernels.h"

namespace spinney {

// Sums of doubles are computed by chunk, in order, so that they do not depend on the number of threads.
inline constexpr std::size_t chunk_rows = 4096;

template <class Body>  // body(chunk, begin, end)
void for_each_chunk(std::size_t n, int n_threads, double ns_per_row, Body&& body) {
  const std::size_t n_chunks = (n + chunk_rows - 1) / chunk_rows;
  parallel_for_near_if_worth(ns_per_row * static_cast<double>(n), n_chunks, n_threads,
                             [&](std::size_t c, int) { body(c, c * chunk_rows, std::min(n, (c + 1) * chunk_rows)); });
}

// Calls body(leaf, begin, end) for the rows of all leaves, in chunks. Rows of a leaf are ascending, and a task takes
// the rows of all leaves that are close in the table, so that data by row stay in one core's cache.
template <class Leaf, class Body>
void for_each_chunk_of_leaf(const std::vector<Leaf>& leaves, std::span<const Row> rows, std::size_t n_table_rows,
                            int n_threads, double ns_per_row, Body&& body) {
  const std::size_t n_wanted = 2 * static_cast<std::size_t>(n_threads);
  const std::size_t most = std::max<std::size_t>(32768, 16 * leaves.size());  // each leaf is searched for each block
  const std::size_t block = std::clamp<std::size_t>(n_table_rows / n_wanted + 1, 4096, most);
  const double estimated_ns = ns_per_row * static_cast<double>(rows.size());
  parallel_for_near_if_worth(estimated_ns, (n_table_rows + block - 1) / block, n_threads, [&](std::size_t b, int) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(leaves[i].begin),
                 end = rows.begin() + static_cast<std::ptrdiff_t>(leaves[i].end),
                 from = std::lower_bound(begin, end, b * block), to = std::lower_bound(from, end, (b + 1) * block);
      if (from != to)
        body(i, static_cast<std::size_t>(from - rows.begin()), static_cast<std::size_t>(to - rows.begin()));
    }
  });
}

// Sums in lanes, for speed; the assignment of rows to lanes is the same for all instruction sets.
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
