// The rows each tree of a forest is grown on, as a function of (seed, tree).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/types.h"

namespace spinney {

// Sampling units are rows, or groups of rows that stay together. Units belong to strata, from each of which a number is
// drawn.
struct Sampling {
  bool replace = true;
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> unit_of_row;          // UINT32_MAX: never drawn
  std::vector<std::vector<std::uint32_t>> strata;  // units of each
  std::vector<std::uint32_t> n_drawn;              // from each stratum; without replacement at most its size
  std::uint32_t n_units = 0;
};

// The number of times each row is drawn for a tree; `units` is scratch.
void draw_counts(const Sampling& sampling, std::uint32_t tree, std::vector<std::uint32_t>& units,
                 std::span<std::uint32_t> counts);

// The rows that trees first … last - 1 are grown on: one bit per row for each tree, in whole 64-bit words.
std::vector<std::uint64_t> rows_in_bag(const Sampling& sampling, std::size_t first, std::size_t last, int n_threads,
                                       Interrupt& interrupt);

// The key of a tree's random streams.
std::uint64_t tree_key(std::uint64_t seed, std::uint32_t tree);

}  // namespace spinney
