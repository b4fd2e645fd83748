#include "predict/forest_walk.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

static constexpr std::size_t walked_one_by_one = 64;

void ForestWalker::prepare(int n_threads, Interrupt& interrupt) const {
  std::call_once(once_, [&] {
    coded_.emplace(forest_, n_threads, interrupt);
    if (coded_->is_usable()) ready_.store(&*coded_, std::memory_order_release);
  });
}

// Walking a coded tree saves about four times the cost of coding a node.
const CodedForest* ForestWalker::coded_for(std::size_t n_walks, int n_threads, Interrupt& interrupt) const {
  if (n_walks_.fetch_add(n_walks, std::memory_order_relaxed) + n_walks >= forest_.nodes.size() / 4)
    prepare(n_threads, interrupt);
  return ready_.load(std::memory_order_acquire);
}

// Some rows, coded or as contiguous numbers, or neither if there are many columns.
class ForestWalker::Block {
 public:
  Block(const Forest& forest, const CodedForest* coded, const Table& table, std::size_t begin, std::size_t end,
        CodedForest::Block& scratch)
      : begin(begin), n(end - begin), forest_(forest), coded_(coded), table_(table), codes_(scratch) {
    constexpr std::size_t most_columns = 512;
    if (coded != nullptr) {
      coded->read(table, begin, n, codes_);
    } else if (table.n_columns() <= most_columns) {
      std::vector<Row> rows(n);
      std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
      values_.resize(n * table.n_columns());
      for (std::size_t f = 0; f < table.n_columns(); ++f)
        read_rows(table.columns[f], rows.data(), n,
                  [&](std::size_t i, double v) { values_[i * table.n_columns() + f] = v; });
    }
  }

  // Each row of `members` reaches a leaf of tree t: row[i] is in leaf[i], in any order.
  using LeavesAre = CodedForest::LeavesAre;
  void walk(std::size_t t, std::span<const std::uint32_t> members, LeavesAre leaves_are, std::uint32_t* row,
            std::uint32_t* leaf) const {
    if (coded_ != nullptr) return coded_->walk(codes_, t, members, leaves_are, row, leaf);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double* numbers = values_.data() + members[i] * table_.n_columns();
      const auto r = static_cast<Row>(begin + members[i]);
      const auto value = [&](std::uint32_t f) { return values_.empty() ? value_at(table_.columns[f], r) : numbers[f]; };
      std::uint32_t at = forest_.root[t];
      while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, value);
      row[i] = members[i];
      leaf[i] = at - forest_.root[t];
    }
  }

  // Adds the values of leaves, given by number, to out[row]; `out` belongs to the block.
  void add(std::size_t t, std::span<const std::uint32_t> row, const std::uint32_t* leaf, double* out) const {
    if (coded_ != nullptr) return coded_->add(t, row, leaf, out);
    const std::size_t width = forest_.nodes.value_width;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::span<const double> value = forest_.nodes.value_of(forest_.root[t] + leaf[i]);
      for (std::size_t j = 0; j < width; ++j) out[row[i] * width + j] += value[j];
    }
  }

  const std::size_t begin, n;

 private:
  const Forest& forest_;
  const CodedForest* coded_;
  const Table& table_;
  CodedForest::Block& codes_;
  std::vector<double> values_;
};

// Blocks are large enough to read a tree once for many rows, and small enough to stay in cache.
template <class Body>
void ForestWalker::for_each_block(const CodedForest* coded, const Table& table, std::size_t n_trees, int n_threads,
                                  Interrupt& interrupt, Body&& body) const {
  constexpr std::size_t block_words = std::size_t{1} << 17, least = 64, most = 4096;
  const std::size_t width = coded != nullptr ? coded->width() : 2 * table.n_columns() + 1;
  const std::size_t rows_per_thread = table.n_rows / (2 * static_cast<std::size_t>(n_threads)) + 1;
  const std::size_t block_rows = std::clamp(std::min(block_words / width, rows_per_thread), least, most);
  const std::size_t n_tasks = (table.n_rows + block_rows - 1) / block_rows;
  const double estimated_ns = 30.0 * static_cast<double>(table.n_rows) * static_cast<double>(n_trees);
  std::vector<CodedForest::Block> scratch(static_cast<std::size_t>(n_threads));
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int worker) {
    interrupt.check();
    const std::size_t begin = task * block_rows, end = std::min(table.n_rows, begin + block_rows);
    table.touch(end - begin);
    body(Block(forest_, coded, table, begin, end, scratch[static_cast<std::size_t>(worker)]));
  });
}

// Few rows in one tree wait for memory; one row in many trees does not.
void ForestWalker::sum_few(const CodedForest& coded, const Table& table, std::size_t first, std::size_t last,
                           int n_threads, Interrupt& interrupt, double* out) const {
  const double estimated_ns = 100.0 * static_cast<double>(table.n_rows) * static_cast<double>(last - first);
  parallel_for_if_worth(estimated_ns, table.n_rows, n_threads, [&](std::size_t r, int) {
    interrupt.check();
    const auto value_of = [&](std::uint32_t f) { return value_at(table.columns[f], static_cast<Row>(r)); };
    const std::size_t width = forest_.nodes.value_width;
    coded.visit_one(first, last, value_of, [&](std::size_t, const double* value) {
      for (std::size_t j = 0; j < width; ++j) out[r * width + j] += value[j];
    });
  });
}

void ForestWalker::sum(const Table& table, std::size_t first, std::size_t last, std::span<const std::uint64_t> skip,
                       int n_threads, Interrupt& interrupt, double* out, std::uint32_t* n_used) const {
  const std::size_t width = forest_.nodes.value_width, words = (table.n_rows + 63) / 64;
  const CodedForest* coded = coded_for(table.n_rows * (last - first), n_threads, interrupt);
  if (coded != nullptr && skip.empty() && n_used == nullptr && table.n_rows <= walked_one_by_one)
    return sum_few(*coded, table, first, last, n_threads, interrupt, out);
  for_each_block(coded, table, last - first, n_threads, interrupt, [&](const Block& block) {
    std::vector<std::uint32_t> members(block.n), row(block.n + walk_slack), leaf(block.n + walk_slack);
    std::iota(members.begin(), members.end(), 0u);
    std::size_t n = block.n;
    for (std::size_t t = first; t < last; ++t) {
      if (!skip.empty()) {
        n = 0;
        for (std::uint32_t i = 0; i < block.n; ++i) {
          const std::size_t r = block.begin + i;
          if (!(skip[(t - first) * words + r / 64] >> (r % 64) & 1)) members[n++] = i;
        }
      }
      block.walk(t, std::span(members).first(n), Block::LeavesAre::numbers, row.data(), leaf.data());
      block.add(t, std::span(row).first(n), leaf.data(), out + block.begin * width);
      if (n_used != nullptr)
        for (std::size_t i = 0; i < n; ++i) ++n_used[block.begin + members[i]];
    }
  });
}

void ForestWalker::apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const {
  const std::size_t n_trees = forest_.n_trees();
  const CodedForest* coded = coded_for(table.n_rows * n_trees, n_threads, interrupt);
  for_each_block(coded, table, n_trees, n_threads, interrupt, [&](const Block& block) {
    std::vector<std::uint32_t> members(block.n), row(block.n + walk_slack), found(block.n + walk_slack);
    std::iota(members.begin(), members.end(), 0u);
    for (std::size_t t = 0; t < n_trees; ++t) {
      block.walk(t, members, Block::LeavesAre::nodes, row.data(), found.data());
      for (std::size_t i = 0; i < block.n; ++i) leaf[(block.begin + row[i]) * n_trees + t] = found[i];
    }
  });
}

void ForestWalker::sum_one(const double* row, double* out) const {
  const std::size_t width = forest_.nodes.value_width;
  visit_one(row, 0, forest_.n_trees(), [&](std::size_t, const double* value) {
    for (std::size_t j = 0; j < width; ++j) out[j] += value[j];
  });
}

}  // namespace spinney
