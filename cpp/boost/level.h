// One split for all nodes of a level, for symmetric trees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/split.h"
#include "boost/tiles.h"

namespace spinney {

// A node that may be split.
struct LevelNode {
  const Packed* histogram;
  NodeTerms terms;
};

// Searches the columns of a level.
class LevelSearch {
 public:
  LevelSearch(const Coding& coding, const Tiles& tiles, const BoostParams& params, Units units,
              const SplitSearch& search)
      : coding_(coding), tiles_(tiles), params_(params), units_(units), search_(search) {}

  // The split with the largest total gain over the nodes; a node that would get too small a side is not split and gains
  // nothing. `columns` selects the columns. The sums of the left side are separate for each node.
  BoostSplit best(std::span<const LevelNode> nodes, const std::vector<std::uint8_t>& columns, int n_threads) const;

  // The split applied to one of the nodes: with that node's sums, and no gain if a side would be too small.
  BoostSplit of_node(const BoostSplit& split, const LevelNode& node) const;

 private:
  struct Scratch {
    std::vector<double> gains, left_gradient, left_hessian;  // by cut
    std::vector<Packed> cells, total;                        // of a column
    std::vector<std::uint32_t> order;                        // order of categories
    std::vector<double> steps;

    void start(std::size_t n_cuts) {
      gains.assign(n_cuts, 0.0);
      left_gradient.resize(n_cuts);
      left_hessian.resize(n_cuts);
    }
    void set(std::size_t cut, Packed left) {
      left_gradient[cut] = static_cast<double>(gradient_of(left));
      left_hessian[cut] = static_cast<double>(hessian_of(left));
    }
  };
  BoostSplit best_of_column(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch) const;
  void try_cuts(std::span<const LevelNode> nodes, std::uint32_t f, bool missing_left, Scratch& scratch,
                BoostSplit& best) const;
  void try_categories(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch, BoostSplit& best) const;
  void sort_categories(std::span<const LevelNode> nodes, std::uint32_t f, Scratch& scratch) const;
  double gain(const NodeTerms& terms, double g_left, double h_left, double extra_l2) const;
  void add_gains(const NodeTerms& terms, double extra_l2, bool in_order, Scratch& scratch) const;
  static bool offer(double gain, BoostSplit& best);

  const Coding& coding_;
  const Tiles& tiles_;
  const BoostParams& params_;
  const Units units_;
  const SplitSearch& search_;
};

}  // namespace spinney
