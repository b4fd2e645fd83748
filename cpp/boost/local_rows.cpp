#include "boost/local_rows.h"

#include <algorithm>

#include "base/pool.h"
#include "boost/forced.h"
#include "boost/grower.h"
#include "boost/level.h"

namespace spinney {

namespace {

class LocalRows {
 public:
  using Growth = GrowingTree;
  using Leaf = GrowingLeaf;
  static constexpr bool takes_given_splits = true;  // those of a symmetric level, and forced splits

  LocalRows(const GrowingTree& tree, LocalMemory& memory, const BoostParams& params, std::vector<Row>& rows,
            const Packed* pairs, const Packed* root, int n_threads, Interrupt& interrupt)
      : tree_(tree),
        memory_(memory),
        params_(params),
        rows_(rows),
        pairs_(pairs),
        root_(root),
        n_threads_(n_threads),
        interrupt_(interrupt),
        histograms_(memory.table.tiles, tree.search(), tree.columns().of_tree(), pairs, memory.scratch, interrupt),
        level_(memory.table.coding, memory.table.tiles, params, tree.units(), tree.search()),
        sweeps_(memory.table.codes.spill != nullptr && memory.table.tiles.listed().empty() && !params.symmetric &&
                params.forced_splits.empty()),
        adds_drawn_(adds_drawn()) {}

  std::size_t n_rows() const { return rows_.size(); }

  void init_root(Leaf& root) {
    if (!adds_drawn_) root.histogram = memory_.pool.take(0);
    if (!adds_drawn_ && is_worth_listed(root)) root.listed = memory_.listed_pool.take(0);
    SearchedNode searched = searched_node(root, tree_.may_split(root));
    const Packed* known = root_;
    if (sweeps_ && known == nullptr) {
      SweptNode swept{.rows = rows_.data(), .n = rows_.size(), .histogram = root.histogram.get()};
      sweep({&swept, 1});
      known = root.histogram.get();
    }
    if (adds_drawn_)
      histograms_.init_drawn_root(searched);
    else
      histograms_.init_root(searched, known, estimated_ns() < worth_a_wake_up_ns ? 1 : n_threads_);
    root.sums = searched.terms.total;
    root.best = std::move(searched.best);
  }

  void release(Leaf& leaf, int worker) {
    memory_.pool.give_back(std::move(leaf.histogram), worker);
    memory_.listed_pool.give_back(std::move(leaf.listed), worker);
  }

  void partition(std::span<LeafSplit<Leaf>> splits, ThreadTeam team) {
    if (sweeps_) return sweep_splits(splits);
    partition_leaves(memory_.partitioner, splits, rows_, team);
  }

  void histograms(std::span<LeafSplit<Leaf>> splits, ThreadTeam team) {
    std::vector<LeafSplit<Leaf>*> divided;
    for (LeafSplit<Leaf>& split : splits) {
      if (!split.left)
        recount(split, team.worker);
      else if (adds_drawn_)
        divide_drawn(split, team.worker);
      else if (is_divided(split, team.worker))
        divided.push_back(&split);
    }
    if (!divided.empty()) divide(divided, team);
  }

  BoostSplit best_of_level(std::span<const Leaf* const> nodes, const std::vector<std::uint8_t>& columns) const {
    std::vector<LevelNode> level;
    for (const Leaf* leaf : nodes) level.push_back({leaf->histogram.get(), tree_.terms_of(*leaf)});
    return level_.best(level, columns, n_threads_);
  }

  BoostSplit of_node(const BoostSplit& split, const Leaf& leaf) const {
    return level_.of_node(split, {leaf.histogram.get(), tree_.terms_of(leaf)});
  }

  BoostSplit forced(const ForcedSplit& split, const Leaf& leaf) const {
    return forced_split(split, memory_.table.coding, memory_.table.codes,
                        std::span(rows_).subspan(leaf.begin, leaf.n()), pairs_, tree_.search(), tree_.units(),
                        leaf.bounds);
  }

  void rejoin(Leaf& leaf, std::size_t n_left) { join_rows(rows_.data() + leaf.begin, n_left, leaf.n()); }

  std::size_t most_nodes() const { return sweeps_ ? memory_.sweeper.most_nodes() : 1; }
  bool may_take_one_thread(const Leaf& leaf) const {
    return !histograms_.splits_tile_work(n_threads_) && !(leaf.listed && histograms_.splits_listed_work());
  }
  double estimated_ns() const {
    return histograms_.estimated_ns(static_cast<double>(rows_.size()), static_cast<double>(rows_.size()));
  }
  // Partitions all rows and sums those of the smaller child.
  double estimated_ns(const Leaf& leaf) const {
    const auto all = static_cast<double>(leaf.sums.hessian), left = static_cast<double>(leaf.best.left.hessian);
    const double n_rows = leaf.n();
    return n_rows + histograms_.estimated_ns(n_rows, n_rows * std::min(left, all - left) / std::max(all, 1.0));
  }

 private:
  // One thread sums the considered columns of each node.
  bool adds_drawn() const {
    if (root_ != nullptr || params_.symmetric || !params_.forced_splits.empty() || memory_.table.codes.spill != nullptr)
      return false;
    const bool is_for_one = n_threads_ == 1 || estimated_ns() < worth_a_wake_up_ns;
    return is_for_one && histograms_.are_few(rows_.size(), params_.max_features_per_level * params_.max_features);
  }

  SearchedNode searched_node(const Leaf& leaf, bool searches) const {
    SearchedNode node{.histogram = leaf.histogram.get(),
                      .listed = leaf.listed.get(),
                      .rows = rows_.data() + leaf.begin,
                      .terms = tree_.terms_of(leaf)};
    if (searches && params_.symmetric)
      node.columns.assign(memory_.table.coding.columns.size(), 0);  // the level is searched as a whole
    else if (searches)
      node.columns = tree_.columns_of(leaf);
    return node;
  }

  bool is_worth_listed(const Leaf& leaf) const {
    const ListedColumns& listed = memory_.table.tiles.listed();
    return !listed.empty() && listed.is_worth_cells(leaf.n());
  }

  void sweep(std::span<SweptNode> nodes) {
    memory_.sweeper.sweep(nodes, histograms_.tiles_in_use(), pairs_, memory_.partitioner, n_threads_, interrupt_);
  }

  // Sums the child with the smaller hessian, which usually has fewer rows.
  void sweep_splits(std::span<LeafSplit<Leaf>> splits) {
    std::vector<SweptNode> nodes;
    for (LeafSplit<Leaf>& split : splits) {
      const Leaf& leaf = *split.leaf;
      split.searches &= leaf.depth + 1 < params_.max_depth;
      split.child = 2 * leaf.best.left.hessian <= leaf.sums.hessian ? ChildHistogram::left : ChildHistogram::right;
      if (split.searches) split.filled = memory_.pool.take(0);
      nodes.push_back({.rows = rows_.data() + leaf.begin,
                       .n = leaf.n(),
                       .split = &leaf.best,
                       .child = split.searches ? split.child : ChildHistogram::none,
                       .histogram = split.filled.get()});
    }
    sweep(nodes);
    for (std::size_t i = 0; i < splits.size(); ++i) splits[i].n_left = nodes[i].n_left;
  }

  void divide_drawn(LeafSplit<Leaf>& split, int worker) {
    for (Leaf* child : {&split.small(), &split.large()}) {
      if (!split.searches || !tree_.may_split(*child)) continue;
      SearchedNode searched = searched_node(*child, true);
      histograms_.search_drawn(searched, worker);
      child->best = std::move(searched.best);
    }
  }

  void recount(LeafSplit<Leaf>& split, int worker) {
    memory_.pool.give_back(std::move(split.filled), worker);
    rejoin(*split.leaf, split.n_left);
    if (!params_.symmetric) split.recounted = best_counted(*split.leaf, worker);
  }

  // Returns whether a child may be split; if so, the children get the histograms.
  bool is_divided(LeafSplit<Leaf>& split, int worker) {
    Leaf &leaf = *split.leaf, &small = split.small(), &large = split.large();
    small.histogram = std::move(split.filled);
    if (!split.searches || (!tree_.may_split(small) && !tree_.may_split(large))) {
      for (Leaf* one : {&leaf, &small}) release(*one, worker);
      return false;
    }
    share_histograms(leaf, small, large, worker);
    return true;
  }

  void divide(std::span<LeafSplit<Leaf>* const> splits, ThreadTeam team) {
    std::vector<DividedNode> nodes;
    for (const LeafSplit<Leaf>* split : splits) {
      const Leaf &small = split->small(), &large = split->large();
      nodes.push_back(
          {searched_node(small, tree_.may_split(small)), searched_node(large, tree_.may_split(large)), sweeps_});
    }
    if (team.n_threads == 1)
      for (DividedNode& node : nodes) histograms_.divide(node, team.worker);
    else
      histograms_.divide(nodes, team.n_threads);
    for (std::size_t i = 0; i < splits.size(); ++i) {
      splits[i]->small().best = std::move(nodes[i].small.best);
      splits[i]->large().best = std::move(nodes[i].large.best);
    }
  }

  // The larger child takes over the histograms of its parent.
  void share_histograms(Leaf& leaf, Leaf& small, Leaf& large, int worker) {
    if (!small.histogram) small.histogram = memory_.pool.take(worker);
    large.histogram = std::move(leaf.histogram);
    if (!leaf.listed || !is_worth_listed(large)) return memory_.listed_pool.give_back(std::move(leaf.listed), worker);
    large.listed = std::move(leaf.listed);
    if (tree_.may_split(small) && is_worth_listed(small)) small.listed = memory_.listed_pool.take(worker);
  }

  // The hessian had indicated more rows than there are. Columns are counted until the best split is on a counted
  // column: that needs few columns, where counting all would take as long as the histogram.
  BoostSplit best_counted(const Leaf& leaf, int worker) {
    std::vector<std::vector<Row>> counts(memory_.table.coding.columns.size());
    SearchedNode node = searched_node(leaf, true);
    if (adds_drawn_) histograms_.fill_drawn(node, worker);
    for (std::uint32_t to_count = leaf.best.feature;;) {
      counts[to_count] = counted(leaf, to_count);
      node.best = {};
      histograms_.search_counted(node, counts, worker);
      if (!(node.best.gain > 0) || !counts[node.best.feature].empty()) return std::move(node.best);
      to_count = node.best.feature;
    }
  }

  std::vector<Row> counted(const Leaf& leaf, std::uint32_t f) const {
    std::vector<Row> counts(memory_.table.coding.columns[f].n_codes, 0);
    memory_.table.codes.touch(std::span(rows_).subspan(leaf.begin, leaf.n()));
    for (std::size_t i = leaf.begin; i < leaf.end; ++i)
      ++counts[memory_.table.codes.code(memory_.table.coding, f, rows_[i])];
    return counts;
  }

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
  const bool adds_drawn_;  // nodes sum only the columns they are searched on, and have no histograms
};

}  // namespace

BoostedTree grow_boosted_tree(LocalMemory& memory, const BoostParams& params, std::uint64_t key, Units units,
                              std::vector<Row>& rows, const Packed* pairs, const Packed* root, Interrupt& interrupt) {
  TreeGrower<LocalRows> grower(memory.table.coding, params, key, units, memory.n_threads, interrupt, memory, params,
                               rows, pairs, root);
  BoostedTree grown = grower.grow(memory.least_gain);
  memory.least_gain = grower.least_gain();
  return grown;
}

}  // namespace spinney
