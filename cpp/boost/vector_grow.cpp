#include "boost/vector_grow.h"

#include <algorithm>
#include <memory>

#include "base/pool.h"
#include "base/random.h"
#include "boost/columns.h"

namespace spinney {

struct VectorGrower::Leaf {
  std::size_t begin = 0, end = 0;
  std::vector<Sums> sums;  // by score
  std::uint32_t depth = 0;
  std::uint64_t path = 1;
  std::vector<std::uint32_t> groups;
  Histogram histogram;
  VectorSplit best;
  std::size_t made = 0, at = 0;

  Row n() const { return static_cast<Row>(end - begin); }
};

class VectorGrower::Growing {
  auto order() const {
    return [this](const auto& a, const auto& b) {
      if (params_.depth_wise && a->depth != b->depth) return a->depth > b->depth;
      return a->best.gain != b->best.gain ? a->best.gain < b->best.gain : a->made > b->made;
    };
  }

 public:
  Growing(VectorGrower& home, std::vector<Row>& rows, std::span<const ScoreTerms> scores, const BoostParams& params,
          std::uint64_t key, Interrupt& interrupt)
      : home_(home),
        params_(params),
        rows_(rows),
        scores_(scores),
        interrupt_(interrupt),
        n_threads_(detail::inside_task ? 1 : home.n_threads_),
        search_(home.coding_, params, scores),
        columns_(home.coding_, params, key) {
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
    nodes_.emplace_back();
    push(plant());
    while (n_leaves_ < params_.max_leaf_nodes && !heap_.empty()) {
      interrupt_.check();
      std::pop_heap(heap_.begin(), heap_.end(), order());
      std::unique_ptr<Leaf> leaf = std::move(heap_.back());
      heap_.pop_back();
      split(std::move(leaf), n_leaves_ + 1 < params_.max_leaf_nodes);
    }
    for (auto& leaf : heap_) home_.pool_.give_back(std::move(leaf->histogram), 0);
    return assemble();
  }

 private:
  struct NodeRecord {
    VectorSplit split;
    std::vector<Sums> sums;
    std::size_t begin = 0, end = 0;
    std::size_t left = 0, right = 0;  // 0: a leaf
    bool left_heavier = false;
    Row n() const { return static_cast<Row>(end - begin); }
  };

  // A node takes its place; it waits for its turn if there is a split to make.
  void push(std::unique_ptr<Leaf> leaf) {
    leaf->made = n_made_++;
    NodeRecord& node = nodes_[leaf->at];
    node.sums = leaf->sums;
    node.begin = leaf->begin;
    node.end = leaf->end;
    wait(std::move(leaf));
  }

  void wait(std::unique_ptr<Leaf> leaf) {
    if (!(leaf->best.gain > 0)) return home_.pool_.give_back(std::move(leaf->histogram), 0);
    heap_.push_back(std::move(leaf));
    std::push_heap(heap_.begin(), heap_.end(), order());
  }

  bool may_split(const Leaf& leaf) const {
    const std::size_t fewest =
        std::max<std::size_t>(2 * std::max<Row>(1, params_.min_samples_leaf), params_.min_samples_split);
    return leaf.n() >= fewest && leaf.depth < params_.max_depth;
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
  void search(Leaf& leaf, bool is_counted) {
    if (!may_split(leaf)) {
      leaf.best = {};
      return;
    }
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
    leaf.best = {};
    for (VectorSplit& split : found) consider(leaf.best, std::move(split));
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
    auto root = std::make_unique<Leaf>();
    root->end = rows_.size();
    for (std::uint32_t g = 0; g < params_.interaction_cst.size(); ++g) root->groups.push_back(g);
    root->histogram = home_.pool_.take(0);
    fill(*root, nullptr);
    root->sums.resize(scores_.size());
    for (std::size_t k = 0; k < scores_.size(); ++k)
      for (const Row r : rows_) {
        root->sums[k].gradient += gradient_of(scores_[k].pairs[r]);
        root->sums[k].hessian += hessian_of(scores_[k].pairs[r]);
      }
    search(*root, false);
    return root;
  }

  std::unique_ptr<Leaf> make_child(const Leaf& leaf, bool is_left, std::size_t n_left) const {
    auto child = std::make_unique<Leaf>();
    child->begin = is_left ? leaf.begin : leaf.begin + n_left;
    child->end = is_left ? leaf.begin + n_left : leaf.end;
    child->sums = leaf.best.left_sums;
    if (!is_left)
      for (std::size_t k = 0; k < scores_.size(); ++k)
        child->sums[k] = {leaf.sums[k].gradient - child->sums[k].gradient,
                          leaf.sums[k].hessian - child->sums[k].hessian};
    child->depth = leaf.depth + 1;
    child->path = derive(leaf.path, is_left ? 1 : 2);
    for (const std::uint32_t g : leaf.groups) {
      const auto& group = params_.interaction_cst[g];
      if (std::find(group.begin(), group.end(), leaf.best.feature) != group.end()) child->groups.push_back(g);
    }
    return child;
  }

  // Carries out the best split of a leaf; or finds that it has too few rows on a side, and looks for another. `searches`: the
  // children may have to be split in turn.
  void split(std::unique_ptr<Leaf> leaf, bool searches) {
    const std::size_t n_left =
        home_.parter_.part(leaf->best, rows_.data() + leaf->begin, leaf->n(), leaf->n() < 4096 ? 1 : n_threads_, 0);
    if (std::min<std::size_t>(n_left, leaf->n() - n_left) < std::max<Row>(1, params_.min_samples_leaf)) {
      const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(leaf->begin);
      std::inplace_merge(first, first + static_cast<std::ptrdiff_t>(n_left), first + leaf->n());
      search(*leaf, true);
      return wait(std::move(leaf));
    }
    std::unique_ptr<Leaf> left = make_child(*leaf, true, n_left), right = make_child(*leaf, false, n_left);
    if (searches && (may_split(*left) || may_split(*right))) {
      Leaf &small = n_left * 2 <= leaf->n() ? *left : *right, &large = n_left * 2 <= leaf->n() ? *right : *left;
      small.histogram = home_.pool_.take(0);
      large.histogram = std::move(leaf->histogram);
      fill(small, &large);
      search(small, false);
      search(large, false);
    }
    home_.pool_.give_back(std::move(leaf->histogram), 0);
    NodeRecord& node = nodes_[leaf->at];
    node.left_heavier = left->n() > right->n();
    node.split = std::move(leaf->best);
    node.left = left->at = nodes_.size();
    node.right = right->at = nodes_.size() + 1;
    nodes_.resize(nodes_.size() + 2);
    push(std::move(left));
    push(std::move(right));
    ++n_leaves_;
  }

  // ---- the tree --------------------------------------------------------------------------------------

  VectorTree assemble() {
    VectorTree found;
    struct Step {
      std::size_t node, parent;
    };
    std::vector<Step> stack{{0, SIZE_MAX}};
    while (!stack.empty()) {
      const Step step = stack.back();
      stack.pop_back();
      NodeRecord& node = nodes_[step.node];
      Tree& tree = found.grown.tree;
      const std::size_t at = tree.add_leaf();
      found.grown.cut.push_back(node.split.cut);
      found.sums.push_back(std::move(node.sums));
      if (step.parent != SIZE_MAX) tree.right[step.parent] = static_cast<std::uint32_t>(at);
      tree.weight[at] = static_cast<double>(node.n());
      tree.n_rows[at] = node.n();
      if (node.left == 0) {
        found.grown.leaves.push_back({static_cast<std::uint32_t>(at), node.begin, node.end, {}});
        continue;
      }
      set_split(tree, at, home_.coding_, node.split, node.left_heavier);
      stack.push_back({node.right, at});
      stack.push_back({node.left, SIZE_MAX});
    }
    return found;
  }

  VectorGrower& home_;
  const BoostParams& params_;
  std::vector<Row>& rows_;
  const std::span<const ScoreTerms> scores_;
  Interrupt& interrupt_;
  const int n_threads_;
  const VectorSearch search_;
  const DrawnColumns columns_;
  std::vector<std::uint32_t> tiles_, lanes_;  // in use
  std::vector<std::unique_ptr<Leaf>> heap_;   // leaves that have a split to make
  std::vector<NodeRecord> nodes_;
  std::size_t n_made_ = 0, n_leaves_ = 1;
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
