#include "boost/grow.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/pool.h"
#include "boost/forced.h"
#include "boost/growing.h"
#include "boost/level.h"

namespace spinney {

class BoostGrower::Growing : public GrowingTree {
 public:
  Growing(BoostGrower& home, std::vector<Row>& rows, const Packed* pairs, Units units, const BoostParams& params,
          std::uint64_t key, Interrupt& interrupt)
      : GrowingTree(home.coding_, params, units, key),
        home_(home),
        n_threads_(detail::inside_task ? 1 : home.n_threads_),
        rows_(rows),
        pairs_(pairs),
        interrupt_(interrupt),
        histograms_(home.tiles_, search_, columns_.of_tree(), pairs, home.scratch_, interrupt),
        sweeps_(home.codes_.spill != nullptr && home.tiles_.listed().empty() && !params.symmetric &&
                params.forced_splits.empty()) {}

  BoostedTree grow(const Packed* root_histogram) {
    adds_drawn_ = root_histogram == nullptr && is_drawn_alone();
    if (params_.symmetric) return grow_levels(plant(root_histogram));
    if (params_.forced_splits.empty())
      push(plant(root_histogram));
    else
      force_splits(plant(root_histogram));
    const double to_share = estimated_ns_of_root() / (4.0 * n_threads_);
    alone_ns_ = std::clamp(to_share, 100'000.0, 500'000.0);
    for (commit_splits(); !is_done(); commit_splits()) {
      interrupt_.check();
      if (sweeps_) {
        split_in_one_pass(next_leaves(std::min(n_to_come(), home_.sweeper_.most_nodes())));
        continue;
      }
      Leaf& next = *heap_.front();
      const double ns = estimated_ns(next);
      if (n_threads_ > 1 && is_for_one_thread(next) && is_worth_splitting_ahead())
        split_ahead();
      else
        settle(next, split(next, ns < worth_a_wake_up_ns ? 1 : n_threads_, 0, n_to_come() > 1));
    }
    for (auto& leaf : heap_) finish(*leaf);
    return assemble();
  }

 private:
  void let_go(Leaf& leaf) override { give_back(leaf, leaf.made_by); }
  void rejoin(Leaf& leaf) override { join(leaf, leaf.left->n()); }

  // The rows of a leaf that was parted in vain, in ascending order again.
  void join(const Leaf& leaf, std::size_t n_left) {
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(leaf.begin);
    std::inplace_merge(first, first + static_cast<std::ptrdiff_t>(n_left), first + leaf.n());
  }

  // ---- level by level, all nodes of a level by the same split -----------------------------------------

  BoostedTree grow_levels(std::unique_ptr<Leaf> root) {
    const LevelSearch search(coding_, home_.tiles_, params_, units_, search_);
    std::vector<std::uint32_t> groups = root->groups;
    std::vector<std::unique_ptr<Leaf>> level;
    place(*root);
    level.push_back(std::move(root));
    for (std::uint32_t depth = 0; 2 * n_leaves_ <= params_.max_leaf_nodes; ++depth) {
      interrupt_.check();
      std::vector<LevelNode> nodes;
      for (const auto& leaf : level)
        if (may_split(*leaf)) nodes.push_back(level_node(*leaf));
      if (nodes.empty()) break;
      const BoostSplit best = search.best(nodes, columns_.of_node(depth, 1, groups), n_threads_);
      if (!(best.gain > 0)) break;
      std::erase_if(groups, [&](std::uint32_t g) {
        const auto& group = params_.interaction_cst[g];
        return std::find(group.begin(), group.end(), best.feature) == group.end();
      });
      const std::size_t n_before = n_leaves_;
      level = split_level(std::move(level), best, search);
      if (n_leaves_ == n_before) break;  // every node had fewer rows on a side than the hessian had promised
    }
    for (auto& leaf : level) finish(*leaf);
    return assemble();
  }

  LevelNode level_node(const Leaf& leaf) const {
    return {leaf.histogram.get(), search_.terms(leaf.sums, leaf.n(), leaf.bounds)};
  }

  std::vector<std::unique_ptr<Leaf>> split_level(std::vector<std::unique_ptr<Leaf>> level, const BoostSplit& best,
                                                 const LevelSearch& search) {
    std::vector<std::unique_ptr<Leaf>> next;
    for (auto& leaf : level) {
      if (may_split(*leaf)) leaf->best = search.of_node(best, level_node(*leaf));
      Outcome outcome;
      if (may_split(*leaf) && leaf->best.gain > 0)
        outcome = split(*leaf, estimated_ns(*leaf) < worth_a_wake_up_ns ? 1 : n_threads_, 0, true);
      leaf->left = std::move(outcome.left);
      leaf->right = std::move(outcome.right);
      if (!leaf->is_split()) {
        ++leaf->depth;
        next.push_back(std::move(leaf));
        continue;
      }
      record_split(*leaf);
      ++n_leaves_;
      for (auto* child : {&leaf->left, &leaf->right}) {
        place(**child);
        next.push_back(std::move(*child));
      }
    }
    return next;
  }

  // ---- the first splits, if they are given ------------------------------------------------------------

  void force_splits(std::unique_ptr<Leaf> root) {
    is_forcing_ = true;
    force(std::move(root), 0);
    is_forcing_ = false;
  }

  // A node that cannot make its split, as a side of it would be too small, is split as any other.
  void force(std::unique_ptr<Leaf> leaf, std::uint32_t asked) {
    if (!may_split(*leaf) || n_to_come() == 0 || !leaf->histogram) return push(std::move(leaf));
    const std::span<const Row> rows = std::span(rows_).subspan(leaf->begin, leaf->n());
    const ForcedSplit& wanted = params_.forced_splits[asked];
    leaf->best = forced_split(wanted, coding_, home_.codes_, rows, pairs_, search_, units_, leaf->bounds);
    Outcome outcome = split(*leaf, estimated_ns(*leaf) < worth_a_wake_up_ns ? 1 : n_threads_, 0, true);
    if (!outcome.left) {
      leaf->best = std::move(outcome.recounted);
      return push(std::move(leaf));
    }
    place(*leaf);
    leaf->left = std::move(outcome.left);
    leaf->right = std::move(outcome.right);
    record_split(*leaf);
    ++n_leaves_;
    wanted.left > 0 ? force(std::move(leaf->left), wanted.left) : push(std::move(leaf->left));
    wanted.right > 0 ? force(std::move(leaf->right), wanted.right) : push(std::move(leaf->right));
  }

  // ---- several leaves at a time ----------------------------------------------------------------------

  // Threads are woken once for all splits to come, so these may be small.
  bool is_worth_splitting_ahead() const {
    if (n_to_come() < 2 || histograms_.shares_tiles(n_threads_)) return false;
    double ns = static_cast<double>(n_to_come()) * histograms_.estimated_ns(0, 0);
    for (const auto& leaf : heap_) ns += estimated_ns(*leaf);
    return ns >= worth_a_wake_up_ns;
  }

  // Each thread splits the leaf that comes next of those nobody has taken, until a leaf's turn comes that is too large
  // for one thread, or the tree is done.
  void split_ahead() {
    is_given_up_ = false;
    parallel_for(static_cast<std::size_t>(n_threads_), n_threads_, [&](std::size_t, int worker) {
      std::unique_lock lock(mutex_);
      while (!is_given_up_ && !is_done()) {
        if (Leaf* leaf = next_leaf(worker))
          split_taken(*leaf, worker, lock);
        else if (n_taken_ > 0)
          wait_for_news(lock);
        else
          return;
      }
    });
  }

  // The first leaf in the order of their turns, as far as it is known, that is neither split nor taken; or one that comes
  // soon after it and whose histogram the worker has made, and so has in its cache. Leaves to come will take the turns of
  // about half of those that wait.
  Leaf* next_leaf(int worker) {
    const std::size_t most_ahead = 2 * static_cast<std::size_t>(n_threads_);
    soon_.clear();
    for (const auto& leaf : heap_) soon_.push_back(leaf.get());
    Leaf* first = nullptr;
    std::size_t n_ahead = 0;
    for (std::size_t n = (n_to_come() + 1) / 2; n > 0 && !soon_.empty() && n_ahead < most_ahead; --n) {
      std::pop_heap(soon_.begin(), soon_.end(), order());
      Leaf* leaf = soon_.back();
      soon_.pop_back();
      if (!leaf->is_split() && !leaf->is_taken && is_for_one_thread(*leaf)) {
        if (leaf->made_by == worker) return leaf;
        if (first == nullptr) first = leaf;
      }
      for (Leaf* child : {leaf->left.get(), leaf->right.get()})
        if (child != nullptr && child->best.gain > 0) {
          soon_.push_back(child);
          std::push_heap(soon_.begin(), soon_.end(), order());
        }
      n_ahead += leaf->is_split() || first != nullptr;
    }
    return first;
  }

  void split_taken(Leaf& leaf, int worker, std::unique_lock<std::mutex>& lock) {
    const bool search = n_to_come() > 1;
    leaf.is_taken = true;
    ++n_taken_;
    lock.unlock();
    std::optional<Outcome> outcome;
    std::exception_ptr failure;
    try {
      interrupt_.check();
      outcome = split(leaf, 1, worker, search);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    leaf.is_taken = false;
    --n_taken_;
    if (failure)
      is_given_up_ = true;
    else
      settle(leaf, std::move(*outcome));
    commit_splits();
    n_settled_.fetch_add(1, std::memory_order_release);
    news_.notify_all();
    if (failure) std::rethrow_exception(failure);
  }

  // Another thread's split will be there soon; sleeping takes longer than most of them.
  void wait_for_news(std::unique_lock<std::mutex>& lock) {
    const std::size_t seen = n_settled_.load(std::memory_order_relaxed);
    const auto has_come = [&] { return n_settled_.load(std::memory_order_acquire) != seen; };
    lock.unlock();
    for (int i = 0; i < 64 && !has_come(); ++i) std::this_thread::yield();
    interrupt_.check();
    lock.lock();
    news_.wait_for(lock, Interrupt::poll_interval, has_come);
  }

  // ---- codes in a file -------------------------------------------------------------------------------

  void sweep(std::span<SweptNode> nodes) {
    home_.sweeper_.sweep(nodes, histograms_.tiles_in_use(), pairs_, home_.parter_, n_threads_, interrupt_);
  }

  // The child with the smaller hessian, and so fewer rows as a rule, is added up.
  void split_in_one_pass(const std::vector<Leaf*>& leaves) {
    std::vector<SweptNode> nodes;
    std::vector<Histogram> filled;
    for (const Leaf* leaf : leaves) {
      const bool search = n_to_come() > 1 && leaf->depth + 1 < params_.max_depth;
      const ChildHistogram smaller =
          2 * leaf->best.left.hessian <= leaf->sums.hessian ? ChildHistogram::left : ChildHistogram::right;
      filled.push_back(search ? home_.pool_.take(0) : nullptr);
      nodes.push_back({.rows = rows_.data() + leaf->begin,
                       .n = leaf->n(),
                       .split = &leaf->best,
                       .child = search ? smaller : ChildHistogram::none,
                       .histogram = filled.back().get()});
    }
    sweep(nodes);
    for (std::size_t j = 0; j < leaves.size(); ++j)
      settle(*leaves[j], swept(*leaves[j], nodes[j], std::move(filled[j])));
  }

  Outcome swept(Leaf& leaf, const SweptNode& node, Histogram filled) {
    if (!has_too_few(leaf, node.n_left)) {
      const bool search = filled != nullptr;
      return divided(leaf, node.n_left, node.child == ChildHistogram::left, n_threads_, 0, search, std::move(filled));
    }
    home_.pool_.give_back(std::move(filled), 0);
    join(leaf, node.n_left);
    return {nullptr, nullptr, best_counted(leaf, 0)};
  }

  // ---- splitting one leaf ----------------------------------------------------------------------------

  std::unique_ptr<Leaf> plant(const Packed* known) {
    auto root = make_root(rows_.size());
    if (adds_drawn_) {
      SearchedNode searched = searched_node(*root, may_split(*root));
      histograms_.plant_drawn(searched);
      root->sums = searched.terms.total;
      root->best = std::move(searched.best);
      return root;
    }
    root->histogram = home_.pool_.take(0);
    if (is_worth_listed(*root)) root->listed = home_.listed_pool_.take(0);
    SearchedNode searched = searched_node(*root, may_split(*root));
    if (sweeps_ && known == nullptr) {
      SweptNode swept{.rows = rows_.data(), .n = rows_.size(), .histogram = root->histogram.get()};
      sweep({&swept, 1});
      known = root->histogram.get();
    }
    histograms_.plant(searched, known, estimated_ns_of_root() < worth_a_wake_up_ns ? 1 : n_threads_);
    root->sums = searched.terms.total;
    root->best = std::move(searched.best);
    return root;
  }

  // Do nodes add up the columns that they look at, and none besides? One thread does so.
  bool is_drawn_alone() const {
    if (params_.symmetric || !params_.forced_splits.empty() || home_.codes_.spill != nullptr) return false;
    const bool is_for_one = n_threads_ == 1 || estimated_ns_of_root() < worth_a_wake_up_ns;
    return is_for_one && histograms_.are_few(rows_.size(), params_.max_features_per_level * params_.max_features);
  }

  SearchedNode searched_node(const Leaf& leaf, bool search) const {
    SearchedNode node{.histogram = leaf.histogram.get(),
                      .listed = leaf.listed.get(),
                      .rows = rows_.data() + leaf.begin,
                      .terms = search_.terms(leaf.sums, leaf.n(), leaf.bounds)};
    if (search && params_.symmetric)
      node.columns.assign(coding_.columns.size(), 0);  // the level is searched as a whole
    else if (search)
      node.columns = columns_.of_node(leaf.depth, leaf.path, leaf.groups);
    return node;
  }

  bool is_worth_listed(const Leaf& leaf) const {
    const ListedColumns& listed = home_.tiles_.listed();
    return !listed.empty() && listed.is_worth_cells(leaf.n());
  }

  void give_back(Leaf& leaf, int worker) {
    home_.pool_.give_back(std::move(leaf.histogram), worker);
    home_.listed_pool_.give_back(std::move(leaf.listed), worker);
  }

  double estimated_ns_of_root() const {
    return histograms_.estimated_ns(static_cast<double>(rows_.size()), static_cast<double>(rows_.size()));
  }

  // How long one thread takes to split a leaf, roughly: all rows are parted, those of the smaller child are added up.
  double estimated_ns(const Leaf& leaf) const {
    const auto all = static_cast<double>(leaf.sums.hessian), left = static_cast<double>(leaf.best.left.hessian);
    const double n_rows = leaf.n();
    return n_rows + histograms_.estimated_ns(n_rows, n_rows * std::min(left, all - left) / std::max(all, 1.0));
  }

  bool is_for_one_thread(const Leaf& leaf) const {
    return estimated_ns(leaf) <= alone_ns_ && !(leaf.listed && histograms_.shares_listed());
  }

  // Carries out the best split of a leaf. `search`: the children may have to be split in turn.
  Outcome split(Leaf& leaf, int n_threads, int worker, bool search) {
    const std::size_t n_left = home_.parter_.part(leaf.best, rows_.data() + leaf.begin, leaf.n(), n_threads, worker);
    if (has_too_few(leaf, n_left)) {
      join(leaf, n_left);
      if (params_.symmetric) return {};
      return {nullptr, nullptr, best_counted(leaf, worker)};
    }
    return divided(leaf, n_left, n_left * 2 <= leaf.n(), n_threads, worker, search, nullptr);
  }

  // A leaf whose rows are parted. The histogram of one child is taken from the other's, which is `filled`, or null.
  Outcome divided(Leaf& leaf, std::size_t n_left, bool takes_left, int n_threads, int worker, bool search,
                  Histogram filled) {
    Outcome outcome{make_child(leaf, true, n_left), make_child(leaf, false, n_left), {}};
    outcome.left->made_by = outcome.right->made_by = worker;
    bound(leaf, *outcome.left, *outcome.right);
    Leaf &small = takes_left ? *outcome.left : *outcome.right, &large = takes_left ? *outcome.right : *outcome.left;
    if (adds_drawn_) {
      for (Leaf* child : {&small, &large}) {
        if (!search || !may_split(*child)) continue;
        SearchedNode searched = searched_node(*child, true);
        histograms_.search_drawn(searched, worker);
        child->best = std::move(searched.best);
      }
      return outcome;
    }
    small.histogram = std::move(filled);
    if (!search || (!may_split(small) && !may_split(large))) {
      for (Leaf* one : {&leaf, &small}) give_back(*one, worker);
      return outcome;
    }
    const bool is_filled = small.histogram != nullptr;
    share_histograms(leaf, small, large, worker);
    SearchedNode a = searched_node(small, may_split(small)), b = searched_node(large, may_split(large));
    if (is_filled)
      histograms_.divide_filled(a, b, n_threads);
    else
      histograms_.divide(a, b, n_threads, worker);
    small.best = std::move(a.best);
    large.best = std::move(b.best);
    if (params_.symmetric || is_forcing_) return outcome;
    for (Leaf* child : {&small, &large})
      if (!(child->best.gain > 0)) give_back(*child, worker);
    return outcome;
  }

  // The larger child gets the histograms of its parent.
  void share_histograms(Leaf& leaf, Leaf& small, Leaf& large, int worker) {
    if (!small.histogram) small.histogram = home_.pool_.take(worker);
    large.histogram = std::move(leaf.histogram);
    if (!leaf.listed || !is_worth_listed(large)) return home_.listed_pool_.give_back(std::move(leaf.listed), worker);
    large.listed = std::move(leaf.listed);
    if (may_split(small) && is_worth_listed(small)) small.listed = home_.listed_pool_.take(worker);
  }

  // The hessian had promised more rows than there were. Columns are counted until the best split is one of them: few are,
  // where all would take as long as the histogram.
  BoostSplit best_counted(const Leaf& leaf, int worker) {
    std::vector<std::vector<Row>> counts(coding_.columns.size());
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
    std::vector<Row> counts(coding_.columns[f].n_codes, 0);
    home_.codes_.touch(std::span(rows_).subspan(leaf.begin, leaf.end - leaf.begin));
    for (std::size_t i = leaf.begin; i < leaf.end; ++i) ++counts[home_.codes_.code(coding_, f, rows_[i])];
    return counts;
  }

  BoostGrower& home_;
  const int n_threads_;
  std::vector<Row>& rows_;
  const Packed* pairs_;
  Interrupt& interrupt_;
  const HistogramSearch histograms_;
  const bool sweeps_;

  bool is_forcing_ = false;
  bool adds_drawn_ = false;  // leaves have no histograms
  double alone_ns_ = 0;      // splits that take no longer are one thread's work

  // While threads split leaves of their own, what follows is under the mutex, and so are the tree's leaves.
  std::mutex mutex_;
  std::condition_variable news_;
  std::atomic<std::size_t> n_settled_{0};
  std::size_t n_taken_ = 0;
  bool is_given_up_ = false;
  std::vector<Leaf*> soon_;
};

void set_split(Tree& tree, std::size_t at, const Coding& coding, const BoostSplit& split, bool left_heavier) {
  const CodedColumn& column = coding.columns[split.feature];
  tree.feature[at] = static_cast<std::int32_t>(split.feature);
  const bool missing_left = split.saw_missing ? split.missing_left : left_heavier;
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
    if (left_heavier) flags |= Tree::default_left;
  }
  tree.flags[at] = flags;
}

BoostGrower::BoostGrower(const Coding& coding, const Codes& codes, const Tiles& tiles, int n_threads)
    : coding_(coding),
      codes_(codes),
      tiles_(tiles),
      n_threads_(n_threads),
      pool_(tiles.n_cells(), n_threads),
      listed_pool_(tiles.listed().n_cells(), n_threads),
      scratch_(tiles.n_cells(), n_threads),
      parter_(coding, codes, n_threads),
      sweeper_(coding, codes, tiles, n_threads) {}

BoostedTree BoostGrower::grow(std::vector<Row>& rows, const Packed* pairs, Units units, const BoostParams& params,
                              std::uint64_t key, const Packed* root, Interrupt& interrupt) {
  return Growing(*this, rows, pairs, units, params, key, interrupt).grow(root);
}

}  // namespace spinney
