#include "data/sample.h"

#include <utility>

#include "base/pool.h"
#include "base/random.h"

namespace spinney {

std::uint64_t tree_key(std::uint64_t seed, std::uint32_t tree) { return derive(derive(seed, 101), tree); }

static void draw_without_replacement(const std::vector<std::uint32_t>& units, std::uint32_t n, RandomStream& random,
                                     std::vector<std::uint32_t>& counts) {
  std::vector<std::uint32_t> pool = units;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::swap(pool[i], pool[i + random.below(pool.size() - i)]);
    ++counts[pool[i]];
  }
}

void draw_counts(const Sampling& sampling, std::uint32_t tree, std::vector<std::uint32_t>& units,
                 std::span<std::uint32_t> counts) {
  units.assign(sampling.n_units, 0);
  const std::uint64_t key = derive(derive(sampling.seed, 102), tree);
  for (std::size_t s = 0; s < sampling.strata.size(); ++s) {
    RandomStream random(derive(key, s));
    const auto& stratum = sampling.strata[s];
    if (!sampling.replace) {
      draw_without_replacement(stratum, sampling.n_drawn[s], random, units);
      continue;
    }
    for (std::uint32_t i = 0; i < sampling.n_drawn[s]; ++i) ++units[stratum[random.below(stratum.size())]];
  }
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const std::uint32_t unit = sampling.unit_of_row[r];
    counts[r] = unit == UINT32_MAX ? 0 : units[unit];
  }
}

std::vector<std::uint64_t> rows_in_bag(const Sampling& sampling, std::size_t first, std::size_t last, int n_threads,
                                       Interrupt& interrupt) {
  const std::size_t n_rows = sampling.unit_of_row.size(), n_words = (n_rows + 63) / 64;
  std::vector<std::uint64_t> bits((last - first) * n_words, 0);
  parallel_for(last - first, n_threads, [&](std::size_t i, int) {
    interrupt.check();
    std::vector<std::uint32_t> units, counts(n_rows);
    draw_counts(sampling, static_cast<std::uint32_t>(first + i), units, counts);
    for (std::size_t r = 0; r < n_rows; ++r)
      if (counts[r] > 0) bits[i * n_words + r / 64] |= std::uint64_t{1} << (r % 64);
  });
  return bits;
}

}  // namespace spinney
