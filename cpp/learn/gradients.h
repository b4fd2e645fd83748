// Gradients of a round and losses of rows, from the components of the loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "boost/kernels.h"
#include "learn/boosting_state.h"

namespace spinney {

class Gradients {
 public:
  explicit Gradients(BoostingState& state);

  // At the current scores, with losses by chunk unless `losses` is null.
  void fill(std::vector<LossSum>* losses);

  // The same without totals; returns the sums of the gradients, chunk by chunk and score by score.
  std::vector<GradientSums> fill_chunks(std::vector<LossSum>* losses);

  // Sets those of an external loss, by score column and row, without weights.
  void set(const double* gradients, const double* hessians);

  bool is_known() const { return is_known_; }  // whether they belong to the current scores
  void set_known(bool is_known) { is_known_ = is_known; }

  Pair* of(std::uint32_t score) { return pairs_[score].data(); }
  const Pair* of(std::uint32_t score) const { return pairs_[score].data(); }

  // By score: sums of absolute values, which determine the units.
  std::vector<GradientSums>& totals() { return totals_; }
  const std::vector<GradientSums>& totals() const { return totals_; }

  // Rounds the pairs of a score to integers.
  Units quantise(std::uint32_t score, Packed* packed) const;

  double mean_loss(const BoostingRows& rows) const;  // NaN for an external loss
  double mean_loss(std::span<const Row> out_of_bag) const;
  std::vector<LossSum> chunk_losses(const BoostingRows& rows) const;

 private:
  void find_delta(PlacedComponent& component) const;
  void find_cuts();
  void fill_component(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                      LossSum* loss);
  void fill_ordinal(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                    LossSum* loss);
  void fill_distribution(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                         LossSum* loss);
  void fill_classes(const PlacedComponent& component, std::size_t begin, std::size_t end, GradientSums* sums,
                    LossSum* loss);
  LossSum sum_of_losses(const BoostingRows& rows, std::size_t begin, std::size_t end) const;

  BoostingState& state_;
  std::vector<LargeArray<Pair>> pairs_;  // by score
  std::vector<GradientSums> totals_;     // by score
  bool is_known_ = false;
};

}  // namespace spinney
