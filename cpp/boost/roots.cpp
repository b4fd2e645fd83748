#include "boost/roots.h"

#include <algorithm>
#include <array>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::size_t n_beside = 8;

}  // namespace

bool RootHistograms::are_worth_it(const Tiles& tiles, std::size_t n_table_rows, std::size_t n_rows,
                                  std::uint32_t n_trees, int n_threads) {
  constexpr double most_bytes = 1 << 28;
  const auto n_cells = static_cast<double>(tiles.n_cells());
  const double n_sums = n_cells * (n_trees + static_cast<double>(n_beside) * n_threads);
  const double n_pairs = static_cast<double>(n_table_rows) * n_trees;
  return n_trees > 2 && static_cast<double>(n_rows) >= n_cells && sizeof(Packed) * (n_sums + n_pairs) <= most_bytes;
}

RootHistograms::RootHistograms(const Tiles& tiles, std::size_t n_table_rows, std::uint32_t n_trees, int n_threads)
    : tiles_(tiles),
      n_threads_(n_threads),
      eights_(static_cast<std::size_t>(n_threads)),
      histograms_(n_trees * tiles.n_cells()) {
  for (std::uint32_t k = 0; k < n_trees; ++k) pairs_.emplace_back(n_table_rows);
}

void RootHistograms::fill(std::span<const Row> rows, Interrupt& interrupt) {
  const std::size_t n_trees = pairs_.size(), n_groups = (n_trees + n_beside - 1) / n_beside;
  for (std::size_t g = 0; g < n_groups; ++g) {
    const std::size_t first = g * n_trees / n_groups, end = (g + 1) * n_trees / n_groups;
    fill_eight(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first), rows, interrupt);
  }
}

// Rows are divided among the workers; each worker has separate sums.
void RootHistograms::fill_eight(std::uint32_t first_tree, std::uint32_t n_trees, std::span<const Row> rows,
                                Interrupt& interrupt) {
  const std::size_t least =
      std::max<std::size_t>(8192, tiles_.n_cells());  // rows that justify a worker's separate sums
  const std::size_t n_workers = std::clamp<std::size_t>(rows.size() / least, 1, eights_.size()),
                    n_tasks = 4 * n_workers;
  std::vector<std::uint8_t> used(eights_.size(), 0);
  parallel_for(n_tasks, static_cast<int>(n_workers), [&](std::size_t task, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    LargeArray<Packed>& mine = eights_[w];
    if (mine.size() == 0) mine = LargeArray<Packed>(n_beside * tiles_.n_cells());
    if (!used[w]) std::fill_n(mine.data(), mine.size(), 0);
    used[w] = 1;
    constexpr std::size_t between_checks = 1 << 16;
    const std::size_t end = (task + 1) * rows.size() / n_tasks;
    for (std::size_t begin = task * rows.size() / n_tasks; begin < end; begin += between_checks) {
      interrupt.check();
      add_rows(first_tree, n_trees, rows.subspan(begin, std::min(between_checks, end - begin)), mine.data());
    }
  });
  take_apart(first_tree, n_trees, used);
}

void RootHistograms::add_rows(std::uint32_t first_tree, std::uint32_t n_trees, std::span<const Row> rows,
                              Packed* eights) const {
  constexpr std::size_t block = 256;
  alignas(64) std::array<Packed, n_beside * block> pairs{};
  for (std::uint32_t tile = 0; tile < tiles_.n_tiles(); ++tile)
    for (std::size_t begin = 0; begin < rows.size(); begin += block) {
      const std::span<const Row> some = rows.subspan(begin, std::min(block, rows.size() - begin));
      for (std::uint32_t k = 0; k < n_trees; ++k) {
        const Packed* from = pairs_[first_tree + k].data();
        for (std::size_t i = 0; i < some.size(); ++i) pairs[n_beside * i + k] = from[some[i]];
      }
      tiles_.add_eights(tile, pairs.data(), some.data(), some.size(), eights);
    }
}

// One histogram per tree.
void RootHistograms::take_apart(std::uint32_t first_tree, std::uint32_t n_trees,
                                const std::vector<std::uint8_t>& used) {
  const std::size_t n_cells = tiles_.n_cells();
  Packed* out = histograms_.data() + first_tree * n_cells;
  constexpr std::size_t block = 512;  // of cells
  const double n_sums = static_cast<double>(n_cells * n_beside) * static_cast<double>(used.size());
  parallel_for_if_worth(0.5 * n_sums, (n_cells + block - 1) / block, n_threads_, [&](std::size_t b, int) {
    const std::size_t begin = b * block, end = std::min(n_cells, begin + block);
    for (std::uint32_t k = 0; k < n_trees; ++k) std::fill(out + k * n_cells + begin, out + k * n_cells + end, 0);
    for (std::size_t w = 0; w < used.size(); ++w) {
      if (!used[w]) continue;
      const Packed* from = eights_[w].data();
      for (std::size_t cell = begin; cell < end; ++cell)
        for (std::uint32_t k = 0; k < n_trees; ++k) out[k * n_cells + cell] += from[n_beside * cell + k];
    }
  });
}

}  // namespace spinney
