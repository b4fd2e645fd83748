#include "predict/walk.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

static constexpr std::size_t block_rows = 128, task_rows = 4096, lanes = 8;

// With surrogates, a row may need columns other than those of the splits.
Walker::Walker(const Tree& tree)
    : tree_(tree), compact_(tree), blocks_(!compact_.nodes.empty() && tree.splits.empty()) {}

// Several rows at a time, so that memory latencies overlap.
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
        const CompactNode& node = compact_.nodes[at[k]];
        T value;
        __builtin_memcpy(&value, row[k] + rows.offset[node.slot], sizeof(T));
        const double x = static_cast<double>(value);
        const std::uint32_t next = step<categories>(tree_, node, at[k], x);
        moving |= next != at[k];
        at[k] = next;
      }
    }
    std::copy_n(at.begin(), n, leaf + begin);
  }
}

template <class T>
void Walker::walk_as(const Layout& rows, std::size_t n_rows, std::uint32_t* leaf) const {
  if (compact_.has_categories)
    walk<T, true>(rows, n_rows, leaf);
  else
    walk<T, false>(rows, n_rows, leaf);
}

// Returns whether the columns in use are plain numbers of this type, contiguous in every row.
bool Walker::is_row_major(const Table& table, DType type) const {
  if (compact_.used.empty() || compact_.has_categories) return false;
  const Column& first = table.columns[compact_.used[0]];
  return std::all_of(compact_.used.begin(), compact_.used.end(), [&](std::uint32_t f) {
    const Column& c = table.columns[f];
    return c.dtype == type && c.mask == nullptr && !c.is_sparse() && !c.is_category() && c.stride == first.stride &&
           std::abs(c.data - first.data) < std::abs(c.stride);
  });
}

// Copies blocks of rows to contiguous memory.
void Walker::walk_copies(const Table& table, std::size_t begin, std::size_t end, std::uint32_t* leaf) const {
  const std::size_t width = std::max<std::size_t>(1, compact_.used.size());
  std::vector<double> values(width * block_rows, 0.0);
  std::vector<std::ptrdiff_t> offset(width);
  for (std::size_t s = 0; s < width; ++s) offset[s] = static_cast<std::ptrdiff_t>(s * sizeof(double));
  const Layout layout{reinterpret_cast<const std::byte*>(values.data()),
                      static_cast<std::ptrdiff_t>(width * sizeof(double)), offset.data()};
  std::array<Row, block_rows> rows;
  for (; begin < end; begin += block_rows) {
    const std::size_t n = std::min(block_rows, end - begin);
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t s = 0; s < compact_.used.size(); ++s)
      read_rows(table.columns[compact_.used[s]], rows.data(), n,
                [&](std::size_t i, double v) { values[i * width + s] = v; });
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
  const bool floats = blocks_ && is_row_major(table, DType::f32), doubles = blocks_ && is_row_major(table, DType::f64);
  std::vector<std::ptrdiff_t> offset;
  if (floats || doubles)
    for (const std::uint32_t f : compact_.used)
      offset.push_back(table.columns[f].data - table.columns[compact_.used[0]].data);
  const std::size_t n_tasks = (table.n_rows + task_rows - 1) / task_rows;
  const double estimated_ns = 40.0 * static_cast<double>(table.n_rows);
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t begin = task * task_rows, end = std::min(table.n_rows, begin + task_rows);
    table.touch(end - begin);
    if (!blocks_) return walk_wide(table, begin, end, leaf);
    if (!floats && !doubles) return walk_copies(table, begin, end, leaf);
    const Column& first = table.columns[compact_.used[0]];
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
