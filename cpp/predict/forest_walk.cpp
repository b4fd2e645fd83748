#include "predict/forest_walk.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

struct ForestWalker::Block {
  std::size_t begin = 0, n = 0;
  std::size_t width = 0;
  std::vector<double> values;  // by row and column in use
};

template <class Body>
void ForestWalker::for_each_block(const Table& table, int n_threads, Interrupt& interrupt, Body&& body) const {
  const std::size_t n_tasks = (table.n_rows + block_rows - 1) / block_rows;
  const double estimated_ns = 30.0 * static_cast<double>(table.n_rows) * static_cast<double>(forest_.n_trees());
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    Block block;
    block.begin = task * block_rows;
    block.n = std::min(block_rows, table.n_rows - block.begin);
    block.width = std::max<std::size_t>(1, compact_.used.size());
    if (!compact_.nodes.empty()) {
      block.values.resize(block.width * block_rows, 0.0);
      std::array<Row, block_rows> rows;
      std::iota(rows.begin(), rows.end(), static_cast<Row>(block.begin));
      for (std::size_t s = 0; s < compact_.used.size(); ++s)
        read_rows(table.columns[compact_.used[s]], rows.data(), block.n,
                  [&](std::size_t i, double v) { block.values[i * block.width + s] = v; });
    }
    body(block);
  });
}

// Several rows at a time: while one waits for its next node, the others go on.
template <bool categories>
void ForestWalker::walk_copies(const Block& block, std::span<const std::uint32_t> members, std::uint32_t root,
                               std::uint32_t* leaf) const {
  for (std::size_t begin = 0; begin < members.size(); begin += lanes) {
    const std::size_t n = std::min(lanes, members.size() - begin);
    std::array<std::uint32_t, lanes> at;
    at.fill(root);
    std::array<const double*, lanes> row;
    for (std::size_t k = 0; k < lanes; ++k)
      row[k] = block.values.data() + members[begin + std::min(k, n - 1)] * block.width;
    bool moving = true;
    while (moving) {
      moving = false;
      for (std::size_t k = 0; k < lanes; ++k) {
        const CompactNode& node = compact_.nodes[at[k]];
        const std::uint32_t next = step<categories>(forest_.nodes, node, at[k], row[k][node.slot]);
        moving |= next != at[k];
        at[k] = next;
      }
    }
    std::copy_n(at.begin(), n, leaf + begin);
  }
}

void ForestWalker::walk(const Block& block, const Table& table, std::span<const std::uint32_t> members,
                        std::uint32_t root, std::uint32_t* leaf) const {
  if (!compact_.nodes.empty()) {
    if (compact_.has_categories)
      walk_copies<true>(block, members, root, leaf);
    else
      walk_copies<false>(block, members, root, leaf);
    return;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto r = static_cast<Row>(block.begin + members[i]);
    std::uint32_t at = root;
    while (!forest_.nodes.is_leaf(at))
      at = next_node(forest_.nodes, at, [&](std::uint32_t f) { return value_at(table.columns[f], r); });
    leaf[i] = at;
  }
}

void ForestWalker::sum(const Table& table, std::size_t first, std::size_t last, std::span<const std::uint64_t> skip,
                       int n_threads, Interrupt& interrupt, double* out, std::uint32_t* n_used) const {
  const std::size_t width = forest_.nodes.value_width, words = (table.n_rows + 63) / 64;
  for_each_block(table, n_threads, interrupt, [&](const Block& block) {
    std::array<std::uint32_t, block_rows> members, leaf;
    for (std::size_t t = first; t < last; ++t) {
      std::size_t n = 0;
      for (std::uint32_t i = 0; i < block.n; ++i) {
        const std::size_t r = block.begin + i;
        if (skip.empty() || !(skip[(t - first) * words + r / 64] >> (r % 64) & 1)) members[n++] = i;
      }
      walk(block, table, std::span(members).first(n), forest_.root[t], leaf.data());
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t r = block.begin + members[k];
        const double* value = forest_.nodes.value.data() + std::size_t{leaf[k]} * width;
        for (std::size_t j = 0; j < width; ++j) out[r * width + j] += value[j];
        if (n_used != nullptr) ++n_used[r];
      }
    }
  });
}

void ForestWalker::apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const {
  const std::size_t n_trees = forest_.n_trees();
  for_each_block(table, n_threads, interrupt, [&](const Block& block) {
    std::array<std::uint32_t, block_rows> members, found;
    std::iota(members.begin(), members.end(), 0u);
    for (std::size_t t = 0; t < n_trees; ++t) {
      walk(block, table, std::span(members).first(block.n), forest_.root[t], found.data());
      for (std::size_t i = 0; i < block.n; ++i) leaf[(block.begin + i) * n_trees + t] = found[i] - forest_.root[t];
    }
  });
}

void ForestWalker::sum_one(const double* row, double* out) const {
  const std::size_t width = forest_.nodes.value_width;
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
    std::uint32_t at = forest_.root[t];
    while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, [&](std::uint32_t f) { return row[f]; });
    const double* value = forest_.nodes.value.data() + std::size_t{at} * width;
    for (std::size_t j = 0; j < width; ++j) out[j] += value[j];
  }
}

}  // namespace spinney
