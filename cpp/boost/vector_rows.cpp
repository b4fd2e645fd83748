#include "boost/vector_rows.h"

#include <algorithm>

#include "base/pool.h"
#include "boost/grower.h"

namespace spinney {

std::vector<Sums> difference(const std::vector<Sums>& a, const std::vector<Sums>& b) {
  std::vector<Sums> found;
  for (std::size_t k = 0; k < a.size(); ++k) found.push_back(difference(a[k], b[k]));
  return found;
}

void VectorGrowingTree::describe(NodeRecord& node, BoostedTree& grown, std::size_t at) {
  grown.tree.weight[at] = static_cast<double>(node.n);
  grown.tree.n_rows[at] = node.n;
  sums_.push_back(std::move(node.sums));
  if (node.left == 0) return;
  set_split(grown.tree, at, coding_, node.split, node.left_heavier);
  grown.cut[at] = node.split.cut;
}

VectorRows::VectorRows(const VectorGrowingTree& tree, VectorMemory& memory, std::span<const ScoreTerms> scores,
                       std::vector<Row>& rows, int n_threads, Interrupt& interrupt)
    : tree_(tree), memory_(memory), scores_(scores), rows_(rows), n_threads_(n_threads), interrupt_(interrupt) {
  memory.table.tiles.find_in_use(tree.columns().of_tree(), tiles_, lanes_);
}

// body(task, worker) by the threads of a crew.
template <class Body>
void VectorRows::for_each_task(double ns, std::size_t n_tasks, Crew crew, Body&& body) const {
  if (crew.n_threads > 1) return parallel_for_if_worth(ns, n_tasks, crew.n_threads, body);
  for (std::size_t task = 0; task < n_tasks; ++task) body(task, crew.worker);
}

void VectorRows::plant(Leaf& root) {
  const Crew crew{n_threads_, 0};
  root.histogram = memory_.pool.take(0);
  fill(root, nullptr, crew);
  root.sums.resize(scores_.size());
  for (std::size_t k = 0; k < scores_.size(); ++k)
    for (const Row r : rows_) {
      root.sums[k].gradient += gradient_of(scores_[k].pairs[r]);
      root.sums[k].hessian += hessian_of(scores_[k].pairs[r]);
    }
  root.best = search(root, false, crew);
}

void VectorRows::partition(std::span<LeafSplit<Leaf>> splits, Crew crew) {
  for (LeafSplit<Leaf>& split : splits) {
    const Leaf& leaf = *split.leaf;
    const int n_threads = leaf.n() < 4096 ? 1 : crew.n_threads;
    split.n_left = memory_.parter.part(leaf.best, rows_.data() + leaf.begin, leaf.n(), n_threads, crew.worker);
    split.child = 2 * split.n_left <= leaf.n() ? ChildHistogram::left : ChildHistogram::right;
  }
}

void VectorRows::histograms(std::span<LeafSplit<Leaf>> splits, Crew crew) {
  for (LeafSplit<Leaf>& split : splits) {
    Leaf& leaf = *split.leaf;
    if (!split.left) {
      rejoin(leaf, split.n_left);
      split.recounted = search(leaf, true, crew);
      continue;
    }
    Leaf &small = split.small(), &large = split.large();
    if (split.searches && (tree_.may_split(small) || tree_.may_split(large))) {
      small.histogram = memory_.pool.take(crew.worker);
      large.histogram = std::move(leaf.histogram);
      fill(small, &large, crew);
      small.best = search(small, false, crew);
      large.best = search(large, false, crew);
    }
    release(leaf, crew.worker);
  }
}

// Fills the histogram of a leaf and, unless `large` is null, takes it from that of its parent, which `large` has.
void VectorRows::fill(const Leaf& leaf, const Leaf* large, Crew crew) {
  const std::size_t n_tiles = tiles_.size(), n_scores = scores_.size();
  for_each_task(fill_ns(leaf.n()), n_tiles * n_scores, crew,
                [&](std::size_t task, int) { fill_tile(tiles_[task / n_scores], task % n_scores, leaf, large); });
  const ListedColumns& listed = memory_.table.tiles.listed();
  if (listed.empty()) return;
  const double ns = listed.n_entries(leaf.n()) * static_cast<double>(n_scores);
  for_each_task(ns, n_scores, crew, [&](std::size_t k, int) {
    Packed* cells = listed_of(leaf, k);
    listed.clear(cells);
    listed.add_rows(scores_[k].pairs, rows_.data() + leaf.begin, leaf.n(), cells);
    if (large != nullptr) listed.subtract(0, listed.n_columns(), listed_of(*large, k), cells);
  });
}

void VectorRows::fill_tile(std::uint32_t tile, std::size_t k, const Leaf& leaf, const Leaf* large) const {
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

static void consider(VectorSplit& best, VectorSplit split) {
  if (split.gain > best.gain || (split.gain == best.gain && split.gain > 0 && split.feature < best.feature))
    best = std::move(split);
}

// `is_counted`: the number of rows on a side is counted as well.
VectorSplit VectorRows::search(const Leaf& leaf, bool is_counted, Crew crew) {
  if (!tree_.may_split(leaf)) return {};
  const VectorTerms terms = tree_.search().terms(leaf.sums, leaf.n());
  const std::vector<std::uint8_t> in_use = tree_.columns_of(leaf);
  std::vector<std::uint32_t> columns;
  for (std::uint32_t f = 0; f < in_use.size(); ++f)
    if (in_use[f]) columns.push_back(f);
  std::vector<VectorSplit> found(static_cast<std::size_t>(n_threads_));
  const std::size_t n_tasks = std::min<std::size_t>(columns.size(), 4 * static_cast<std::size_t>(n_threads_));
  for_each_task(least_ns(), n_tasks, crew, [&](std::size_t task, int worker) {
    for (std::size_t i = task * columns.size() / n_tasks; i < (task + 1) * columns.size() / n_tasks; ++i)
      consider(found[static_cast<std::size_t>(worker)], search_column(columns[i], leaf, terms, is_counted, worker));
  });
  VectorSplit best;
  for (VectorSplit& split : found) consider(best, std::move(split));
  return best;
}

VectorSplit VectorRows::search_column(std::uint32_t f, const Leaf& leaf, const VectorTerms& terms, bool is_counted,
                                      int worker) {
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

const Packed* VectorRows::listed_cells(std::uint32_t f, const Leaf& leaf, std::size_t k, Packed total) const {
  const ListedColumns& listed = memory_.table.tiles.listed();
  std::size_t low = 0, high = listed.n_columns();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (listed.column(middle) < f)
      low = middle + 1;
    else
      high = middle;
  }
  const Packed* found = nullptr;
  listed.visit(low, low + 1, listed_of(leaf, k), total, -1.0,
               [&](std::uint32_t, const Packed* cells) { found = cells; });
  return found;
}

VectorTree grow_vector_tree(VectorMemory& memory, const BoostParams& params, std::uint64_t key,
                            std::span<const ScoreTerms> scores, std::vector<Row>& rows, Interrupt& interrupt) {
  TreeGrower<VectorRows> grower(memory.table.coding, params, key, scores, memory.n_threads, interrupt, memory, scores,
                                rows);
  BoostedTree grown = grower.grow();
  return {std::move(grown), std::move(grower.sums())};
}

}  // namespace spinney
