// Values and derivatives of losses that are distributions, for several rows.
#pragma once

#include <cstddef>

#include "loss/table.h"

namespace spinney {

struct DistributionRows {
  const double* target;
  const double* const* scores;  // by score
  std::size_t n;
};

void fill_distribution_losses(Loss loss, double parameter, const DistributionRows& rows, double* losses);

// By score: gradients and hessians of the rows, without weights.
void fill_distribution_gradients(Loss loss, double parameter, const DistributionRows& rows, double* const* gradients,
                                 double* const* hessians);

// Returns the value that a score outside of the bounds of its parameter counts as.
double bounded_score(Loss loss, std::uint32_t score, double parameter, double value);

}  // namespace spinney
