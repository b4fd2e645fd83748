#include "predict/walk.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

static constexpr std::size_t block_rows = 128, rows_per_task = 4096, lanes = 8;

Walker::Walker(const Tree& tree) : tree_(tree) {
  if (!tree.splits.empty()) {  // a row may need the columns of surrogates
    compact_ = false;
    return;
  }
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

// Several rows at a time: while one waits for its next node, the others go on.
template <class T, bool categories>
void Walker::walk(const Layout& rows, std::size_t n_rows, std::uint32_t* leaf) const {
  for (std::size_t begin = 0; begin < n_rows; begin += lanes) {
    const std::size_t n = std::min(lanes, n_rows - begin);
    std::array<std::uint32_t, lanes> at{};
    std::array<const std::byte*, lanes> row;
    for (std::size_t k = 0; k < lanes; ++k)
      row[k] = rows.first + static_cast<std::ptrdiff_t>(begin + std::min(k, n - 1)) * rows.stride;
    bool moving = true;
    while (moving) {
      moving = false;
      for (std::size_t k = 0; k < lanes; ++k) {
        const Node& node = nodes_[at[k]];
        T value;
        __builtin_memcpy(&value, row[k] + rows.offset[node.slot], sizeof(T));
        const double x = static_cast<double>(value);
        bool left = (x <= node.threshold) | ((x != x) & (node.flags & Tree::missing_left));
        if constexpr (categories)
          if ((node.flags & Tree::category) && x == x)
            left = category_goes_left(tree_.sets.data() + tree_.set[at[k]], node.flags & Tree::default_left,
                                      static_cast<std::uint32_t>(x));
        // selected by masks: a branch here is wrong half the time
        const std::uint32_t go_right = std::uint32_t{left} - 1, next_left = at[k] + node.left_step;
        const std::uint32_t next = next_left ^ ((next_left ^ node.right) & go_right);
        moving |= next != at[k];
        at[k] = next;
      }
    }
    std::copy_n(at.begin(), n, leaf + begin);
  }
}

template <class T>
void Walker::walk_as(const Layout& rows, std::size_t n_rows, std::uint32_t* leaf) const {
  if (has_categories_)
    walk<T, true>(rows, n_rows, leaf);
  else
    walk<T, false>(rows, n_rows, leaf);
}

// Are the columns in use plain numbers of this type that lie side by side in every row?
bool Walker::is_row_major(const Table& table, DType type) const {
  if (used_.empty() || has_categories_) return false;
  const Column& first = table.columns[used_[0]];
  return std::all_of(used_.begin(), used_.end(), [&](std::uint32_t f) {
    const Column& c = table.columns[f];
    return c.dtype == type && c.mask == nullptr && !c.is_sparse() && !c.is_category() && c.stride == first.stride &&
           std::abs(c.data - first.data) < std::abs(c.stride);
  });
}

// Copies blocks of rows to where their values lie side by side.
void Walker::walk_copies(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const {
  const std::size_t width = std::max<std::size_t>(1, used_.size());
  std::vector<double> values(width * block_rows, 0.0);
  std::vector<std::ptrdiff_t> offset(width);
  for (std::size_t s = 0; s < width; ++s) offset[s] = static_cast<std::ptrdiff_t>(s * sizeof(double));
  const Layout layout{reinterpret_cast<const std::byte*>(values.data()),
                      static_cast<std::ptrdiff_t>(width * sizeof(double)), offset.data()};
  std::array<Row, block_rows> rows;
  for (; begin < end; begin += block_rows) {
    const std::size_t n = std::min(block_rows, end - begin);
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t s = 0; s < used_.size(); ++s)
      read_rows(table.columns[used_[s]], rows.data(), n, [&](std::size_t i, double v) { values[i * width + s] = v; });
    walk_as<double>(layout, n, leaf + begin);
  }
}

// Reads only the values that a row needs.
void Walker::walk_wide(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const {
  for (std::size_t r = begin; r < end; ++r) {
    leaf[r] = resting_node(tree_, [&](std::uint32_t f) { return value_at(table.columns[f], static_cast<Row>(r)); });
  }
}

void Walker::apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const {
  const bool floats = compact_ && is_row_major(table, DType::f32),
             doubles = compact_ && is_row_major(table, DType::f64);
  std::vector<std::ptrdiff_t> offset;
  if (floats || doubles)
    for (const std::uint32_t f : used_) offset.push_back(table.columns[f].data - table.columns[used_[0]].data);
  const std::size_t n_tasks = (table.n_rows + rows_per_task - 1) / rows_per_task;
  const double estimated_ns = 40.0 * static_cast<double>(table.n_rows);
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t begin = task * rows_per_task, end = std::min(table.n_rows, begin + rows_per_task);
    if (!compact_) return walk_wide(table, begin, end, leaf);
    if (!floats && !doubles) return walk_copies(table, begin, end, leaf);
    const Column& first = table.columns[used_[0]];
    const Layout layout{first.data + static_cast<std::ptrdiff_t>(begin) * first.stride, first.stride, offset.data()};
    if (floats)
      walk_as<float>(layout, end - begin, leaf + begin);
    else
      walk_as<double>(layout, end - begin, leaf + begin);
  });
}

std::uint32_t Walker::apply_one(const double* row) const {
  return resting_node(tree_, [&](std::uint32_t f) { return row[f]; });
}

}  // namespace spinney
