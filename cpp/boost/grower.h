// Grows boosted trees best-first, depth-wise, with one split per level (symmetric), or with forced splits first; leaves
// have one value or several. The rows are accessed through the calls of boost/rows.h.
//
// The leaf with the largest gain is split next. Several threads share leaves that are large compared with the rest of
// the tree, together with others that will probably come next. Once the next leaves are small, each thread takes one
// after the other alone, with those it creates, and waits for no other. Splits enter the tree in the order of one
// thread, so none of this changes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/pool.h"
#include "boost/growing_tree.h"
#include "boost/next_splits.h"
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

  // `least_gain_before`: that of the previous tree, or 0.
  BoostedTree grow(double least_gain_before)
    requires PresentRows<Rows>
  {
    auto root = build_root(rows_.n_rows());
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
      else if (n_threads_ == 1)
        split_alone(*heap_.front());
      else
        split_soon(least_gain_before);
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
    double n_apart = 0;  // rows that were split in vain
    for (const auto& leaf : heap_) n_apart += leaf->is_split() ? leaf->n() : 0;
    parallel_for_if_worth(4 * n_apart, heap_.size(), n_threads_, [&](std::size_t i, int) { finish(*heap_[i]); });
    return Growth::assemble();
  }

  const int n_threads_;
  Interrupt& interrupt_;
  Rows rows_;

 private:
  void release(Leaf& leaf) override { rows_.release(leaf, leaf.made_by); }
  void rejoin(Leaf& leaf) override { rows_.rejoin(leaf, leaf.left->n()); }

  ThreadTeam team_for(double estimated_ns) const { return {estimated_ns < worth_a_wake_up_ns ? 1 : n_threads_, 0}; }

  std::vector<LeafSplit<Leaf>> splits_of(std::span<Leaf* const> leaves) const {
    std::vector<LeafSplit<Leaf>> splits(leaves.size());
    for (std::size_t i = 0; i < leaves.size(); ++i) splits[i] = {.leaf = leaves[i], .searches = n_to_come() > 1};
    return splits;
  }

  void split_batch(std::span<Leaf* const> leaves) {
    std::vector<LeafSplit<Leaf>> splits = splits_of(leaves);
    carry_out(splits, {n_threads_, 0});
    for (LeafSplit<Leaf>& split : splits) settle(split);
  }

  void split_alone(Leaf& leaf) {
    LeafSplit<Leaf> split{.leaf = &leaf, .searches = n_to_come() > 1};
    carry_out({&split, 1}, {1, 0});
    settle(split);
  }

  // ---- leaves that come next -----------------------------------------------------------------------------

  // Per thread: sharing a leaf takes several parallel loops, which further leaves of the batch then share.
  static constexpr double ns_to_share = 10'000, ns_to_share_more = 2'000, ns_to_share_next = 5'000;

  // Relative to the last split of the previous tree: gains decrease from tree to tree, by a fifth at the usual learning
  // rate.
  static constexpr double least_probable = 0.5;

  void split_soon(double least_gain_before) {
    constexpr std::size_t most_leaves = 1024;
    NextSplits<Leaf> next(std::min(n_to_come(), most_leaves), params_.depth_wise, least_probable * least_gain_before);
    std::vector<Leaf*> leaves, scratch;
    double ns = 0, least_gain = std::numeric_limits<double>::infinity();
    Growth::for_each_turn(next.most(), scratch, [&](Leaf* leaf) {
      next.add(*leaf, least_gain);
      least_gain = std::min(least_gain, leaf->best.gain);
      if (leaf->is_split()) return true;
      leaves.push_back(leaf);
      ns += rows_.estimated_ns(*leaf);
      return true;
    });
    if (ns < 2 * worth_a_wake_up_ns) return split_alone(*leaves.front());  // others may not be needed
    // each level of the tree takes about as long as the known leaves
    const double n_levels = std::log2(1 + static_cast<double>(n_to_come()) / static_cast<double>(leaves.size()));
    const double ns_to_come = ns * std::max(1.0, n_levels);
    const double most_alone = most_ns_alone(ns_to_come, leaves.size());
    const std::vector<Leaf*> shared = shared_leaves(leaves, most_alone, least_gain_before);
    if (!shared.empty()) return split_batch(shared);
    const double n_workers = std::clamp(ns_to_come / worth_a_wake_up_ns, 2.0, static_cast<double>(n_threads_));
    split_each_alone(next, 4 * most_alone, static_cast<std::size_t>(n_workers));
  }

  // One thread must have finished a leaf and those below it before all threads have finished the rest of the tree.
  double most_ns_alone(double ns_to_come, std::size_t n_leaves) const {
    const double even = n_leaves < static_cast<std::size_t>(n_threads_) ? 0 : ns_to_come / (4.0 * n_threads_);
    return even + n_threads_ * ns_to_share_next;
  }

  bool is_shared(const Leaf& leaf, double most_alone) const {
    return rows_.estimated_ns(leaf) > most_alone || !rows_.may_take_one_thread(leaf);
  }

  // The large leaves among the next: the first, those that will probably be split, and some for threads without work.
  std::vector<Leaf*> shared_leaves(std::span<Leaf* const> leaves, double most_alone, double least_gain_before) const {
    const auto threads = static_cast<std::size_t>(n_threads_);
    std::vector<Leaf*> shared;
    for (std::size_t i = 0; i < std::min(leaves.size(), 4 * threads); ++i) {
      const bool is_probable = i == 0 || leaves[i]->best.gain >= least_gain_before;
      const bool fills_up = i < threads && !rows_.may_take_one_thread(*leaves[i]);
      if ((is_probable || fills_up) && is_shared(*leaves[i], most_alone)) shared.push_back(leaves[i]);
    }
    return shared;
  }

  // Each thread takes the next leaf alone, again and again, until no leaf is left or the next one must be shared. Leaves
  // that will hardly be split are taken when no other is in progress, because undoing a split takes time as well.
  void split_each_alone(NextSplits<Leaf>& next, double most_alone, std::size_t n_workers) {
    std::mutex mutex;  // of everything here and of the tree
    std::condition_variable is_changed;
    std::size_t n_in_progress = 0;
    bool is_over = false;
    const bool searches = n_to_come() > 1;
    parallel_for(n_workers, n_threads_, [&](std::size_t, int worker) {
      std::unique_lock lock(mutex);
      while (!is_over) {
        Leaf* leaf = next.first();
        if (n_in_progress > 0 && (leaf == nullptr || !next.is_first_probable())) {
          is_changed.wait(lock);
          continue;
        }
        if (leaf == nullptr || is_shared(*leaf, most_alone)) break;
        if (!next.is_first_probable()) next.count_all_as_probable();
        const double gain = next.take();
        ++n_in_progress;
        lock.unlock();
        LeafSplit<Leaf> split{.leaf = leaf, .searches = searches};
        try {
          interrupt_.check();
          carry_out({&split, 1}, {1, worker});
          lock.lock();
          --n_in_progress;
          const bool is_split = split.left != nullptr;
          settle(split);  // the leaf is deleted if it has no other split
          for (Leaf* child : {is_split ? leaf->left.get() : nullptr, is_split ? leaf->right.get() : nullptr})
            if (child != nullptr && child->best.gain > 0) next.add(*child, gain);
        } catch (...) {
          if (!lock.owns_lock()) lock.lock();
          is_over = true;
          is_changed.notify_all();
          throw;
        }
        n_in_progress == 0 ? is_changed.notify_all() : is_changed.notify_one();
      }
      is_over = true;
      is_changed.notify_all();
    });
  }

  double estimated_ns(std::span<const LeafSplit<Leaf>> splits) const {
    double ns = 0;
    for (const LeafSplit<Leaf>& split : splits) ns += rows_.estimated_ns(*split.leaf);
    return ns;
  }

  // Threads share the large leaves, then each takes small ones, the largest first.
  void carry_out_by_size(std::span<LeafSplit<Leaf>> splits) {
    const double sum = estimated_ns(splits);
    if (splits.size() == 1 || n_threads_ == 1 || sum < worth_a_wake_up_ns) {
      for (LeafSplit<Leaf>& split : splits) carry_out({&split, 1}, team_for(rows_.estimated_ns(*split.leaf)));
      return;
    }
    const auto ns = [&](const LeafSplit<Leaf>& split) { return rows_.estimated_ns(*split.leaf); };
    std::ranges::stable_sort(splits, std::ranges::greater{}, ns);
    const double even = sum / (2.0 * n_threads_);
    const bool shares = ns(splits.front()) > even + n_threads_ * ns_to_share;
    const double most_alone = even + n_threads_ * (shares ? ns_to_share_more : ns_to_share);
    const auto alone = std::ranges::stable_partition(splits, [&](const LeafSplit<Leaf>& split) {
      return ns(split) > most_alone || !rows_.may_take_one_thread(*split.leaf);
    });
    const std::span<LeafSplit<Leaf>> shared(splits.begin(), alone.begin());
    if (!shared.empty()) carry_out(shared, {n_threads_, 0});
    parallel_for(alone.size(), n_threads_, [&](std::size_t i, int worker) {
      interrupt_.check();
      carry_out({&alone[i], 1}, {1, worker});
    });
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
    std::vector<LeafSplit<Leaf>> splits;
    for (auto& leaf : level) {
      if (!may_split(*leaf)) continue;
      leaf->best = rows_.of_node(best, *leaf);
      if (leaf->best.gain > 0) splits.push_back({.leaf = leaf.get()});
    }
    carry_out_by_size(splits);
    for (LeafSplit<Leaf>& split : splits) take_children(split);
    std::vector<std::unique_ptr<Leaf>> next;
    for (auto& leaf : level) {
      if (leaf->is_split()) {
        record_split(*leaf);
        ++n_leaves_;
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

  // Returns false, with the leaf's best split recounted, if a side has too few rows.
  static bool take_children(LeafSplit<Leaf>& split) {
    Leaf& leaf = *split.leaf;
    leaf.left = std::move(split.left);
    leaf.right = std::move(split.right);
    if (!leaf.is_split()) leaf.best = std::move(split.recounted);
    return leaf.is_split();
  }

  // Splits a leaf regardless of the others.
  bool split_now(Leaf& leaf) {
    LeafSplit<Leaf> split{.leaf = &leaf};
    carry_out({&split, 1}, team_for(rows_.estimated_ns(leaf)));
    if (!take_children(split)) return false;
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

  bool is_forcing_ = false;
};

}  // namespace spinney
