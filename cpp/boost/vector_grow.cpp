#include "boost/vector_grow.h"

#include <algorithm>
#include <memory>

#include "base/pool.h"
#include "boost/growing.h"

namespace spinney {

using VectorLeaf = GrowingNode<VectorSplit, std::vector<Sums>>;

static const std::vector<Sums>& left_sums(const VectorSplit& split) { return split.left_sums; }
static std::vector<Sums> difference(const std::vector<Sums>& a, const std::vector<Sums>& b) {
  std::vector<Sums> found;
  for (std::size_t k = 0; k < a.size(); ++k) found.push_back(difference(a[k], b[k]));
  return found;
}

class VectorGrower::Growing final : private TreeGrowth<VectorLeaf> {
 public:
  Growing(VectorGrower& home, std::vector<Row>& rows, std::span<const ScoreTerms> scores, const BoostParams& params,
          std::uint64_t key, Interrupt& interrupt)
      : TreeGrowth(home.coding_, params, key),
        home_(home),
        rows_(rows),
        scores_(scores),
        interrupt_(interrupt),
        n_threads_(detail::inside_task ? 1 : home.n_threads_),
        search_(home.coding_, params, scores) {
    const auto& in_use = columns_.of_tree();
    for (std::uint32_t t = 0; t < home.tiles_.n_tiles(); ++t) {
      const std::size_t n = lanes_.size();
      for (const std::uint32_t l : home.tiles_.lanes(t)) {
        const auto columns = home.tiles_.columns(l);
        if (std::any_of(columns.begin(), columns.end(), [&](std::uint32_t f) { return in_use[f]; }))
          lanes_.push_back(l);
      }
      if (lanes_.size() > n) tiles_.push_back(t);
    }
  }

  VectorTree grow() {
    push(plant());
    for (commit_splits(); !is_done(); commit_splits()) {
      interrupt_.check();
      Leaf& next = *heap_.front();
      settle(next, split(next, n_to_come() > 1));
    }
    for (auto& leaf : heap_) finish(*leaf);
    BoostedTree grown = assemble();
    return {std::move(grown), std::move(sums_)};
  }

 private:
  void let_go(Leaf& leaf) override { home_.pool_.give_back(std::move(leaf.histogram), 0); }
  void rejoin(Leaf& leaf) override { join(leaf, leaf.left->n()); }

  void join(const Leaf& leaf, std::size_t n_left) {
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(leaf.begin);
    std::inplace_merge(first, first + static_cast<std::ptrdiff_t>(n_left), first + leaf.n());
  }

  void describe(NodeRecord& node, BoostedTree& grown, std::size_t at) override {
    grown.tree.weight[at] = static_cast<double>(node.n);
    grown.tree.n_rows[at] = node.n;
    sums_.push_back(std::move(node.sums));
    if (node.left == 0) return;
    set_split(grown.tree, at, coding_, node.split, node.left_heavier);
    grown.cut[at] = node.split.cut;
  }

  // ---- histograms ------------------------------------------------------------------------------------

  Packed* of_score(const Leaf& leaf, std::size_t k) const { return leaf.histogram.get() + k * home_.n_cells_; }
  Packed* listed_of(const Leaf& leaf, std::size_t k) const { return of_score(leaf, k) + home_.tiles_.n_cells(); }

  // Fills the histogram of a leaf and, unless `large` is null, takes it from that of its parent, which `large` has.
  void fill(const Leaf& leaf, const Leaf* large) {
    const std::size_t n_tiles = tiles_.size(), n_scores = scores_.size();
    const double ns = static_cast<double>(leaf.n()) * static_cast<double>(lanes_.size() * n_scores) / 2;
    parallel_for_if_worth(ns, n_tiles * n_scores, n_threads_, [&](std::size_t task, int) {
      fill_tile(tiles_[task / n_scores], task % n_scores, leaf, large);
    });
    const ListedColumns& listed = home_.tiles_.listed();
    if (listed.empty()) return;
    parallel_for_if_worth(listed.n_entries(leaf.n()) * static_cast<double>(n_scores), n_scores, n_threads_,
                          [&](std::size_t k, int) {
                            Packed* cells = listed_of(leaf, k);
                            listed.clear(cells);
                            listed.add_rows(scores_[k].pairs, rows_.data() + leaf.begin, leaf.n(), cells);
                            if (large != nullptr) listed.subtract(0, listed.n_columns(), listed_of(*large, k), cells);
                          });
  }

  void fill_tile(std::uint32_t tile, std::size_t k, const Leaf& leaf, const Leaf* large) const {
    const Tiles& tiles = home_.tiles_;
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

  // ---- the best split of a leaf ------------------------------------------------------------------------

  // `is_counted`: sides are judged by their number of rows as well.
  VectorSplit search(const Leaf& leaf, bool is_counted) {
    if (!may_split(leaf)) return {};
    const VectorTerms terms = search_.terms(leaf.sums, leaf.n());
    const std::vector<std::uint8_t> in_use = columns_.of_node(leaf.depth, leaf.path, leaf.groups);
    std::vector<std::uint32_t> columns;
    for (std::uint32_t f = 0; f < in_use.size(); ++f)
      if (in_use[f]) columns.push_back(f);
    std::vector<VectorSplit> found(static_cast<std::size_t>(n_threads_));
    const double ns = 4.0 * static_cast<double>(home_.n_cells_ * scores_.size());
    const std::size_t n_tasks = std::min<std::size_t>(columns.size(), 4 * static_cast<std::size_t>(n_threads_));
    parallel_for_if_worth(ns, n_tasks, n_threads_, [&](std::size_t task, int worker) {
      for (std::size_t i = task * columns.size() / n_tasks; i < (task + 1) * columns.size() / n_tasks; ++i)
        consider(found[static_cast<std::size_t>(worker)], search_column(columns[i], leaf, terms, is_counted, worker));
    });
    VectorSplit best;
    for (VectorSplit& split : found) consider(best, std::move(split));
    return best;
  }

  static void consider(VectorSplit& best, VectorSplit split) {
    if (split.gain > best.gain || (split.gain == best.gain && split.gain > 0 && split.feature < best.feature))
      best = std::move(split);
  }

  VectorSplit search_column(std::uint32_t f, const Leaf& leaf, const VectorTerms& terms, bool is_counted, int worker) {
    const auto w = static_cast<std::size_t>(worker);
    std::vector<const Packed*> cells(scores_.size());
    for (std::size_t k = 0; k < scores_.size(); ++k)
      cells[k] = home_.tiles_.has_lane(f)
                     ? home_.tiles_.cells(f, of_score(leaf, k), packed(terms.total[k]), home_.rooms_[w][k])
                     : listed_cells(f, leaf, k, packed(terms.total[k]));
    std::vector<Row> counts(is_counted ? home_.coding_.columns[f].n_codes : 0, 0);
    for (std::size_t i = leaf.begin; is_counted && i < leaf.end; ++i)
      ++counts[home_.codes_.code(home_.coding_, f, rows_[i])];
    return search_.search(f, cells, terms, is_counted ? counts.data() : nullptr, home_.scratch_[w]);
  }

  const Packed* listed_cells(std::uint32_t f, const Leaf& leaf, std::size_t k, Packed total) const {
    const ListedColumns& listed = home_.tiles_.listed();
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

  // ---- splitting -------------------------------------------------------------------------------------

  std::unique_ptr<Leaf> plant() {
    auto root = make_root(rows_.size());
    root->histogram = home_.pool_.take(0);
    fill(*root, nullptr);
    root->sums.resize(scores_.size());
    for (std::size_t k = 0; k < scores_.size(); ++k)
      for (const Row r : rows_) {
        root->sums[k].gradient += gradient_of(scores_[k].pairs[r]);
        root->sums[k].hessian += hessian_of(scores_[k].pairs[r]);
      }
    root->best = search(*root, false);
    return root;
  }

  // Carries out the best split of a leaf; or finds that it has too few rows on a side, and looks for another. `searches`: the
  // children may have to be split in turn.
  Outcome split(Leaf& leaf, bool searches) {
    const std::size_t n_left =
        home_.parter_.part(leaf.best, rows_.data() + leaf.begin, leaf.n(), leaf.n() < 4096 ? 1 : n_threads_, 0);
    if (has_too_few(leaf, n_left)) {
      join(leaf, n_left);
      return {nullptr, nullptr, search(leaf, true)};
    }
    Outcome outcome{make_child(leaf, true, n_left), make_child(leaf, false, n_left), {}};
    const bool left_small = n_left * 2 <= leaf.n();
    Leaf &small = left_small ? *outcome.left : *outcome.right, &large = left_small ? *outcome.right : *outcome.left;
    if (searches && (may_split(small) || may_split(large))) {
      small.histogram = home_.pool_.take(0);
      large.histogram = std::move(leaf.histogram);
      fill(small, &large);
      small.best = search(small, false);
      large.best = search(large, false);
    }
    home_.pool_.give_back(std::move(leaf.histogram), 0);
    return outcome;
  }

  VectorGrower& home_;
  std::vector<Row>& rows_;
  const std::span<const ScoreTerms> scores_;
  Interrupt& interrupt_;
  const int n_threads_;
  const VectorSearch search_;
  std::vector<std::uint32_t> tiles_, lanes_;  // in use
  std::vector<std::vector<Sums>> sums_;       // by node of the finished tree, then by score
};

VectorGrower::VectorGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, std::size_t n_scores,
                           int n_threads)
    : coding_(coding),
      codes_(codes),
      tiles_(tiles),
      n_cells_(tiles.n_cells() + (tiles.listed().empty() ? 0 : tiles.listed().n_cells())),
      n_threads_(n_threads),
      pool_(n_cells_ * n_scores, n_threads),
      parter_(coding, codes, n_threads),
      scratch_(static_cast<std::size_t>(n_threads)),
      rooms_(static_cast<std::size_t>(n_threads), std::vector<std::vector<Packed>>(n_scores)) {}

VectorTree VectorGrower::grow(std::vector<Row>& rows, std::span<const ScoreTerms> scores, const BoostParams& params,
                              std::uint64_t key, Interrupt& interrupt) {
  return Growing(*this, rows, scores, params, key, interrupt).grow();
}

}  // namespace spinney
