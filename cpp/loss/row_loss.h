// Losses of rows in double precision, by name, for use outside the boosting kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "loss/table.h"

namespace spinney {

// A loss with its parameter. For losses with a delta the parameter is delta: see delta_of.
struct NamedLoss {
  Loss loss = Loss::squared;
  double parameter = 0;
  std::vector<double> cuts = {};  // between ordered classes: see best_cuts
  const LossTraits& traits() const { return traits_of(loss); }
};

Loss loss_named(std::string_view name);  // throws std::invalid_argument

// Scores of rows, (n_scores, n_rows), one score column after the other.
struct ScoredRows {
  std::span<const double> target;
  const double* scores;
  std::uint32_t n_scores = 1;
  const double* score(std::uint32_t k) const { return scores + k * target.size(); }
};

std::vector<double> row_losses(const NamedLoss& loss, const ScoredRows& rows);

// By score column and row, without weights. The gradient of a distance loss is 0 where the score equals the target.
struct RowGradients {
  std::vector<double> gradients, hessians;
};
RowGradients row_gradients(const NamedLoss& loss, const ScoredRows& rows);

// The weight of a residual in a loss relative to the target; targets below 1 count as 1.
double relative_weight(double target);

// The smallest value such that at least `fraction` of the weight does not exceed it; the mean of two such values.
double weighted_quantile(std::vector<std::pair<double, double>>& values, double fraction);

// Delta, the distance at which a loss becomes linear, from absolute residuals and their weights.
double delta_of(Loss loss, double fraction, std::vector<std::pair<double, double>>& sizes);

}  // namespace spinney
