// Grown trees get the values of their leaves, and are added to the scores of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/boosted_tree.h"
#include "learn/gradients.h"
#include "learn/sampling.h"

namespace spinney {

class LeafSetting {
 public:
  LeafSetting(BoostingState& state, const Gradients& gradients, const RowSample& sample)
      : state_(state), gradients_(gradients), sample_(sample) {}

  // Before the rounds of a step, and before a round that counts for less as it has dropped others.
  void begin_step() { step_scores_ = state_.rows.scores; }
  void begin_round(double share) { share_ = share; }

  // `rows` are those of the tree, leaf by leaf. Sums are by leaf, of gradients before rounding and of weights.
  std::vector<WholeSums> gradient_sums(const std::vector<GrownLeaf>& leaves, std::uint32_t score,
                                       std::span<const Row> rows) const;
  std::vector<std::int64_t> weight_sums(const std::vector<GrownLeaf>& leaves, std::span<const Row> rows) const;
  void set_values(BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;
  void add_linear(BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;
  void weigh(BoostedTree& grown, std::span<const Row> rows) const;
  void average(Tree& tree) const;
  void add_to_scores(const BoostedTree& grown, std::uint32_t score, std::span<const Row> rows) const;

  // Adds trees of scores from `first` on, which differ in their values alone, to rows that they were not grown on.
  void walk_others(std::span<const BoostedTree> grown, std::uint32_t first) const;
  void walk(std::span<const BoostedTree> grown, std::uint32_t first, const Codes& codes, std::span<const Row> rows,
            BoostingRows& to) const;

  // Sets the leaves of an earlier tree anew by these rows, and adds it to their scores. `leaf` is by row.
  Tree refit(std::uint32_t score, const Tree& old, std::span<const std::uint32_t> leaf, double decay) const;

 private:
  double refitted_value(const GrownLeaf& leaf, std::uint32_t score, std::span<const Row> rows) const;

  BoostingState& state_;
  const Gradients& gradients_;
  const RowSample& sample_;
  std::vector<RowVector<double>> step_scores_;  // before the rounds that belong together, if leaves are refitted
  double share_ = 1;                            // of a step, where its rows have lost others
};

}  // namespace spinney
