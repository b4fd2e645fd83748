#include "boost/vector_rows.h"

#include <algorithm>
#include <ranges>

#include "base/pool.h"
#include "boost/grower.h"

namespace spinney {

using VectorLeaf = GrowingNode<VectorSplit, std::vector<Sums>>;

static const std::vector<Sums>& left_sums(const VectorSplit& split) { return split.left_sums; }
static std::vector<Sums> difference(const std::vector<Sums>& a, const std::vector<Sums>& b) {
  std::vector<Sums> found;
  for (std::size_t k = 0; k < a.size(); ++k) found.push_back(difference(a[k], b[k]));
  return found;
}

namespace {

class VectorGrowingTree : public TreeGrowth<VectorLeaf> {
 public:
  using Terms = std::span<const ScoreTerms>;
  VectorGrowingTree(const Coding& coding, const BoostParams& params, std::uint64_t key, Terms scores)
      : TreeGrowth(coding, params, key), search_(coding, params, scores) {}

  const VectorSearch& search() const { return search_; }
  std::vector<std::vector<Sums>>& sums() { return sums_; }  // by node of the assembled tree, then by score

 protected:
  ~VectorGrowingTree() = default;
  void bound(const Leaf&, Leaf&, Leaf&) const {}  // splits that violate a monotonic constraint are never found
  void describe(NodeRecord& node, BoostedTree& grown, std::size_t at) override {
    grown.tree.weight[at] = static_cast<double>(node.n);
    grown.tree.n_rows[at] = node.n;
    sums_.push_back(std::move(node.sums));
    if (node.left == 0) return;
    set_split(grown.tree, at, coding_, node.split, node.left_heavier);
    grown.cut[at] = node.split.cut;
  }

 private:
  const VectorSearch search_;
  std::vector<std::vector<Sums>> sums_;
};

void consider(VectorSplit& best, VectorSplit split) {
  if (split.gain > best.gain || (split.gain == best.gain && split.gain > 0 && split.feature < best.feature))
    best = std::move(split);
}

class VectorRows {
 public:
  using Growth = VectorGrowingTree;
  using Leaf = VectorLeaf;
  static constexpr bool takes_given_splits = false;

  VectorRows(const VectorGrowingTree& tree, VectorMemory& memory, std::span<const ScoreTerms> scores,
             std::vector<Row>& rows, int n_threads, Interrupt& interrupt)
      : tree_(tree), memory_(memory), scores_(scores), rows_(rows), n_threads_(n_threads), interrupt_(interrupt) {
    memory.table.tiles.find_in_use(tree.columns().of_tree(), tiles_, lanes_);
  }

  std::size_t n_rows() const { return rows_.size(); }

  void init_root(Leaf& root) {
    const ThreadTeam team{n_threads_, 0};
    root.histogram = memory_.pool.take(0);
    fill(root, nullptr, team);
    root.sums.resize(scores_.size());
    for (std::size_t k = 0; k < scores_.size(); ++k)
      for (const Row r : rows_) {
        root.sums[k].gradient += gradient_of(scores_[k].pairs[r]);
        root.sums[k].hessian += hessian_of(scores_[k].pairs[r]);
      }
    root.best = search(root, false, team);
  }

  void partition(std::span<LeafSplit<Leaf>> splits, ThreadTeam team) {
    partition_leaves(memory_.partitioner, splits, rows_, team);
  }

  void histograms(std::span<LeafSplit<Leaf>> splits, ThreadTeam team) {
    for (LeafSplit<Leaf>& split : splits) {
      Leaf& leaf = *split.leaf;
      if (!split.left) {
        rejoin(leaf, split.n_left);
        split.recounted = search(leaf, true, team);
        continue;
      }
      Leaf &small = split.small(), &large = split.large();
      if (split.searches && (tree_.may_split(small) || tree_.may_split(large))) {
        small.histogram = memory_.pool.take(team.worker);
        large.histogram = std::move(leaf.histogram);
        fill(small, &large, team);
        small.best = search(small, false, team);
        large.best = search(large, false, team);
      }
      release(leaf, team.worker);
    }
  }

  void release(Leaf& leaf, int worker) { memory_.pool.give_back(std::move(leaf.histogram), worker); }
  void rejoin(Leaf& leaf, std::size_t n_left) { join_rows(rows_.data() + leaf.begin, n_left, leaf.n()); }

  std::size_t most_nodes() const { return 1; }
  bool may_take_one_thread(const Leaf&) const { return tiles_.size() < 4 * static_cast<std::size_t>(n_threads_); }
  double least_ns() const { return 4.0 * static_cast<double>(memory_.n_cells * scores_.size()); }
  double estimated_ns(const Leaf& leaf) const { return leaf.n() + fill_ns(leaf.n()) / 2 + 2 * least_ns(); }

 private:
  double fill_ns(std::size_t n) const {
    return static_cast<double>(n) * static_cast<double>(lanes_.size() * scores_.size()) / 2;
  }

  // Calls body(task, worker) on the threads of a team.
  template <class Body>
  void for_each_task(double ns, std::size_t n_tasks, ThreadTeam team, Body&& body) const {
    if (team.n_threads > 1) return parallel_for_if_worth(ns, n_tasks, team.n_threads, body);
    for (std::size_t task = 0; task < n_tasks; ++task) body(task, team.worker);
  }

  // Fills the histogram of a leaf and, unless `large` is null, subtracts it from that of the parent, which `large` has.
  void fill(const Leaf& leaf, const Leaf* large, ThreadTeam team) {
    const std::size_t n_tiles = tiles_.size(), n_scores = scores_.size();
    for_each_task(fill_ns(leaf.n()), n_tiles * n_scores, team,
                  [&](std::size_t task, int) { fill_tile(tiles_[task / n_scores], task % n_scores, leaf, large); });
    const ListedColumns& listed = memory_.table.tiles.listed();
    if (listed.empty()) return;
    const double ns = listed.n_entries(leaf.n()) * static_cast<double>(n_scores);
    for_each_task(ns, n_scores, team, [&](std::size_t k, int) {
      Packed* cells = listed_of(leaf, k);
      listed.clear(cells);
      listed.add_rows(scores_[k].pairs, rows_.data() + leaf.begin, leaf.n(), cells);
      if (large != nullptr) listed.subtract(0, listed.n_columns(), listed_of(*large, k), cells);
    });
  }

  void fill_tile(std::uint32_t tile, std::size_t k, const Leaf& leaf, const Leaf* large) const {
    const Tiles& tiles = memory_.table.tiles;
    Packed* cells = of_score(leaf, k);
    const auto [first, end] = tiles.cells_of_tile(tile);
    std::fill(cells + first, cells + end, Packed{0});
    constexpr std::size_t between_checks = 1 << 20;
    for (std::size_t begin = 0; begin < leaf.n(); begin += between_checks) {
      interrupt_.check();
      tiles.add_rows(tile, scores_[k].pairs, rows_.data() + leaf.begin + begin,
                     std::min<std::size_t>(between_checks, leaf.n() - begin), cells);
    }
    for (const std::uint32_t lane : tiles.lanes(tile)) {
      tiles.sum_up(lane, cells);
      if (large == nullptr) continue;
      for (const auto [from, to] : {tiles.cells_of_lane(lane), tiles.cells_of_columns(lane)})
        boost_kernels().subtract(of_score(*large, k) + from, cells + from, to - from);
    }
  }

  // `is_counted`: also check the number of rows on each side.
  VectorSplit search(const Leaf& leaf, bool is_counted, ThreadTeam team) {
    if (!tree_.may_split(leaf)) return {};
    const VectorTerms terms = tree_.search().terms(leaf.sums, leaf.n());
    const std::vector<std::uint8_t> in_use = tree_.columns_of(leaf);
    std::vector<std::uint32_t> columns;
    for (std::uint32_t f = 0; f < in_use.size(); ++f)
      if (in_use[f]) columns.push_back(f);
    std::vector<VectorSplit> found(static_cast<std::size_t>(n_threads_));
    const std::size_t n_tasks = std::min<std::size_t>(columns.size(), 4 * static_cast<std::size_t>(n_threads_));
    for_each_task(least_ns(), n_tasks, team, [&](std::size_t task, int worker) {
      for (std::size_t i = task * columns.size() / n_tasks; i < (task + 1) * columns.size() / n_tasks; ++i)
        consider(found[static_cast<std::size_t>(worker)], search_column(columns[i], leaf, terms, is_counted, worker));
    });
    VectorSplit best;
    for (VectorSplit& split : found) consider(best, std::move(split));
    return best;
  }

  VectorSplit search_column(std::uint32_t f, const Leaf& leaf, const VectorTerms& terms, bool is_counted, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    std::vector<const Packed*> cells(scores_.size());
    for (std::size_t k = 0; k < scores_.size(); ++k)
      cells[k] = memory_.table.tiles.has_lane(f)
                     ? memory_.table.tiles.cells(f, of_score(leaf, k), packed(terms.total[k]), memory_.cells[w][k])
                     : listed_cells(f, leaf, k, packed(terms.total[k]));
    std::vector<Row> counts(is_counted ? memory_.table.coding.columns[f].n_codes : 0, 0);
    for (std::size_t i = leaf.begin; is_counted && i < leaf.end; ++i)
      ++counts[memory_.table.codes.code(memory_.table.coding, f, rows_[i])];
    return tree_.search().search(f, cells, terms, is_counted ? counts.data() : nullptr, memory_.scratch[w]);
  }

  const Packed* listed_cells(std::uint32_t f, const Leaf& leaf, std::size_t k, Packed total) const {
    const ListedColumns& listed = memory_.table.tiles.listed();
    const auto places = std::views::iota(std::size_t{0}, listed.n_columns());
    const std::size_t at = *std::ranges::lower_bound(places, f, {}, [&](std::size_t i) { return listed.column(i); });
    const Packed* found = nullptr;
    listed.visit(at, at + 1, listed_of(leaf, k), total, -1.0,
                 [&](std::uint32_t, const Packed* cells) { found = cells; });
    return found;
  }

  Packed* of_score(const Leaf& leaf, std::size_t k) const { return leaf.histogram.get() + k * memory_.n_cells; }
  Packed* listed_of(const Leaf& leaf, std::size_t k) const { return of_score(leaf, k) + memory_.table.tiles.n_cells(); }

  const VectorGrowingTree& tree_;
  VectorMemory& memory_;
  const std::span<const ScoreTerms> scores_;
  std::vector<Row>& rows_;
  const int n_threads_;
  Interrupt& interrupt_;
  std::vector<std::uint32_t> tiles_, lanes_;  // in use
};

}  // namespace

VectorTree grow_vector_tree(VectorMemory& memory, const BoostParams& params, std::uint64_t key,
                            std::span<const ScoreTerms> scores, std::vector<Row>& rows, Interrupt& interrupt) {
  TreeGrower<VectorRows> grower(memory.table.coding, params, key, scores, memory.n_threads, interrupt, memory, scores,
                                rows);
  BoostedTree grown = grower.grow(memory.least_gain);
  memory.least_gain = grower.least_gain();
  return {std::move(grown), std::move(grower.sums())};
}

}  // namespace spinney
