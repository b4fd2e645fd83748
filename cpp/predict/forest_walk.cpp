#include "predict/forest_walk.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

void ForestWalker::prepare(int n_threads, Interrupt& interrupt) const {
  std::call_once(once_, [&] {
    coded_.emplace(forest_, n_threads, interrupt);
    if (coded_->is_usable()) ready_.store(&*coded_, std::memory_order_release);
  });
}

// Coding a node costs about as much as two walks down a tree save.
const CodedForest* ForestWalker::coded_for(std::size_t n_walks, int n_threads, Interrupt& interrupt) const {
  if (n_walks_.fetch_add(n_walks, std::memory_order_relaxed) + n_walks >= forest_.nodes.size() / 2)
    prepare(n_threads, interrupt);
  return ready_.load(std::memory_order_acquire);
}

// Some rows, coded or as numbers side by side, or neither if the columns are many.
class ForestWalker::Block {
 public:
  Block(const Forest& forest, const CodedForest* coded, const Table& table, std::size_t begin, std::size_t end)
      : begin(begin), n(end - begin), forest_(forest), coded_(coded), table_(table) {
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

  // leaf[i] = where row members[i] of the block comes to rest in tree t, counted within the tree.
  void walk(std::size_t t, std::span<const std::uint32_t> members, std::uint32_t* leaf) const {
    if (coded_ != nullptr) return coded_->walk(codes_, t, members, leaf);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double* row = values_.data() + members[i] * table_.n_columns();
      const auto r = static_cast<Row>(begin + members[i]);
      const auto value = [&](std::uint32_t f) { return values_.empty() ? value_at(table_.columns[f], r) : row[f]; };
      std::uint32_t at = forest_.root[t];
      while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, value);
      leaf[i] = at - forest_.root[t];
    }
  }

  const double* value(std::size_t t, std::uint32_t leaf) const {
    if (coded_ != nullptr) return coded_->value(t, leaf);
    return forest_.nodes.value_of(forest_.root[t] + leaf).data();
  }

  const std::size_t begin, n;

 private:
  const Forest& forest_;
  const CodedForest* coded_;
  const Table& table_;
  CodedForest::Block codes_;
  std::vector<double> values_;
};

// Blocks are large enough for a tree to be read once for many rows, and small enough for them to stay in cache.
template <class Body>
void ForestWalker::for_each_block(const Table& table, std::size_t n_trees, int n_threads, Interrupt& interrupt,
                                  Body&& body) const {
  constexpr std::size_t block_words = std::size_t{1} << 17, least = 64, most = 4096;
  const CodedForest* coded = coded_for(table.n_rows * n_trees, n_threads, interrupt);
  const std::size_t width = coded != nullptr ? coded->width() : 2 * table.n_columns() + 1;
  const std::size_t share = table.n_rows / (2 * static_cast<std::size_t>(n_threads)) + 1;
  const std::size_t block_rows = std::clamp(std::min(block_words / width, share), least, most);
  const std::size_t n_tasks = (table.n_rows + block_rows - 1) / block_rows;
  const double estimated_ns = 30.0 * static_cast<double>(table.n_rows) * static_cast<double>(n_trees);
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t begin = task * block_rows;
    body(Block(forest_, coded, table, begin, std::min(table.n_rows, begin + block_rows)));
  });
}

void ForestWalker::sum(const Table& table, std::size_t first, std::size_t last, std::span<const std::uint64_t> skip,
                       int n_threads, Interrupt& interrupt, double* out, std::uint32_t* n_used) const {
  const std::size_t width = forest_.nodes.value_width, words = (table.n_rows + 63) / 64;
  for_each_block(table, last - first, n_threads, interrupt, [&](const Block& block) {
    std::vector<std::uint32_t> members(block.n), leaf(block.n);
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
      block.walk(t, std::span(members).first(n), leaf.data());
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t r = block.begin + members[k];
        const double* value = block.value(t, leaf[k]);
        for (std::size_t j = 0; j < width; ++j) out[r * width + j] += value[j];
        if (n_used != nullptr) ++n_used[r];
      }
    }
  });
}

void ForestWalker::apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const {
  const std::size_t n_trees = forest_.n_trees();
  for_each_block(table, n_trees, n_threads, interrupt, [&](const Block& block) {
    std::vector<std::uint32_t> members(block.n), found(block.n);
    std::iota(members.begin(), members.end(), 0u);
    for (std::size_t t = 0; t < n_trees; ++t) {
      block.walk(t, members, found.data());
      for (std::size_t i = 0; i < block.n; ++i) leaf[(block.begin + i) * n_trees + t] = found[i];
    }
  });
}

void ForestWalker::sum_one(const double* row, double* out) const {
  if (const CodedForest* coded = ready_.load(std::memory_order_acquire)) return coded->sum_one(row, out);
  for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
    std::uint32_t at = forest_.root[t];
    while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, [&](std::uint32_t f) { return row[f]; });
    const std::span<const double> value = forest_.nodes.value_of(at);
    for (std::size_t j = 0; j < value.size(); ++j) out[j] += value[j];
  }
}

}  // namespace spinney
