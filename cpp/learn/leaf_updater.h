// Sets the leaf values of grown trees and adds the trees to the scores of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/boosted_tree.h"
#include "learn/gradients.h"
#include "learn/sampling.h"

namespace spinney {

class LeafUpdater {
 public:
  LeafUpdater(BoostingState& state, const Gradients& gradients, const RowSample& sample)
      : state_(state), gradients_(gradients), sample_(sample) {}

  // Call it before the rounds of a step, and before a round that is scaled down because it has dropped others.
  void begin_step() { step_scores_ = state_.rows.scores; }
  void begin_round(double scale) { scale_ = scale; }

  // `rows` are those of the tree, leaf by leaf. Sums are by leaf, of unrounded gradients and of weights.
  std::vector<WholeSums> gradient_sums(const std::vector<GrownLeaf>& leaves, std::uint32_t score,
                                       std::span<const Row> rows) const;
  std::vector<std::int64_t> weight_sums(const std::vector<GrownLeaf>& leaves, std::span<const Row> rows) const;
  void set_values(BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;
  void add_linear(BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;
  void update_weights(BoostedTree& grown, std::span<const Row> rows) const;
  void average(Tree& tree) const;
  void add_to_scores(const BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;

  // Adds trees of scores from `first` on, which differ only in their values, to rows that they were not grown on.
  void walk_others(std::span<const BoostedTree> grown, std::uint32_t first) const;
  void walk(std::span<const BoostedTree> grown, std::uint32_t first, const Codes& codes, std::span<const Row> rows,
            BoostingRows& to) const;

  // Refits the leaves of an earlier tree on these rows, and adds it to their scores. `leaf` is by row.
  Tree refit(std::uint32_t score, const Tree& old, std::span<const std::uint32_t> leaf, double decay) const;

 private:
  double refitted_value(const GrownLeaf& leaf, std::uint32_t score, std::span<const Row> rows) const;

  BoostingState& state_;
  const Gradients& gradients_;
  const RowSample& sample_;
  std::vector<RowVector<double>> step_scores_;  // before the rounds of a step, if leaves are refitted
  double scale_ = 1;                            // scale of a step after dropped rounds
};

}  // namespace spinney
