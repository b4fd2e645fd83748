#include "learn/boosting.h"

#include <limits>
#include <stdexcept>

namespace spinney {

Boosting::Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
                   Interrupt& interrupt, std::shared_ptr<const CodedTable> coded)
    : state_(std::move(rows), std::move(held_out), std::move(params), {}),
      gradients_(state_),
      sample_(state_, gradients_),
      leaves_(state_, gradients_, sample_),
      dropped_(state_, trees_) {
  state_.round = first_round;
  state_.place.n_all_rows = state_.n_rows();
  if (state_.n_rows() >= std::size_t{1} << 30) throw std::invalid_argument("Boosting supports at most 2^30 rows.");
  if (state_.all.empty()) throw std::invalid_argument("No row has a positive weight.");
  state_.set_weight_scale();
  if (!coded)
    coded = std::make_shared<CodedTable>(*state_.rows.table, state_.held_out.table, state_.rows.weight,
                                         state_.params.max_bins, !state_.params.tree.symmetric,
                                         state_.params.tree.forced_splits, state_.n_threads(), interrupt);
  const Table* validation = state_.held_out.table;
  if (coded->table != state_.rows.table || (validation != nullptr && coded->validation_table != validation))
    throw std::invalid_argument("The coded table belongs to another table.");
  state_.coded = std::move(coded);
  grower_ = std::make_unique<RoundGrower>(state_, gradients_, sample_, leaves_);
}

void Boosting::advance(Interrupt& interrupt, bool evaluates_out_of_bag) {
  interrupt.check();
  std::vector<std::uint32_t> dropped = dropped_.draw();
  leaves_.begin_round(1.0 / static_cast<double>(dropped.size() + 1));
  if (!dropped.empty()) {
    dropped_.take_off(dropped);
    gradients_.set_known(gradients_.is_known() && state_.is_external());  // `scores_to_fit` has computed them
  }
  grow_round(interrupt, evaluates_out_of_bag);
  ++state_.round;
  if (state_.params.drop_rate > 0) dropped_.put_back(std::move(dropped));
}

// Rounds of a step fit the gradients of the same scores.
void Boosting::begin_step() {
  if (!state_.begins_step() && !gradients_.totals().empty()) return;
  if (!gradients_.is_known()) gradients_.fill(nullptr);
  if (state_.params.n_parallel_trees > 1) leaves_.begin_step();
}

void Boosting::grow_round(Interrupt& interrupt, bool evaluates_out_of_bag) {
  begin_step();
  sample_.draw();
  gradients_.set_known(false);
  if (state_.params.subsample < 1 && evaluates_out_of_bag) loss_before_ = gradients_.mean_loss(out_of_bag());
  for (BoostedTree& grown : grower_->grow(interrupt)) {
    trees_.push_back(std::move(grown.tree));
    dropped_.remember(std::move(grown.cut));
  }
}

Tree Boosting::refit(std::uint32_t score, const Tree& old, std::span<const std::uint32_t> leaf, double decay) {
  if (score == 0) {
    begin_step();
    gradients_.set_known(false);
  }
  Tree tree = leaves_.refit(score, old, leaf, decay);
  if (score + 1 == state_.n_scores()) ++state_.round;
  return tree;
}

double Boosting::training_loss() {
  if (state_.is_external()) return std::numeric_limits<double>::quiet_NaN();
  // Losses with a delta use that of the finished round; or the gradients are still needed.
  if (traits_of(state_.components[0].loss).has_delta || !state_.begins_step()) return gradients_.mean_loss(state_.rows);
  std::vector<LossSum> sums;
  gradients_.fill(&sums);
  return mean_of(sums);
}

}  // namespace spinney
