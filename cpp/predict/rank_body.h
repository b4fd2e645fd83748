// How many thresholds lie below a value, included by one translation unit per instruction set, inside its namespace.
// That unit counts among 16: count_below(const Sixteen&, x).

static std::uint32_t rank_of(const RankLevels& levels, std::uint32_t n, double x) {
  std::uint32_t at = 0;
  for (std::uint32_t l = 0; l < n; ++l) at = at * 16 + count_below(levels.level[l][at], x);
  return at;
}

// The lowest level is larger than a cache: it is asked for before it is needed.
static void rank(const RankLevels& of_column, const double* x, std::size_t n, std::uint32_t* rank) {
  constexpr std::size_t chunk = 32;
  const RankLevels levels = of_column;  // which the results cannot overwrite
  const Sixteen* lowest = levels.level[levels.n - 1];
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t end = n - begin < chunk ? n : begin + chunk;
    for (std::size_t i = begin; i < end; ++i) {
      rank[i] = rank_of(levels, levels.n - 1, x[i]);
      __builtin_prefetch(&lowest[rank[i]].threshold[0]);
      __builtin_prefetch(&lowest[rank[i]].threshold[8]);
    }
    for (std::size_t i = begin; i < end; ++i) rank[i] = rank[i] * 16 + count_below(lowest[rank[i]], x[i]);
  }
}

static void rank_row(const RankLevels* levels, const double* x, std::size_t n, std::uint32_t* rank) {
  for (std::size_t i = 0; i < n; ++i) rank[i] = rank_of(levels[i], levels[i].n, x[i]);
}
