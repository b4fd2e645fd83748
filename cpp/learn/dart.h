// DART: rounds that drop some of the earlier ones (Rashmi and Gilad-Bachrach 2015).
//
// The trees of a round are fitted without the dropped rounds. Adding them in full would overshoot: if k rounds were
// dropped, the new round gets the factor 1 / (k + 1) and each dropped one k / (k + 1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/boosted_tree.h"
#include "learn/boosting_state.h"

namespace spinney {

class DroppedRounds {
 public:
  DroppedRounds(BoostingState& state, const std::vector<Tree>& trees) : state_(state), trees_(trees) {}

  // The earlier rounds that the next round drops, ascending. At least one, as published, unless the round drops
  // nothing.
  std::vector<std::uint32_t> draw() const;

  void take_off(std::span<const std::uint32_t> rounds) const;
  void put_back(std::vector<std::uint32_t> rounds);

  // Data for subtracting a tree again.
  void remember(std::vector<std::uint32_t> cuts) {
    if (state_.params.drop_rate > 0) cuts_.push_back(std::move(cuts));
  }

  // By round: the factor of its trees after n_rounds rounds, because later rounds have dropped them.
  std::vector<double> round_weights(std::uint32_t n_rounds) const;

  // Scores without the rounds that the next round will drop.
  std::vector<RowVector<double>> scores_to_fit() const;

  const std::vector<std::vector<std::uint32_t>>& by_round() const { return dropped_; }

 private:
  void add(std::span<const std::uint32_t> rounds, const std::vector<double>& round_weight, double factor,
           const Codes& codes, std::span<const Row> rows, std::vector<RowVector<double>>& scores) const;

  BoostingState& state_;
  const std::vector<Tree>& trees_;
  std::vector<std::vector<std::uint32_t>> cuts_;     // by tree, if rounds may be dropped
  std::vector<std::vector<std::uint32_t>> dropped_;  // by round
};

}  // namespace spinney
