// The rows of a boosted tree behind five calls. The implementations store them in memory (boost/local_rows.h,
// boost/vector_rows.h), on the workers of a cluster (boost/partitioned_tree.h) or on a GPU.
//
// The rows have bin codes and gradients; the grower (boost/grower.h) decides which leaves are split. Each call takes a
// batch of nodes:
//   init_root   sums and best split of the root
//   partition   assigns the rows of nodes to their children
//   histograms  sums histograms of children and searches them; a split with too few rows on a side is searched again
//   leaf_sums   sums of the gradients of leaves, before rounding
//   add         adds the values of leaves to the scores
// The last two need gradients and scores, so learn/leaf_updater.h has them for rows in memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boost/histograms.h"

namespace spinney {

struct ThreadTeam {  // the threads of a call: several, or one worker of a pool
  int n_threads = 1, worker = 0;
};

enum class ChildHistogram : std::uint8_t { none, left, right };  // the child whose histogram is summed

// A split that is applied: by `partition` and then, after the grower has created the children, by `histograms`.
template <class Leaf>
struct LeafSplit {
  Leaf* leaf = nullptr;
  bool searches = true;  // the children may be split as well

  ChildHistogram child = ChildHistogram::none;  // set by partition; the sibling's histogram follows by subtraction
  std::size_t n_left = 0;                       // set by partition
  Histogram filled = nullptr;                   // histogram of `child`, if partition has summed it

  std::unique_ptr<Leaf> left = nullptr, right = nullptr;  // null: a side has too few rows
  typename Leaf::Split recounted = {};                    // in that case, the leaf's best split with its rows counted
  bool is_pending = false;                                // counts are requested and not available yet

  Leaf& small() const { return child == ChildHistogram::left ? *left : *right; }
  Leaf& large() const { return child == ChildHistogram::left ? *right : *left; }
};

// The interface of a tree's rows. `release` frees histograms; `rejoin` undoes a partition.
template <class R>
concept TreeRows =
    requires(R rows, typename R::Leaf& leaf, std::span<LeafSplit<typename R::Leaf>> splits, ThreadTeam team) {
      rows.init_root(leaf);
      rows.partition(splits, team);
      rows.histograms(splits, team);
      rows.release(leaf, team.worker);
      rows.rejoin(leaf, std::size_t{});
    };

// Additional interface of rows whose calls return immediately: the best number of nodes per call, the approximate time
// for a split, and whether one thread may split a leaf while others split other leaves.
template <class R>
concept PresentRows = TreeRows<R> && requires(const R rows, const typename R::Leaf& leaf) {
  { rows.n_rows() } -> std::convertible_to<std::size_t>;
  { rows.most_nodes() } -> std::convertible_to<std::size_t>;
  { rows.estimated_ns(leaf) } -> std::convertible_to<double>;
  { rows.may_take_one_thread(leaf) } -> std::convertible_to<bool>;
};

}  // namespace spinney
