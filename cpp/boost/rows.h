// The rows of a boosted tree behind five calls: the seam behind which they lie in memory (boost/local_rows.h,
// boost/vector_rows.h), on the workers of a cluster (boost/partitioned_tree.h) or on a GPU.
//
// The rows have the codes of their columns and their gradients; the grower (boost/grower.h) decides which leaves are split.
// Each call takes a batch of nodes:
//   plant       sums and best split of the root
//   partition   assigns the rows of nodes to their children
//   histograms  adds up histograms of children and searches them; a split with too few rows on a side is searched anew
//   leaf_sums   sums of the gradients of leaves, before rounding
//   add         adds the values of leaves to the scores
// The last two need gradients and scores, so learn/leaf_setting.h has them for rows in memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "boost/histograms.h"

namespace spinney {

struct Crew {  // the threads of a call: several, or one that is a worker among others
  int n_threads = 1, worker = 0;
};

enum class ChildHistogram : std::uint8_t { none, left, right };  // the child whose histogram is added up

// A split that is carried out: by `partition`, then, after the grower has made the children, by `histograms`.
template <class Leaf>
struct LeafSplit {
  Leaf* leaf = nullptr;
  bool searches = true;  // the children may be split in turn

  ChildHistogram child = ChildHistogram::none;  // set by partition; the sibling's histogram is found by subtraction
  std::size_t n_left = 0;                       // set by partition
  Histogram filled = nullptr;                   // of `child`, if partition has added it up

  std::unique_ptr<Leaf> left = nullptr, right = nullptr;  // null: a side has too few rows
  typename Leaf::Split recounted = {};                    // the leaf's best split with its rows counted, in that case
  bool is_pending = false;                                // counts are requested and not there yet

  Leaf& small() const { return child == ChildHistogram::left ? *left : *right; }
  Leaf& large() const { return child == ChildHistogram::left ? *right : *left; }
};

// What a grower requires of the rows of its tree. `release` frees histograms; `rejoin` undoes a partition.
template <class R>
concept TreeRows = requires(R rows, typename R::Leaf& leaf, std::span<LeafSplit<typename R::Leaf>> splits, Crew crew) {
  rows.plant(leaf);
  rows.partition(splits, crew);
  rows.histograms(splits, crew);
  rows.release(leaf, crew.worker);
  rows.rejoin(leaf, std::size_t{});
};

// Rows whose calls return at once: how many nodes are best split in one call, how long the root, a split and the smallest
// split take about, and whether threads may split a leaf each.
template <class R>
concept PresentRows = TreeRows<R> && requires(const R rows, const typename R::Leaf& leaf) {
  { rows.n_rows() } -> std::convertible_to<std::size_t>;
  { rows.most_nodes() } -> std::convertible_to<std::size_t>;
  { rows.estimated_ns() } -> std::convertible_to<double>;
  { rows.estimated_ns(leaf) } -> std::convertible_to<double>;
  { rows.least_ns() } -> std::convertible_to<double>;
  { rows.may_take_one_thread(leaf) } -> std::convertible_to<bool>;
};

}  // namespace spinney
