#include "boost/grow.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <queue>

#include "base/pool.h"
#include "base/random.h"

namespace spinney {

std::unique_ptr<Packed[]> HistogramPool::take() {
  if (free_.empty()) return std::unique_ptr<Packed[]>(new Packed[n_cells_]);
  std::unique_ptr<Packed[]> histogram = std::move(free_.back());
  free_.pop_back();
  return histogram;
}

void HistogramPool::give_back(std::unique_ptr<Packed[]> histogram) {
  if (histogram) free_.push_back(std::move(histogram));
}

// A node that is not split yet. Once `children` is set its split has been carried out, ahead of its turn perhaps.
struct BoostGrower::Leaf {
  std::size_t begin = 0, end = 0;
  Sums sums;
  std::uint32_t depth = 0;
  std::uint64_t path = 1;  // random streams are by place in the tree
  Bounds bounds;
  std::vector<std::uint32_t> groups;  // that may still be split on; empty: no constraint
  std::unique_ptr<Packed[]> histogram;
  BoostSplit best;
  std::unique_ptr<std::pair<Leaf, Leaf>> children;
  std::size_t made = 0;  // order of creation
  std::size_t at = 0;    // its place among the nodes

  Row n() const { return static_cast<Row>(end - begin); }
};

// Splitting one leaf: its rows are parted, and the children's histograms and best splits found.
class BoostGrower::Growing {
 public:
  Growing(BoostGrower& home, std::vector<Row>& rows, const Packed* pairs, Units units, std::uint64_t key,
          Interrupt& interrupt)
      : home_(home),
        coding_(home.coding_),
        codes_(home.codes_),
        tiles_(home.tiles_),
        params_(home.params_),
        rows_(rows),
        pairs_(pairs),
        units_(units),
        key_(key),
        interrupt_(interrupt),
        search_(home.coding_, home.tiles_, home.params_, units) {}

  BoostedTree grow() {
    draw_tree_columns();
    Leaf root = plant();
    nodes_.push_back({});
    push(std::move(root));
    std::size_t n_leaves = 1;
    while (n_leaves < params_.max_leaves && !heap_.empty()) {
      interrupt_.check();
      const std::size_t n_to_come = params_.max_leaves - n_leaves;
      if (!heap_.front()->children) {
        split_ahead(n_to_come);
        continue;
      }
      commit(pop());
      ++n_leaves;
    }
    for (auto& leaf : heap_) finish(*leaf);
    return assemble();
  }

 private:
  struct NodeRecord {
    BoostSplit split;
    Sums sums;
    Row n = 0;
    std::size_t left = 0, right = 0;  // 0: a leaf
    std::size_t begin = 0, end = 0;
    Bounds bounds;
    bool left_heavier = false;
  };

  using Heap = std::vector<std::unique_ptr<Leaf>>;
  bool later(const Leaf& a, const Leaf& b) const {
    if (params_.depth_wise && a.depth != b.depth) return a.depth > b.depth;
    return a.best.gain != b.best.gain ? a.best.gain < b.best.gain : a.made > b.made;
  }
  auto order() const {
    return [this](const std::unique_ptr<Leaf>& a, const std::unique_ptr<Leaf>& b) { return later(*a, *b); };
  }

  std::unique_ptr<Leaf> pop() {
    std::pop_heap(heap_.begin(), heap_.end(), order());
    std::unique_ptr<Leaf> leaf = std::move(heap_.back());
    heap_.pop_back();
    return leaf;
  }

  void push_leaf(std::unique_ptr<Leaf> leaf) {
    heap_.push_back(std::move(leaf));
    std::push_heap(heap_.begin(), heap_.end(), order());
  }

  // A node takes its place; it waits for its turn if there is a split to make.
  void push(Leaf leaf) {
    auto kept = std::make_unique<Leaf>(std::move(leaf));
    kept->made = n_made_++;
    NodeRecord& node = nodes_[kept->at];
    node.sums = kept->sums;
    node.n = kept->n();
    node.begin = kept->begin;
    node.end = kept->end;
    node.bounds = kept->bounds;
    if (kept->best.gain > 0)
      push_leaf(std::move(kept));
    else
      finish(*kept);
  }

  void finish(Leaf& leaf) {
    release(std::move(leaf.histogram));
    if (leaf.children) {
      release(std::move(leaf.children->first.histogram));
      release(std::move(leaf.children->second.histogram));
    }
  }

  void release(std::unique_ptr<Packed[]> histogram) {
    const std::lock_guard lock(pool_lock_);
    home_.pool_.give_back(std::move(histogram));
  }
  std::unique_ptr<Packed[]> take() {
    const std::lock_guard lock(pool_lock_);
    return home_.pool_.take();
  }

  Leaf plant() {
    Leaf root;
    root.end = rows_.size();
    for (const Row r : rows_) {
      root.sums.gradient += gradient_of(pairs_[r]);
      root.sums.hessian += hessian_of(pairs_[r]);
    }
    root.histogram = take();
    for (std::uint32_t g = 0; g < params_.groups.size(); ++g) root.groups.push_back(g);
    fill(root, root.histogram.get(), params_.n_threads);
    find_best(root, params_.n_threads, 0);
    return root;
  }

  // Splits the leaf whose turn it is; while it is small, others beside it.
  void split_ahead(std::size_t n_to_come) {
    constexpr Row large = 1 << 15;
    const auto threads = static_cast<std::size_t>(params_.n_threads);
    std::vector<std::unique_ptr<Leaf>> taken;
    std::vector<Leaf*> jobs;
    const bool alone = threads == 1 || heap_.front()->n() > large || detail::inside_task;
    const std::size_t most = alone ? 1 : std::min(2 * threads, n_to_come);
    while (!heap_.empty() && jobs.size() < most) {
      taken.push_back(pop());
      if (!taken.back()->children && (alone || taken.back()->n() <= large)) jobs.push_back(taken.back().get());
    }
    double estimated_ns = 0;
    for (const Leaf* leaf : jobs)
      estimated_ns +=
          0.5 * static_cast<double>(coding_.columns.size()) * leaf->n() + 2.0 * static_cast<double>(tiles_.n_cells());
    if (estimated_ns < 2 * worth_a_wake_up_ns) jobs.resize(1);
    parallel_for(alone ? 0 : jobs.size(), params_.n_threads,
                 [&](std::size_t i, int worker) { split(*jobs[i], 1, worker, n_to_come > 1); });
    if (alone) split(*jobs[0], params_.n_threads, 0, n_to_come > 1);
    for (auto& leaf : taken)
      if (leaf->best.gain > 0)
        push_leaf(std::move(leaf));
      else
        finish(*leaf);
  }

  // Carries out the best split of a leaf. `search`: the children may have to be split in turn.
  void split(Leaf& leaf, int n_threads, int worker, bool search) {
    auto children = std::make_unique<std::pair<Leaf, Leaf>>();
    Leaf &left = children->first, &right = children->second;
    const std::size_t n_left = part(leaf.best, rows_.data() + leaf.begin, leaf.n(), n_threads, worker);
    if (std::min<std::size_t>(n_left, leaf.n() - n_left) < std::max<Row>(1, params_.min_rows)) {
      find_best_counted(leaf, worker);
      return;
    }
    left.begin = leaf.begin;
    left.end = right.begin = leaf.begin + n_left;
    right.end = leaf.end;
    left.sums = leaf.best.left;
    right.sums = {leaf.sums.gradient - left.sums.gradient, leaf.sums.hessian - left.sums.hessian};
    for (Leaf* child : {&left, &right}) {
      child->depth = leaf.depth + 1;
      child->path = derive(leaf.path, child == &left ? 1 : 2);
      child->bounds = leaf.bounds;
      for (const std::uint32_t g : leaf.groups) {
        const auto& group = params_.groups[g];
        if (std::find(group.begin(), group.end(), leaf.best.feature) != group.end()) child->groups.push_back(g);
      }
    }
    bound(leaf, left, right);
    Leaf &small = n_left * 2 <= leaf.n() ? left : right, &large = n_left * 2 <= leaf.n() ? right : left;
    const bool small_may = search && may_split(small), large_may = search && may_split(large);
    if (small_may || large_may) {
      small.histogram = take();
      fill(small, small.histogram.get(), n_threads);
      large.histogram = std::move(leaf.histogram);
      boost_kernels().subtract(large.histogram.get(), small.histogram.get(), tiles_.n_cells());
      for (Leaf* child : {&small, &large})
        if (child == &small ? small_may : large_may)
          find_best(*child, n_threads, worker);
        else
          release(std::move(child->histogram));
    } else {
      release(std::move(leaf.histogram));
    }
    leaf.children = std::move(children);
  }

  bool may_split(const Leaf& leaf) const {
    return leaf.n() >= 2 * std::max<Row>(1, params_.min_rows) && leaf.depth < params_.max_depth;
  }

  void bound(const Leaf& leaf, Leaf& left, Leaf& right) const {
    if (params_.monotone.empty() || params_.monotone[leaf.best.feature] == 0) return;
    const double middle = (step_of(left) + step_of(right)) / 2;
    const bool rises = params_.monotone[leaf.best.feature] > 0;
    (rises ? left : right).bounds.high = std::min(leaf.bounds.high, middle);
    (rises ? right : left).bounds.low = std::max(leaf.bounds.low, middle);
  }

  double step_of(const Leaf& leaf) const {
    return search_.step(static_cast<double>(leaf.sums.gradient) * units_.gradient,
                        static_cast<double>(leaf.sums.hessian) * units_.hessian, leaf.bounds);
  }

  std::size_t part(const BoostSplit& best, Row* rows, std::size_t n, int n_threads, int worker) {
    constexpr std::size_t chunk = 1 << 14;
    if (n_threads == 1 || n < 2 * chunk) return part_serial(best, rows, n, worker);
    const std::size_t n_chunks = (n + chunk - 1) / chunk;
    std::vector<std::size_t> n_left(n_chunks);
    parallel_for(n_chunks, n_threads, [&](std::size_t c, int w) {
      n_left[c] = part_serial(best, rows + c * chunk, std::min(chunk, n - c * chunk), w);
    });
    return join_chunks(rows, n, chunk, n_left, n_threads);
  }

  // Left parts first, then right parts, each in the order of the chunks.
  std::size_t join_chunks(Row* rows, std::size_t n, std::size_t chunk, const std::vector<std::size_t>& n_left,
                          int n_threads) {
    std::size_t total = 0;
    for (const std::size_t k : n_left) total += k;
    joined_.resize(n);
    std::vector<std::size_t> left_at(n_left.size()), right_at(n_left.size());
    std::size_t l = 0, r = total;
    for (std::size_t c = 0; c < n_left.size(); ++c) {
      left_at[c] = l;
      right_at[c] = r;
      l += n_left[c];
      r += std::min(chunk, n - c * chunk) - n_left[c];
    }
    parallel_for(n_left.size(), n_threads, [&](std::size_t c, int) {
      const Row* from = rows + c * chunk;
      std::copy_n(from, n_left[c], joined_.data() + left_at[c]);
      std::copy(from + n_left[c], from + std::min(chunk, n - c * chunk), joined_.data() + right_at[c]);
    });
    parallel_for(n_left.size(), n_threads, [&](std::size_t c, int) {
      std::copy_n(joined_.data() + c * chunk, std::min(chunk, n - c * chunk), rows + c * chunk);
    });
    return total;
  }

  std::size_t part_serial(const BoostSplit& best, Row* rows, std::size_t n, int worker) {
    std::vector<Row>& spare = home_.spare_[static_cast<std::size_t>(worker)];
    if (spare.size() < n + 16) spare.resize(n + 16);
    const CodedColumn& column = coding_.columns[best.feature];
    const std::uint32_t last = column.n_codes - 1;
    if (!column.is_category && !column.is_wide)
      return boost_kernels().part(rows, n, codes_.narrow(best.feature), best.cut, best.missing_left ? last : UINT32_MAX,
                                  spare.data());
    std::vector<std::uint8_t> goes_left(column.n_codes, 0);
    if (column.is_category)
      for (const std::uint32_t code : best.left_codes) goes_left[code] = 1;
    else
      std::fill_n(goes_left.begin(), best.cut + std::size_t{1}, std::uint8_t{1});
    if (column.has_missing) goes_left[last] = best.missing_left;
    std::size_t n_left = 0, n_right = 0;
    const auto sweep = [&](const auto* codes) {
      for (std::size_t i = 0; i < n; ++i) {
        const Row r = rows[i];
        const bool left = goes_left[codes[r]];
        rows[n_left] = r;
        spare[n_right] = r;
        n_left += left;
        n_right += !left;
      }
    };
    if (column.is_wide)
      sweep(codes_.wide(best.feature));
    else
      sweep(codes_.narrow(best.feature));
    std::copy_n(spare.data(), n_right, rows + n_left);
    return n_left;
  }

  void fill(const Leaf& leaf, Packed* histogram, int n_threads) {
    constexpr std::size_t chunk = 1 << 13;
    const std::size_t n = leaf.n(), n_chunks = (n + chunk - 1) / chunk;
    const Row* rows = rows_.data() + leaf.begin;
    std::memset(histogram, 0, tiles_.n_cells() * sizeof(Packed));
    if (n_threads == 1 || n_chunks < 4) {
      tiles_.add_rows(columns_in_use_, pairs_, rows, n, histogram);
      return;
    }
    std::vector<std::uint8_t> used(static_cast<std::size_t>(n_threads), 0);
    parallel_for(n_chunks, n_threads, [&](std::size_t c, int w) {
      Packed* mine = histogram;
      if (w > 0) {
        auto& part = home_.parts_[static_cast<std::size_t>(w)];
        if (!part) part.reset(new Packed[tiles_.n_cells()]);
        mine = part.get();
        if (!used[static_cast<std::size_t>(w)]) std::memset(mine, 0, tiles_.n_cells() * sizeof(Packed));
        used[static_cast<std::size_t>(w)] = 1;
      }
      tiles_.add_rows(columns_in_use_, pairs_, rows + c * chunk, std::min(chunk, n - c * chunk), mine);
    });
    for (std::size_t w = 1; w < used.size(); ++w)
      if (used[w])
        for (std::size_t i = 0; i < tiles_.n_cells(); ++i) histogram[i] += home_.parts_[w][i];
  }

  // ---- columns --------------------------------------------------------------------------------------

  static std::size_t share_of(std::size_t n, double share) {
    return std::clamp<std::size_t>(static_cast<std::size_t>(share * static_cast<double>(n) + 0.5),
                                   std::min<std::size_t>(n, 1), n);
  }

  static std::vector<std::uint32_t> draw(std::vector<std::uint32_t> columns, double share, std::uint64_t key) {
    const std::size_t n = share_of(columns.size(), share);
    if (n == columns.size()) return columns;
    RandomStream random(key);
    for (std::size_t i = 0; i < n; ++i) std::swap(columns[i], columns[i + random.below(columns.size() - i)]);
    columns.resize(n);
    std::sort(columns.begin(), columns.end());
    return columns;
  }

  void draw_tree_columns() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t f = 0; f < coding_.columns.size(); ++f)
      if (coding_.columns[f].n_codes > 1) all.push_back(f);
    tree_columns_ = draw(std::move(all), params_.columns_per_tree, derive(key_, 1));
    columns_in_use_.assign(coding_.columns.size(), 0);
    for (const std::uint32_t f : tree_columns_) columns_in_use_[f] = 1;
  }

  std::vector<std::uint32_t> columns_of(const Leaf& leaf) const {
    std::vector<std::uint32_t> columns = tree_columns_;
    if (!params_.groups.empty() && leaf.depth > 0) {
      std::erase_if(columns, [&](std::uint32_t f) {
        return std::none_of(leaf.groups.begin(), leaf.groups.end(), [&](std::uint32_t g) {
          const auto& group = params_.groups[g];
          return std::find(group.begin(), group.end(), f) != group.end();
        });
      });
    }
    columns = draw(std::move(columns), params_.columns_per_level, derive(derive(key_, 2), leaf.depth));
    return draw(std::move(columns), params_.columns_per_node, derive(derive(key_, 3), leaf.path));
  }

  void find_best(Leaf& leaf, int n_threads, int worker) {
    leaf.best = {};
    if (!may_split(leaf)) return;
    const std::vector<std::uint32_t> columns = columns_of(leaf);
    const double estimated_ns = 1.0 * static_cast<double>(tiles_.n_cells());
    if (n_threads == 1 || estimated_ns < 2 * worth_a_wake_up_ns) {
      for (const std::uint32_t f : columns) consider(leaf, search_column(leaf, f, worker));
      return;
    }
    std::vector<BoostSplit> found(columns.size());
    parallel_for(columns.size(), n_threads,
                 [&](std::size_t i, int w) { found[i] = search_column(leaf, columns[i], w); });
    for (BoostSplit& split : found) consider(leaf, std::move(split));
  }

  // As above, with the rows of each side counted: the hessian had promised more than there were.
  void find_best_counted(Leaf& leaf, int worker) {
    leaf.best = {};
    std::vector<Row> counts;
    for (const std::uint32_t f : columns_of(leaf)) {
      counts.assign(coding_.columns[f].n_codes, 0);
      for (std::size_t i = leaf.begin; i < leaf.end; ++i) ++counts[codes_.code(coding_, f, rows_[i])];
      consider(leaf, search_.search(f, leaf.histogram.get(), leaf.sums, leaf.n(), leaf.bounds,
                                    home_.scratch_[static_cast<std::size_t>(worker)], counts.data()));
    }
  }

  BoostSplit search_column(const Leaf& leaf, std::uint32_t f, int worker) {
    return search_.search(f, leaf.histogram.get(), leaf.sums, leaf.n(), leaf.bounds,
                          home_.scratch_[static_cast<std::size_t>(worker)]);
  }

  static void consider(Leaf& leaf, BoostSplit split) {
    if (split.gain > leaf.best.gain) leaf.best = std::move(split);
  }

  // ---- the tree -------------------------------------------------------------------------------------

  // The split of a leaf becomes part of the tree.
  void commit(std::unique_ptr<Leaf> leaf) {
    auto& [left, right] = *leaf->children;
    NodeRecord& node = nodes_[leaf->at];
    node.split = std::move(leaf->best);
    node.left_heavier = left.n() >= right.n();
    node.left = left.at = nodes_.size();
    node.right = right.at = nodes_.size() + 1;
    nodes_.resize(nodes_.size() + 2);
    release(std::move(leaf->histogram));
    push(std::move(left));
    push(std::move(right));
  }

  BoostedTree assemble() {
    BoostedTree grown;
    struct Step {
      std::size_t node, parent;
    };
    std::vector<Step> stack{{0, SIZE_MAX}};
    while (!stack.empty()) {
      const Step step = stack.back();
      stack.pop_back();
      const NodeRecord& node = nodes_[step.node];
      const std::size_t at = grown.tree.add_leaf();
      grown.cut.push_back(0);
      if (step.parent != SIZE_MAX) grown.tree.right[step.parent] = static_cast<std::uint32_t>(at);
      describe(node, grown, at);
      if (node.left == 0) {
        grown.leaves.push_back({static_cast<std::uint32_t>(at), node.begin, node.end, node.bounds});
        continue;
      }
      stack.push_back({node.right, at});
      stack.push_back({node.left, SIZE_MAX});
    }
    return grown;
  }

  void describe(const NodeRecord& node, BoostedTree& grown, std::size_t at) const {
    Tree& tree = grown.tree;
    const double g = static_cast<double>(node.sums.gradient) * units_.gradient;
    const double h = static_cast<double>(node.sums.hessian) * units_.hessian;
    tree.weight[at] = static_cast<double>(node.n);
    tree.n_rows[at] = node.n;
    // such that the decrease of weight times impurity is the gain
    tree.impurity[at] = node.n == 0 ? 0.0 : -g * g / (h + params_.l2 + 1e-300) / static_cast<double>(node.n);
    tree.value[at] = search_.step(g, h, node.bounds) * params_.learning_rate;
    if (node.left == 0) return;
    const BoostSplit& split = node.split;
    const CodedColumn& column = coding_.columns[split.feature];
    tree.feature[at] = static_cast<std::int32_t>(split.feature);
    const bool missing_left = split.saw_missing ? split.missing_left : node.left_heavier;
    std::uint8_t flags = missing_left ? Tree::missing_left : 0;
    if (column.is_category) {
      flags |= Tree::category;
      if (missing_left) flags |= Tree::default_left;
      std::vector<std::uint32_t> right;
      for (std::uint32_t code = 0; code + 1 < column.n_codes; ++code)
        if (!std::binary_search(split.left_codes.begin(), split.left_codes.end(), code)) right.push_back(code);
      tree.set[at] = add_set(tree.sets, split.left_codes, right, missing_left);
    } else {
      const bool missing_alone = split.cut + 1 == column.n_present();
      tree.threshold[at] = missing_alone ? std::numeric_limits<double>::infinity() : column.edges[split.cut];
      if (node.left_heavier) flags |= Tree::default_left;
      grown.cut[at] = split.cut;
    }
    tree.flags[at] = flags;
  }

  BoostGrower& home_;
  const Coding& coding_;
  const Codes& codes_;
  const Tiles& tiles_;
  const BoostParams& params_;
  std::vector<Row>& rows_;
  const Packed* pairs_;
  const Units units_;
  const std::uint64_t key_;
  Interrupt& interrupt_;
  const SplitSearch search_;
  std::vector<std::uint32_t> tree_columns_;
  std::vector<std::uint8_t> columns_in_use_;
  Heap heap_;
  std::vector<NodeRecord> nodes_;
  std::size_t n_made_ = 0;
  std::vector<Row> joined_;
  std::mutex pool_lock_;
};

BoostGrower::BoostGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, const BoostParams& params)
    : coding_(coding), codes_(codes), tiles_(tiles), params_(params), pool_(tiles.n_cells()) {
  const auto threads = static_cast<std::size_t>(params.n_threads);
  scratch_.resize(threads);
  spare_.resize(threads);
  parts_.resize(threads);
}

BoostGrower::~BoostGrower() = default;

BoostedTree BoostGrower::grow(std::vector<Row>& rows, const Packed* pairs, Units units, std::uint64_t key,
                              Interrupt& interrupt) {
  return Growing(*this, rows, pairs, units, key, interrupt).grow();
}

}  // namespace spinney
