// Rows down all trees of a forest: a block of rows is copied once to where its values lie side by side, then goes down
// tree after tree, so the sums over trees come out the same for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/compact.h"
#include "tree/forest.h"

namespace spinney {

class ForestWalker {
 public:
  explicit ForestWalker(const Forest& forest) : forest_(forest), compact_(forest.nodes) {}

  // out[row] += the values of its leaves in trees first … last - 1. `skip`, if any, has a bit per row for each of these
  // trees, in whole 64-bit words: set bits are left out, and n_used[row] counts the rest.
  void sum(const Table& table, std::size_t first, std::size_t last, std::span<const std::uint64_t> skip, int n_threads,
           Interrupt& interrupt, double* out, std::uint32_t* n_used) const;

  // leaf[row * n_trees + t] = the leaf of the row in tree t, counted within the tree.
  void apply(const Table& table, int n_threads, Interrupt& interrupt, std::uint32_t* leaf) const;

  // The sum over trees for one row, given as the numbers of all its columns.
  void sum_one(const double* row, double* out) const;

 private:
  static constexpr std::size_t block_rows = 512, lanes = 8;
  struct Block;
  template <class Body>
  void for_each_block(const Table& table, int n_threads, Interrupt& interrupt, Body&& body) const;
  void walk(const Block& block, const Table& table, std::span<const std::uint32_t> members, std::uint32_t root,
            std::uint32_t* leaf) const;
  template <bool categories>
  void walk_copies(const Block& block, std::span<const std::uint32_t> members, std::uint32_t root,
                   std::uint32_t* leaf) const;

  const Forest& forest_;
  CompactNodes compact_;
};

}  // namespace spinney
