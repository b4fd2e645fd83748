// The training rows in the leaves of a forest, and predictions from them.
//
// Each tree distributes a weight of 1 over the training rows in the leaf of a new row; the mean over the trees is the
// weight of the training rows (Meinshausen 2006). Sums run over trees in their order, row by row, so they are the same
// for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

class LeafRows {
 public:
  static constexpr std::uint32_t left_out = UINT32_MAX;  // in place of a leaf: the tree is skipped for this row

  explicit LeafRows(std::size_t n_rows) : n_rows_(n_rows) {}

  // Adds a tree: the leaf of each training row, and the weight it was grown with; rows of weight 0 are excluded.
  void add_tree(std::span<const std::uint32_t> leaf, std::span<const double> amount, std::size_t n_nodes);

  // The smallest target whose cumulative weight fraction is at least each of the ascending `levels`, into out[query *
  // levels.size() + k]; NaN if every tree is skipped. `place[row]` is the rank of a training row's target, `target` the
  // sorted targets. `leaf` has the leaf of each query in each tree, query after query.
  void quantiles(std::span<const std::uint32_t> leaf, std::span<const std::uint32_t> place,
                 std::span<const double> target, std::span<const double> levels, int n_threads, Interrupt& interrupt,
                 double* out) const;

  struct Weights {
    std::vector<std::uint64_t> start;  // of each query, then the end
    std::vector<std::uint32_t> row;    // ascending within a query
    std::vector<double> weight;
  };
  Weights weights(std::span<const std::uint32_t> leaf, int n_threads, Interrupt& interrupt) const;

  // 1 / sum of squared weights: the effective number of rows. NaN if every tree is skipped.
  void effective_rows(std::span<const std::uint32_t> leaf, int n_threads, Interrupt& interrupt, double* out) const;

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_trees() const { return first_node_.size() - 1; }
  std::size_t n_nodes(std::size_t tree) const { return first_node_[tree + 1] - first_node_[tree]; }

 private:
  struct Found;
  struct Scratch;
  void find(const std::uint32_t* leaf, Found& found) const;
  template <class Body>
  void for_each_query(std::span<const std::uint32_t> leaf, std::span<const std::uint32_t> place, int n_threads,
                      Interrupt& interrupt, Body&& body) const;

  std::size_t n_rows_;
  std::vector<std::uint64_t> first_node_{0};  // of each tree, then the end
  std::vector<std::uint64_t> start_{0};       // by node: its first entry; then the end
  std::vector<std::uint32_t> row_;            // by entry
  std::vector<double> weight_in_leaf_;        // by entry: fraction of the weight of its leaf
};

}  // namespace spinney
