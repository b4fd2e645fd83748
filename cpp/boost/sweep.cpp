#include "boost/sweep.h"

#include <algorithm>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20, least_block = 1024, most_block = 65536;
constexpr std::size_t bytes_of_sums = std::size_t{1} << 26;  // of all workers
constexpr std::size_t least_nodes = 4;
constexpr std::size_t spare_bytes = 8;  // codes are read several at a time

}  // namespace

class Sweeper::Pass {
 public:
  Pass(Sweeper& home, std::span<SweptNode> nodes, const std::vector<std::uint32_t>& tiles_in_use, const Packed* pairs,
       RowPartitioner& partitioner, int n_threads, Interrupt& interrupt)
      : home_(home),
        nodes_(nodes),
        tiles_in_use_(tiles_in_use),
        pairs_(pairs),
        partitioner_(partitioner),
        n_threads_(n_threads),
        interrupt_(interrupt) {
    std::size_t row_bytes = 0;
    for (const std::uint32_t t : tiles_in_use) {
      tile_at_.push_back(row_bytes);
      row_bytes += home.tiles_.bytes_a_row(t);
    }
    block_rows_ = std::clamp(buffer_bytes / std::max<std::size_t>(1, row_bytes), least_block, most_block);
    n_blocks_ = (home.codes_.n_rows + block_rows_ - 1) / block_rows_;
    for (const SweptNode& node : nodes)
      if (node.split != nullptr) columns_.push_back(node.split->feature);
    std::sort(columns_.begin(), columns_.end());
    columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
    for (Buffer& mine : home.buffers_) {
      const std::size_t n_bytes = block_rows_ * row_bytes + spare_bytes;
      if (mine.tiles.size() < n_bytes) mine.tiles = LargeArray<std::uint8_t>(n_bytes);
      mine.columns.resize(std::max(mine.columns.size(), columns_.size() * column_bytes()));
      mine.block.assign(columns_.size(), 0);
      mine.used.assign(nodes.size(), 0);
    }
  }

  void run() {
    find_ends();
    parallel_for(n_blocks_, n_threads_, [&](std::size_t block, int worker) {
      interrupt_.check();
      sweep(block, home_.buffers_[static_cast<std::size_t>(worker)], worker);
    });
    add_up();
    join();
  }

 private:
  std::size_t column_bytes() const { return 2 * block_rows_ + spare_bytes; }
  std::span<std::size_t> ends(std::size_t j) { return std::span(ends_).subspan(j * n_blocks_, n_blocks_); }
  std::span<std::size_t> lefts(std::size_t j) { return std::span(lefts_).subspan(j * n_blocks_, n_blocks_); }

  void join() {
    std::vector<NodeRows> joined;
    std::vector<RowPartitioner::Chunk> chunks;
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      if (nodes_[j].split == nullptr) continue;
      for (std::size_t block = 0; block < n_blocks_; ++block)
        chunks.push_back({joined.size(), block == 0 ? 0 : ends(j)[block - 1], ends(j)[block], lefts(j)[block]});
      joined.push_back({.rows = nodes_[j].rows, .n = nodes_[j].n});
    }
    partitioner_.join(joined, chunks, n_threads_);
    std::size_t next = 0;
    for (SweptNode& node : nodes_)
      if (node.split != nullptr) node.n_left = joined[next++].n_left;
  }

  // Where the rows of a block end among those of a node, which are partitioned during the pass.
  void find_ends() {
    ends_.resize(nodes_.size() * n_blocks_);
    lefts_.assign(nodes_.size() * n_blocks_, 0);
    parallel_for_if_worth(200.0 * static_cast<double>(ends_.size()), nodes_.size(), n_threads_,
                          [&](std::size_t j, int) {
                            const Row *const first = nodes_[j].rows, *const last = first + nodes_[j].n, *at = first;
                            for (std::size_t block = 0; block < n_blocks_; ++block) {
                              at = std::lower_bound(at, std::min(last, at + block_rows_), (block + 1) * block_rows_);
                              ends(j)[block] = static_cast<std::size_t>(at - first);
                            }
                          });
  }

  void sweep(std::size_t block, Buffer& mine, int worker) {
    bool has_tiles = false;
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      SweptNode& node = nodes_[j];
      const std::size_t begin = block == 0 ? 0 : ends(j)[block - 1], n = ends(j)[block] - begin;
      if (n == 0) continue;
      Row* rows = node.rows + begin;
      std::size_t n_left = n;
      if (node.split != nullptr)
        lefts(j)[block] = n_left =
            partitioner_.partition_by(column(node.split->feature, block, mine), *node.split, rows, n, worker);
      const bool is_left = node.split == nullptr || node.child == ChildHistogram::left;
      if (!is_left && node.child == ChildHistogram::none) continue;
      const std::size_t n_added = is_left ? n_left : n - n_left;
      if (n_added == 0) continue;
      if (!has_tiles) read_tiles(block, mine);
      has_tiles = true;
      add(j, is_left ? rows : rows + n_left, n_added, block, mine);
    }
  }

  std::size_t end_of(std::size_t block) const { return std::min(home_.codes_.n_rows, (block + 1) * block_rows_); }

  void read_tiles(std::size_t block, Buffer& mine) {
    const std::size_t begin = block * block_rows_, next = block + static_cast<std::size_t>(n_threads_);
    for (std::size_t i = 0; i < tiles_in_use_.size(); ++i) {
      const std::uint32_t t = tiles_in_use_[i];
      if (next < n_blocks_) home_.tiles_.fetch_ahead(t, next * block_rows_, end_of(next));
      home_.tiles_.read(t, begin, end_of(block), mine.tiles.data() + tile_at_[i] * block_rows_);
    }
  }

  // The codes of a column, addressed from row 0.
  const std::uint8_t* column(std::uint32_t f, std::size_t block, Buffer& mine) {
    const auto i = static_cast<std::size_t>(std::lower_bound(columns_.begin(), columns_.end(), f) - columns_.begin());
    const std::size_t width = home_.coding_.columns[f].is_wide ? 2 : 1, begin = block * block_rows_;
    std::uint8_t* to = mine.columns.data() + i * column_bytes();
    if (mine.block[i] != block + 1)
      home_.codes_.bytes.read(home_.codes_.first[f] + begin * width, (end_of(block) - begin) * width, to);
    mine.block[i] = block + 1;
    return from_row_0(to, begin * width);
  }

  void add(std::size_t j, const Row* rows, std::size_t n, std::size_t block, Buffer& mine) {
    const std::size_t n_cells = home_.tiles_.n_cells();
    if (!mine.used[j]) {
      if (mine.sums.size() < nodes_.size() * n_cells) mine.sums.resize(nodes_.size() * n_cells);
      std::fill_n(mine.sums.data() + j * n_cells, n_cells, 0);
      mine.used[j] = 1;
    }
    for (std::size_t i = 0; i < tiles_in_use_.size(); ++i)
      home_.tiles_.add_rows(tiles_in_use_[i], mine.tiles.data() + tile_at_[i] * block_rows_, block * block_rows_,
                            pairs_, rows, n, mine.sums.data() + j * n_cells);
  }

  void add_up() {
    const std::size_t n_cells = home_.tiles_.n_cells();
    const double estimated_ns = 0.5 * static_cast<double>(nodes_.size() * n_cells * home_.buffers_.size());
    parallel_for_if_worth(estimated_ns, nodes_.size(), n_threads_, [&](std::size_t j, int) {
      if (nodes_[j].histogram == nullptr) return;
      std::fill_n(nodes_[j].histogram, n_cells, 0);
      for (const Buffer& some : home_.buffers_)
        for (std::size_t i = 0; some.used[j] && i < n_cells; ++i) nodes_[j].histogram[i] += some.sums[j * n_cells + i];
    });
  }

  Sweeper& home_;
  const std::span<SweptNode> nodes_;
  const std::vector<std::uint32_t>& tiles_in_use_;
  const Packed* pairs_;
  RowPartitioner& partitioner_;
  const int n_threads_;
  Interrupt& interrupt_;
  std::vector<std::size_t> tile_at_;    // offset in a row's bytes, by tile in use
  std::vector<std::uint32_t> columns_;  // columns that nodes are split on, ascending
  std::size_t block_rows_ = 0, n_blocks_ = 0;
  std::vector<std::size_t> ends_, lefts_;  // by node and block
};

std::size_t Sweeper::most_nodes() const {
  const std::size_t bytes = sizeof(Packed) * std::max<std::size_t>(1, tiles_.n_cells()) * buffers_.size();
  return std::max(least_nodes, bytes_of_sums / bytes);
}

void Sweeper::sweep(std::span<SweptNode> nodes, const std::vector<std::uint32_t>& tiles_in_use, const Packed* pairs,
                    RowPartitioner& partitioner, int n_threads, Interrupt& interrupt) {
  Pass(*this, nodes, tiles_in_use, pairs, partitioner, n_threads, interrupt).run();
}

}  // namespace spinney
