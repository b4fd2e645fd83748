// Losses of rows in double precision, by name: what is asked of them outside the kernels of boosting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "loss/table.h"

namespace spinney {

// A loss with its parameter. Losses that bend have the place as theirs: see bend_of.
struct NamedLoss {
  Loss loss = Loss::squared;
  double parameter = 0;
  const LossTraits& traits() const { return traits_of(loss); }
};

Loss loss_named(std::string_view name);  // throws std::invalid_argument

// Rows at scores, (n_scores, n_rows), one score column after the other.
struct ScoredRows {
  std::span<const double> target;
  const double* scores;
  std::uint32_t n_scores = 1;
  const double* score(std::uint32_t k) const { return scores + k * target.size(); }
};

std::vector<double> row_losses(NamedLoss loss, const ScoredRows& rows);

// By score column and row, without weights. Where a score is the target of a loss of their distance, its gradient is 0.
struct RowGradients {
  std::vector<double> gradients, hessians;
};
RowGradients row_gradients(NamedLoss loss, const ScoredRows& rows);

// A residual's weight in a loss that is relative to the target; small targets count as 1.
double relative_weight(double target);

// The smallest value that at least `share` of the weight does not exceed; between two values that both would do, their mean.
double weighted_quantile(std::vector<std::pair<double, double>>& values, double share);

// The distance at which a loss bends: sizes of residuals and their weights.
double bend_of(Loss loss, double share, std::vector<std::pair<double, double>>& sizes);

}  // namespace spinney
