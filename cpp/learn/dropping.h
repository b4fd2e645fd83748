// Rounds that leave some of the earlier ones out (Rashmi and Gilad-Bachrach 2015, "DART").
//
// The trees of a round are fitted as if the rounds dropped were not there, and would do their work a second time if all of it
// were added: the new round counts for a (k + 1)-th, the k dropped ones for k of k + 1 parts of what they did.
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

  // Which of the rounds so far the next one does without, ascending. At least one, as published, unless it is one of those
  // that drop nothing.
  std::vector<std::uint32_t> draw() const;

  void take_off(std::span<const std::uint32_t> rounds) const;
  void put_back(std::vector<std::uint32_t> rounds);

  // What is needed to take a tree off again.
  void remember(std::vector<std::uint32_t> cuts) {
    if (state_.params.drop_rate > 0) cuts_.push_back(std::move(cuts));
  }

  // By round: what its trees are multiplied by once so many rounds are done, as later ones have dropped them.
  std::vector<double> worths(std::uint32_t n_rounds) const;

  // Scores without the rounds that the next one will drop.
  std::vector<RowVector<double>> scores_to_fit() const;

  const std::vector<std::vector<std::uint32_t>>& by_round() const { return dropped_; }

 private:
  void add(std::span<const std::uint32_t> rounds, const std::vector<double>& worth, double factor, const Codes& codes,
           std::span<const Row> rows, std::vector<RowVector<double>>& scores) const;

  BoostingState& state_;
  const std::vector<Tree>& trees_;
  std::vector<std::vector<std::uint32_t>> cuts_;     // by tree, if rounds may be dropped
  std::vector<std::vector<std::uint32_t>> dropped_;  // by round
};

}  // namespace spinney
