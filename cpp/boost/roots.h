// Root histograms of several trees that are grown on the same rows, such as the classes of a round.
//
// Eight trees are interleaved: the codes of a row are read once for all of them, and its pairs are added by one
// instruction where vectors are wide enough.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "boost/kernels.h"
#include "boost/tiles.h"

namespace spinney {

class RootHistograms {
 public:
  // Returns whether they are worth their memory and the time to separate them.
  static bool are_worth_it(const Tiles& tiles, std::size_t n_table_rows, std::size_t n_rows, std::uint32_t n_trees,
                           int n_threads);

  RootHistograms(const Tiles& tiles, std::size_t n_table_rows, std::uint32_t n_trees, int n_threads);

  // By row of the table; set by the caller.
  Packed* pairs(std::uint32_t tree) { return pairs_[tree].data(); }
  const Packed* pairs(std::uint32_t tree) const { return pairs_[tree].data(); }

  void fill(std::span<const Row> rows, Interrupt& interrupt);
  const Packed* of(std::uint32_t tree) const { return histograms_.data() + tree * tiles_.n_cells(); }

 private:
  void fill_eight(std::uint32_t first_tree, std::uint32_t n_trees, std::span<const Row> rows, Interrupt& interrupt);
  void add_rows(std::uint32_t first_tree, std::uint32_t n_trees, std::span<const Row> rows, Packed* eights) const;
  void take_apart(std::uint32_t first_tree, std::uint32_t n_trees, const std::vector<std::uint8_t>& used);

  const Tiles& tiles_;
  const int n_threads_;
  std::vector<LargeArray<Packed>> pairs_;   // by tree
  std::vector<LargeArray<Packed>> eights_;  // by worker: eight sums per cell
  LargeArray<Packed> histograms_;           // tree by tree
};

}  // namespace spinney
