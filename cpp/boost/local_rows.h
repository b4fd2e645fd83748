// Rows in memory, or codes of them in a file, behind the calls of boost/rows.h; leaves have one value.
//
// Sums of packed pairs are whole numbers, so they are the same in any order: histograms are filled by many threads, and a
// child's is its parent's less its sibling's. Of codes that lie in a file all leaves of a batch are split in one pass over it:
// to read the file takes longer than to split some of them in vain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/coded_table.h"
#include "boost/growing.h"
#include "boost/histograms.h"
#include "boost/level.h"
#include "boost/part.h"
#include "boost/rows.h"
#include "boost/sweep.h"

namespace spinney {

// What trees use one after the other.
struct LocalMemory {
  LocalMemory(const CodedTable& coded, int threads)
      : table(coded),
        n_threads(threads),
        pool(coded.tiles.n_cells(), threads),
        listed_pool(coded.tiles.listed().n_cells(), threads),
        scratch(coded.tiles.n_cells(), threads),
        parter(coded.coding, coded.codes, threads),
        sweeper(coded.coding, coded.codes, coded.tiles, threads) {}

  const CodedTable& table;
  const int n_threads;
  HistogramPool pool, listed_pool;
  HistogramScratch scratch;
  RowParter parter;
  Sweeper sweeper;
};

class LocalRows {
 public:
  using Growth = GrowingTree;
  using Leaf = GrowingLeaf;
  static constexpr bool takes_given_splits = true;  // those of a level, and forced ones

  // `rows` are reordered leaf by leaf; `pairs` is by row of the table. `root` is the histogram of all rows, or null.
  LocalRows(const GrowingTree& tree, LocalMemory& memory, const BoostParams& params, std::vector<Row>& rows,
            const Packed* pairs, const Packed* root, int n_threads, Interrupt& interrupt);

  std::size_t n_rows() const { return rows_.size(); }
  void plant(Leaf& root);
  void partition(std::span<LeafSplit<Leaf>> splits, Crew crew);
  void histograms(std::span<LeafSplit<Leaf>> splits, Crew crew);

  void release(Leaf& leaf, int worker);
  void rejoin(Leaf& leaf, std::size_t n_left) { join_rows(rows_.data() + leaf.begin, n_left, leaf.n()); }

  std::size_t most_nodes() const { return sweeps_ ? memory_.sweeper.most_nodes() : 1; }
  bool may_take_one_thread(const Leaf& leaf) const {
    return !histograms_.shares_tiles(n_threads_) && !(leaf.listed && histograms_.shares_listed());
  }
  double least_ns() const { return histograms_.estimated_ns(0, 0); }
  double estimated_ns() const {
    return histograms_.estimated_ns(static_cast<double>(rows_.size()), static_cast<double>(rows_.size()));
  }
  // All rows are partitioned, those of the smaller child are added up.
  double estimated_ns(const Leaf& leaf) const {
    const auto all = static_cast<double>(leaf.sums.hessian), left = static_cast<double>(leaf.best.left.hessian);
    const double n_rows = leaf.n();
    return n_rows + histograms_.estimated_ns(n_rows, n_rows * std::min(left, all - left) / std::max(all, 1.0));
  }

  // The split of all nodes of a level; and that, or a forced one, as a node makes it.
  BoostSplit best_of_level(std::span<const Leaf* const> nodes, const std::vector<std::uint8_t>& columns) const;
  BoostSplit of_node(const BoostSplit& split, const Leaf& leaf) const;
  BoostSplit forced(const ForcedSplit& split, const Leaf& leaf) const;

 private:
  void sweep(std::span<SweptNode> nodes);
  void sweep_splits(std::span<LeafSplit<Leaf>> splits);
  void divide(LeafSplit<Leaf>& split, Crew crew);
  void divide_drawn(LeafSplit<Leaf>& split, int worker);
  void share_histograms(Leaf& leaf, Leaf& small, Leaf& large, int worker);
  BoostSplit best_counted(const Leaf& leaf, int worker);
  std::vector<Row> counted(const Leaf& leaf, std::uint32_t column) const;
  SearchedNode searched_node(const Leaf& leaf, bool searches) const;
  bool adds_drawn() const;
  bool is_worth_listed(const Leaf& leaf) const;

  const GrowingTree& tree_;
  LocalMemory& memory_;
  const BoostParams& params_;
  std::vector<Row>& rows_;
  const Packed* pairs_;
  const Packed* root_;
  const int n_threads_;
  Interrupt& interrupt_;
  const HistogramSearch histograms_;
  const LevelSearch level_;
  const bool sweeps_;
  const bool adds_drawn_;  // nodes add up the columns that they are searched on, and have no histograms
};

// Grows a tree on `rows`, ascending. `key` stands for (seed, round, class); see LocalRows for the others.
BoostedTree grow_boosted_tree(LocalMemory& memory, const BoostParams& params, std::uint64_t key, Units units,
                              std::vector<Row>& rows, const Packed* pairs, const Packed* root, Interrupt& interrupt);

}  // namespace spinney
