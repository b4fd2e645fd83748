#include "predict/walk.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

static constexpr std::size_t block_rows = 128, rows_per_task = 4096, lanes = 8;

Walker::Walker(const Tree& tree) : tree_(tree) {
  for (std::size_t i = 0; i < tree.size(); ++i)
    if (!tree.is_leaf(i)) used_.push_back(static_cast<std::uint32_t>(tree.feature[i]));
  std::sort(used_.begin(), used_.end());
  used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
  compact_ = used_.size() <= 512;  // beyond this, copying a row costs more than reading the few values it needs
  if (!compact_) return;
  std::vector<std::uint16_t> slot(used_.empty() ? 0 : used_.back() + std::size_t{1}, 0);
  for (std::size_t s = 0; s < used_.size(); ++s) slot[used_[s]] = static_cast<std::uint16_t>(s);
  nodes_.resize(tree.size());
  for (std::uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.is_leaf(i)) {
      nodes_[i] = {0.0, i, 0, 0, 0};
      continue;
    }
    nodes_[i] = {tree.threshold[i], tree.right[i], slot[static_cast<std::size_t>(tree.feature[i])], 1, tree.flags[i]};
    has_categories_ = has_categories_ || (tree.flags[i] & Tree::category);
  }
}

template <bool categories>
void Walker::walk_block(const double* values, std::size_t n_rows, std::uint32_t* leaf) const {
  const std::size_t width = used_.size();
  for (std::size_t begin = 0; begin < n_rows; begin += lanes) {
    const std::size_t n = std::min(lanes, n_rows - begin);
    std::array<std::uint32_t, lanes> at{};
    std::array<const double*, lanes> row;
    for (std::size_t k = 0; k < lanes; ++k) row[k] = values + (begin + std::min(k, n - 1)) * width;
    bool moving = true;
    while (moving) {
      moving = false;
      for (std::size_t k = 0; k < lanes; ++k) {
        const Node& node = nodes_[at[k]];
        const double x = row[k][node.slot];
        bool left = (x <= node.threshold) | ((x != x) & (node.flags & Tree::missing_left));
        if constexpr (categories)
          if ((node.flags & Tree::category) && x == x)
            left = category_goes_left(tree_.sets.data() + tree_.set[at[k]], node.flags & Tree::default_left,
                                      static_cast<std::uint32_t>(x));
        const std::uint32_t keep_right = std::uint32_t{left} - 1;
        const std::uint32_t stay = at[k] + node.left_step;
        const std::uint32_t next = stay ^ ((stay ^ node.right) & keep_right);
        moving |= next != at[k];
        at[k] = next;
      }
    }
    std::copy_n(at.begin(), n, leaf + begin);
  }
}

bool Walker::steps_left(std::uint32_t node, double x) const { return goes_left(tree_, node, x); }

void Walker::apply_wide(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const {
  for (std::size_t r = begin; r < end; ++r) {
    std::uint32_t at = 0;
    while (!tree_.is_leaf(at)) {
      const double x = value_at(table.columns[static_cast<std::size_t>(tree_.feature[at])], static_cast<Row>(r));
      at = steps_left(at, x) ? at + 1 : tree_.right[at];
    }
    leaf[r] = at;
  }
}

void Walker::apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const {
  const std::size_t n_tasks = (table.n_rows + rows_per_task - 1) / rows_per_task;
  const double estimated_ns = 40.0 * static_cast<double>(table.n_rows);
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t task_end = std::min(table.n_rows, (task + 1) * rows_per_task);
    if (!compact_) return apply_wide(table, task * rows_per_task, task_end, leaf);
    const std::size_t width = used_.size();
    std::vector<double> values(std::max<std::size_t>(1, width * block_rows));
    std::array<Row, block_rows> rows;
    for (std::size_t begin = task * rows_per_task; begin < task_end; begin += block_rows) {
      const std::size_t n = std::min(block_rows, task_end - begin);
      std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
      for (std::size_t s = 0; s < width; ++s)
        read_rows(table.columns[used_[s]], rows.data(), n, [&](std::size_t i, double v) { values[i * width + s] = v; });
      if (has_categories_)
        walk_block<true>(values.data(), n, leaf + begin);
      else
        walk_block<false>(values.data(), n, leaf + begin);
    }
  });
}

std::uint32_t Walker::apply_one(const double* row) const {
  std::uint32_t at = 0;
  while (!tree_.is_leaf(at)) at = steps_left(at, row[tree_.feature[at]]) ? at + 1 : tree_.right[at];
  return at;
}

}  // namespace spinney
