// Kernels, compiled once per instruction set; see base/cpu.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/lanes.h"
#include "predict/coded_walk.h"

namespace spinney {
namespace {

#if defined(__AVX512F__)
#include "predict/coded_walk_sixteen.h"
#else
#include "predict/coded_walk_one.h"
#endif

std::uint32_t rank_of(const RankLevels& levels, std::uint32_t n, double x) {
  std::uint32_t at = 0;
  for (std::uint32_t l = 0; l < n; ++l) at = at * 16 + count_below(levels.level[l][at], x);
  return at;
}

// The lowest level may exceed the cache, so it is prefetched.
void rank(const RankLevels& of_column, const double* x, std::size_t n, std::uint32_t* rank) {
  constexpr std::size_t chunk = 32;
  const RankLevels levels = of_column;  // a local copy, which the results cannot alias
  const Sixteen* lowest = levels.level[levels.n - 1];
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t n_here = n - begin < chunk ? n - begin : chunk;
    for (std::size_t i = 0; i < n_here; ++i) rank[begin + i] = 0;
    for (std::uint32_t l = 0; l + 1 < levels.n; ++l) descend(levels.level[l], x + begin, n_here, rank + begin);
    for (std::size_t i = 0; levels.n > 2 && i < n_here; ++i) {
      __builtin_prefetch(&lowest[rank[begin + i]].threshold[0]);
      __builtin_prefetch(&lowest[rank[begin + i]].threshold[8]);
    }
    descend(lowest, x + begin, n_here, rank + begin);
  }
}

void rank_row(const RankLevels* levels, const double* x, std::size_t n, std::uint32_t* rank) {
  for (std::size_t i = 0; i < n; ++i) rank[i] = rank_of(levels[i], levels[i].n, x[i]);
}

}  // namespace

const CodedKernels& coded_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr CodedKernels table{
      .codes_by_column = codes_by_column, .walk = walk, .walk_trees = walk_trees, .rank = rank, .rank_row = rank_row};
  return table;
}

}  // namespace spinney
