// Gradient boosting: rounds of trees, each fitted to the gradient of a loss at the scores so far.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "learn/boosting_state.h"
#include "learn/dropping.h"
#include "learn/gradients.h"
#include "learn/growing.h"
#include "learn/leaf_setting.h"
#include "learn/sampling.h"

namespace spinney {

class Boosting {
 public:
  // Tables, targets and weights must outlive this. `held_out.table` may be null, or the same table: then the rows held
  // out are those that have a weight there. `coded` are these tables in codes; null: they are coded here.
  Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
           Interrupt& interrupt, std::shared_ptr<const CodedTable> coded = nullptr);

  // Gradients and hessians of the present scores, by score column and row, not yet times the rows' weights: a loss from
  // outside has them set before each round.
  void set_gradients(const double* gradients, const double* hessians) { gradients_.set(gradients, hessians); }

  // One more round: a tree for each score column; with vector leaves these are the same but for their
  // values. `judges_out_of_bag`: whether the losses of rows not drawn are wanted.
  void advance(Interrupt& interrupt, bool judges_out_of_bag = true);

  // Sets the leaves of an earlier tree of a score column anew by these rows, and adds it to their scores: the trees of all
  // columns in turn make a round. `leaf` is by row.
  Tree refit(std::uint32_t score, const Tree& old, std::span<const std::uint32_t> leaf, double decay);

  // Scores without the rounds that the next one will drop.
  std::vector<RowVector<double>> scores_to_fit() const { return dropped_.scores_to_fit(); }

  // By round: what its trees are multiplied by once so many rounds are done, as later ones have dropped them.
  std::vector<double> worths(std::uint32_t n_rounds) const { return dropped_.worths(n_rounds); }

  // Mean loss at the present scores, without what does not depend on them; NaN, here and below, if it is one from outside.
  double training_loss();  // the gradients of the next round come with it
  double held_out_loss() const { return gradients_.mean_loss(state_.held_out); }

  // Mean loss, before and after the last round, of rows that it did not draw; NaN where it drew all.
  struct OutOfBagLoss {
    double before, after;
  };
  OutOfBagLoss out_of_bag_loss() const { return {loss_before_, gradients_.mean_loss(out_of_bag())}; }
  std::span<const Row> out_of_bag() const { return sample_.out_of_bag(); }  // and rows of no weight

  const std::vector<Tree>& trees() const { return trees_; }
  const BoostingRows& rows() const { return state_.rows; }
  const BoostingRows& held_out() const { return state_.held_out; }
  std::uint32_t n_rounds() const { return state_.round; }
  const std::vector<std::vector<std::uint32_t>>& dropped() const { return dropped_.by_round(); }  // if any may be
  int n_threads() const { return state_.n_threads(); }

 private:
  void begin_step();
  void grow_round(Interrupt& interrupt, bool judges_out_of_bag);

  BoostingState state_;
  Gradients gradients_;
  RowSample sample_;
  LeafSetting leaves_;
  DroppedRounds dropped_;
  std::unique_ptr<RoundGrower> grower_;
  double loss_before_ = 0;  // the last round, of the rows out of bag
  std::vector<Tree> trees_;
};

}  // namespace spinney
