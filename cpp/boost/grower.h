// Grows boosted trees best-first, depth-wise, with one split per level (symmetric), or with forced splits first; leaves
// have one value or several. The rows are accessed through the calls of boost/rows.h.
//
// The leaf with the largest gain is split next. All threads together split a large leaf; while leaves are small, each
// thread splits one and speculatively splits leaves that are likely to come next. Where rows are best read for several
// leaves at once, all leaves that may be split soon form one batch. None of this changes the tree.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/pool.h"
#include "boost/growing_tree.h"
#include "boost/rows.h"

namespace spinney {

template <TreeRows Rows>
class TreeGrower : public Rows::Growth {
  using Growth = typename Rows::Growth;

 public:
  using Leaf = typename Growth::Leaf;

  // `of_rows`: further arguments for the rows of the tree.
  template <class... OfRows>
  TreeGrower(const Coding& coding, const BoostParams& params, std::uint64_t key, typename Growth::Terms terms,
             int n_threads, Interrupt& interrupt, OfRows&&... of_rows)
      : Growth(coding, params, key, terms),
        n_threads_(detail::inside_task ? 1 : n_threads),
        interrupt_(interrupt),
        rows_(*this, std::forward<OfRows>(of_rows)..., n_threads_, interrupt) {}

  BoostedTree grow()
    requires PresentRows<Rows>
  {
    auto root = build_root(rows_.n_rows());
    alone_ns_ = std::clamp(rows_.estimated_ns() / (4.0 * n_threads_), 100'000.0, 500'000.0);
    if constexpr (Rows::takes_given_splits) {
      if (params_.symmetric) return grow_levels(std::move(root));
      params_.forced_splits.empty() ? push(std::move(root)) : force_splits(std::move(root));
    } else {
      push(std::move(root));
    }
    for (commit_splits(); !is_done(); commit_splits()) {
      interrupt_.check();
      if (rows_.most_nodes() > 1)
        split_batch(next_leaves(std::min(n_to_come(), rows_.most_nodes())));
      else if (n_threads_ > 1 && is_for_one_thread(*heap_.front()) && is_worth_splitting_ahead())
        split_ahead();
      else
        split_next();
    }
    return finished();
  }

 protected:
  using Split = typename Growth::Split;
  using Growth::commit_splits, Growth::finish, Growth::is_done, Growth::make_child, Growth::may_split,
      Growth::n_to_come, Growth::next_leaves, Growth::order, Growth::place, Growth::push, Growth::record_split,
      Growth::settle;
  using Growth::heap_, Growth::n_leaves_, Growth::params_;

  std::unique_ptr<Leaf> build_root(std::size_t n_rows) {
    auto root = Growth::make_root(n_rows);
    rows_.init_root(*root);
    return root;
  }

  // Applies the best splits of leaves; a split that leaves too few rows on a side produces no children.
  void carry_out(std::span<LeafSplit<Leaf>> splits, ThreadTeam team) {
    rows_.partition(splits, team);
    for (LeafSplit<Leaf>& split : splits) {
      const Leaf& leaf = *split.leaf;
      if (Growth::has_too_few(leaf, split.n_left)) continue;
      split.left = make_child(leaf, true, split.n_left);
      split.right = make_child(leaf, false, split.n_left);
      split.left->made_by = split.right->made_by = team.worker;
      Growth::bound(leaf, *split.left, *split.right);
    }
    rows_.histograms(splits, team);
    if (params_.symmetric || is_forcing_) return;
    for (LeafSplit<Leaf>& split : splits) {
      if (!split.left) continue;
      for (Leaf* child : {split.left.get(), split.right.get()})
        if (!(child->best.gain > 0)) rows_.release(*child, team.worker);
    }
  }

  BoostedTree finished() {
    for (auto& leaf : heap_) finish(*leaf);
    return Growth::assemble();
  }

  const int n_threads_;
  Interrupt& interrupt_;
  Rows rows_;

 private:
  void release(Leaf& leaf) override { rows_.release(leaf, leaf.made_by); }
  void rejoin(Leaf& leaf) override { rows_.rejoin(leaf, leaf.left->n()); }

  ThreadTeam team_for(const Leaf& leaf) const {
    return {rows_.estimated_ns(leaf) < worth_a_wake_up_ns ? 1 : n_threads_, 0};
  }

  void split_next() {
    Leaf& next = *heap_.front();
    LeafSplit<Leaf> split{.leaf = &next, .searches = n_to_come() > 1};
    carry_out({&split, 1}, team_for(next));
    settle(split);
  }

  void split_batch(const std::vector<Leaf*>& leaves) {
    std::vector<LeafSplit<Leaf>> splits(leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      splits[i].leaf = leaves[i];
      splits[i].searches = n_to_come() > 1;
    }
    carry_out(splits, {n_threads_, 0});
    for (LeafSplit<Leaf>& split : splits) settle(split);
  }

  // ---- one split for all nodes of a level --------------------------------------------------------------

  BoostedTree grow_levels(std::unique_ptr<Leaf> root) {
    std::vector<std::uint32_t> groups = root->groups;
    std::vector<std::unique_ptr<Leaf>> level;
    place(*root);
    level.push_back(std::move(root));
    for (std::uint32_t depth = 0; 2 * n_leaves_ <= params_.max_leaf_nodes; ++depth) {
      interrupt_.check();
      std::vector<const Leaf*> nodes;
      for (const auto& leaf : level)
        if (may_split(*leaf)) nodes.push_back(leaf.get());
      if (nodes.empty()) break;
      const Split best = rows_.best_of_level(nodes, Growth::columns().of_node(depth, 1, groups));
      if (!(best.gain > 0)) break;
      std::erase_if(groups, [&](std::uint32_t g) {
        const auto& group = params_.interaction_cst[g];
        return std::find(group.begin(), group.end(), best.feature) == group.end();
      });
      const std::size_t n_before = n_leaves_;
      level = split_level(std::move(level), best);
      if (n_leaves_ == n_before) break;  // every node had fewer rows on a side than its hessian indicated
    }
    for (auto& leaf : level) finish(*leaf);
    return Growth::assemble();
  }

  std::vector<std::unique_ptr<Leaf>> split_level(std::vector<std::unique_ptr<Leaf>> level, const Split& best) {
    std::vector<std::unique_ptr<Leaf>> next;
    for (auto& leaf : level) {
      if (may_split(*leaf)) leaf->best = rows_.of_node(best, *leaf);
      if (may_split(*leaf) && leaf->best.gain > 0 && split_now(*leaf)) {
        for (auto* child : {&leaf->left, &leaf->right}) {
          place(**child);
          next.push_back(std::move(*child));
        }
      } else {
        ++leaf->depth;
        next.push_back(std::move(leaf));
      }
    }
    return next;
  }

  // Splits a leaf regardless of the others; returns false, with its best split recounted, if a side has too few rows.
  bool split_now(Leaf& leaf) {
    LeafSplit<Leaf> split{.leaf = &leaf};
    carry_out({&split, 1}, team_for(leaf));
    if (!split.left) {
      leaf.best = std::move(split.recounted);
      return false;
    }
    leaf.left = std::move(split.left);
    leaf.right = std::move(split.right);
    record_split(leaf);
    ++n_leaves_;
    return true;
  }

  // ---- forced splits -----------------------------------------------------------------------------------

  void force_splits(std::unique_ptr<Leaf> root) {
    is_forcing_ = true;
    force(std::move(root), 0);
    is_forcing_ = false;
  }

  // A node whose forced split leaves too few rows on a side is split like any other node.
  void force(std::unique_ptr<Leaf> leaf, std::uint32_t at) {
    if (!may_split(*leaf) || n_to_come() == 0 || !leaf->histogram) return push(std::move(leaf));
    const ForcedSplit& forced = params_.forced_splits[at];
    leaf->best = rows_.forced(forced, *leaf);
    if (!split_now(*leaf)) return push(std::move(leaf));
    place(*leaf);
    forced.left > 0 ? force(std::move(leaf->left), forced.left) : push(std::move(leaf->left));
    forced.right > 0 ? force(std::move(leaf->right), forced.right) : push(std::move(leaf->right));
  }

  // ---- one leaf per thread -----------------------------------------------------------------------------

  bool is_for_one_thread(const Leaf& leaf) const {
    return rows_.may_take_one_thread(leaf) && rows_.estimated_ns(leaf) <= alone_ns_;
  }

  // Threads are woken once for all remaining splits, so that even small splits pay.
  bool is_worth_splitting_ahead() const {
    if (n_to_come() < 2) return false;
    double ns = static_cast<double>(n_to_come()) * rows_.least_ns();
    for (const auto& leaf : heap_) ns += rows_.estimated_ns(*leaf);
    return ns >= worth_a_wake_up_ns;
  }

  // Each thread splits the next leaf that no thread has taken, until the next leaf is too large for one thread or the
  // tree is complete.
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

  // The first leaf in split order, as far as it is known, that is neither split nor taken; or a leaf soon after it
  // whose histogram is in this worker's cache. New leaves will come before about half of the waiting ones.
  Leaf* next_leaf(int worker) {
    const std::size_t most_ahead = 2 * static_cast<std::size_t>(n_threads_);
    Leaf* found = nullptr;
    std::size_t n_ahead = 0;
    Growth::for_each_turn((n_to_come() + 1) / 2, soon_, [&](Leaf* leaf) {
      if (!leaf->is_split() && !leaf->is_taken && is_for_one_thread(*leaf)) {
        if (found == nullptr || leaf->made_by == worker) found = leaf;
        if (leaf->made_by == worker) return false;
      }
      n_ahead += leaf->is_split() || found != nullptr;
      return n_ahead < most_ahead;
    });
    return found;
  }

  void split_taken(Leaf& leaf, int worker, std::unique_lock<std::mutex>& lock) {
    LeafSplit<Leaf> split{.leaf = &leaf, .searches = n_to_come() > 1};
    leaf.is_taken = true;
    ++n_taken_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      interrupt_.check();
      carry_out({&split, 1}, {1, worker});
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    leaf.is_taken = false;
    --n_taken_;
    if (failure)
      is_given_up_ = true;
    else
      settle(split);
    commit_splits();
    n_settled_.fetch_add(1, std::memory_order_release);
    news_.notify_all();
    if (failure) std::rethrow_exception(failure);
  }

  // Another thread will finish its split soon; sleeping takes longer than most splits.
  void wait_for_news(std::unique_lock<std::mutex>& lock) {
    const std::size_t seen = n_settled_.load(std::memory_order_relaxed);
    const auto has_come = [&] { return n_settled_.load(std::memory_order_acquire) != seen; };
    lock.unlock();
    for (int i = 0; i < 64 && !has_come(); ++i) std::this_thread::yield();
    interrupt_.check();
    lock.lock();
    news_.wait_for(lock, Interrupt::poll_interval, has_come);
  }

  bool is_forcing_ = false;
  double alone_ns_ = 0;  // splits that take no longer are done by one thread

  // While each thread splits a leaf, the mutex protects the members below and the leaves of the tree.
  std::mutex mutex_;
  std::condition_variable news_;
  std::atomic<std::size_t> n_settled_{0};
  std::size_t n_taken_ = 0;
  bool is_given_up_ = false;
  std::vector<Leaf*> soon_;
};

}  // namespace spinney
