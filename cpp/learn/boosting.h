// Gradient boosting: rounds of trees, each fitted to the gradient of a loss at the current scores.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "learn/boosting_state.h"
#include "learn/dart.h"
#include "learn/gradients.h"
#include "learn/leaf_updater.h"
#include "learn/round_grower.h"
#include "learn/sampling.h"

namespace spinney {

class Boosting {
 public:
  // Tables, targets and weights must outlive this object. `held_out.table` may be null, or the same table: then the
  // validation rows are those with a weight there. `coded` are these tables in codes; null: they are coded here.
  Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
           Interrupt& interrupt, std::shared_ptr<const CodedTable> coded = nullptr);

  // Gradients and hessians at the current scores, by score column and row, without weights. For an external loss, set
  // before each round.
  void set_gradients(const double* gradients, const double* hessians) { gradients_.set(gradients, hessians); }

  // Performs one more round: a tree for each score column, or one tree with multi-output leaves.
  // `evaluates_out_of_bag`: whether to compute the loss of rows that were not drawn.
  void advance(Interrupt& interrupt, bool evaluates_out_of_bag = true);

  // Refits the leaves of an earlier tree of a score column on these rows, and adds it to their scores: the trees of all
  // columns in turn form a round. `leaf` is by row.
  Tree refit(std::uint32_t score, const Tree& old, std::span<const std::uint32_t> leaf, double decay);

  // Scores without the rounds that the next round will drop.
  std::vector<RowVector<double>> scores_to_fit() const { return dropped_.scores_to_fit(); }

  // By round: the factor of its trees after n_rounds rounds, because later rounds have dropped them.
  std::vector<double> round_weights(std::uint32_t n_rounds) const { return dropped_.round_weights(n_rounds); }

  // Mean loss at the current scores, without constant terms; NaN, here and below, for an external loss.
  double training_loss();  // computes the gradients of the next round as well
  double held_out_loss() const { return gradients_.mean_loss(state_.held_out); }

  // Mean out-of-bag loss before and after the last round; NaN if all rows were drawn.
  struct OutOfBagLoss {
    double before, after;
  };
  OutOfBagLoss out_of_bag_loss() const { return {loss_before_, gradients_.mean_loss(out_of_bag())}; }
  std::span<const Row> out_of_bag() const { return sample_.out_of_bag(); }  // including rows of weight 0

  const std::vector<Tree>& trees() const { return trees_; }
  const BoostingRows& rows() const { return state_.rows; }
  const BoostingRows& held_out() const { return state_.held_out; }
  std::uint32_t n_rounds() const { return state_.round; }
  const std::vector<std::vector<std::uint32_t>>& dropped() const {
    return dropped_.by_round();
  }  // empty if no round may be dropped
  int n_threads() const { return state_.n_threads(); }

 private:
  void begin_step();
  void grow_round(Interrupt& interrupt, bool evaluates_out_of_bag);

  BoostingState state_;
  Gradients gradients_;
  RowSample sample_;
  LeafUpdater leaves_;
  DroppedRounds dropped_;
  std::unique_ptr<RoundGrower> grower_;
  double loss_before_ = 0;  // out-of-bag loss before the last round
  std::vector<Tree> trees_;
};

}  // namespace spinney
