// Walks rows down all trees of a forest: a block of rows is read once and goes down tree after tree, so the sums over
// trees are the same for any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/coded.h"
#include "tree/forest.h"

namespace spinney {

class ForestWalker {
 public:
  explicit ForestWalker(const Forest& forest) : forest_(forest) {}

  // out[row] += the values of its leaves in trees first … last - 1. `skip`, if any, has a bit per row for each of these
  // trees, in whole 64-bit words: trees with a set bit are skipped, and n_used[row] counts the others.
  void sum(const Table& table, std::size_t first, std::size_t last, std::span<const std::uint64_t> skip, int n_threads,
           Interrupt& interrupt, double* out, std::uint32_t* n_used) const;

  // leaf[row * n_trees + t] = the leaf of the row in tree t, counted within the tree.
  void apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const;

  // The sum over trees for one row, given as the numbers of all its columns.
  void sum_one(const double* row, double* out) const;

  // Calls take(t, values of the row's leaf) for trees t = first … last - 1.
  template <class Take>
  void visit_one(const double* row, std::size_t first, std::size_t last, Take&& take) const {
    const auto value_of = [&](std::uint32_t f) { return row[f]; };
    if (const CodedForest* coded = ready_.load(std::memory_order_acquire))
      return coded->visit_one(first, last, value_of, take);
    for (std::size_t t = first; t < last; ++t) {
      std::uint32_t at = forest_.root[t];
      while (!forest_.nodes.is_leaf(at)) at = next_node(forest_.nodes, at, value_of);
      take(t, forest_.nodes.value_of(at).data());
    }
  }

  // Codes the forest now, instead of when enough rows have been predicted.
  void prepare(int n_threads, Interrupt& interrupt) const;

  // The coded forest, if n_walks more walks, together with earlier ones, pay for it.
  const CodedForest* coded_for(std::size_t n_walks, int n_threads, Interrupt& interrupt) const;

 private:
  class Block;
  template <class Body>
  void for_each_block(const CodedForest* coded, const Table& table, std::size_t n_trees, int n_threads,
                      Interrupt& interrupt, Body&& body) const;
  void sum_few(const CodedForest& coded, const Table& table, std::size_t first, std::size_t last, int n_threads,
               Interrupt& interrupt, double* out) const;

  const Forest& forest_;
  mutable std::once_flag once_;
  mutable std::optional<CodedForest> coded_;
  mutable std::atomic<const CodedForest*> ready_{nullptr};
  mutable std::atomic<std::size_t> n_walks_{0};  // rows times trees so far
};

}  // namespace spinney
