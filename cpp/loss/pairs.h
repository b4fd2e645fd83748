// Pulls of the pairs of a list, all of which count alike but for the distance of their scores.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace spinney {

inline constexpr std::size_t pairs_at_a_time = 4;  // whatever the register

// The rows of a list, largest gain first. Arrays are longer than it by `pairs_at_a_time` rows, all 0.
struct PairedRows {
  std::size_t n;
  const double *gain, *weight;
  const double* score;         // less the middle of the list
  const double* raised;        // e to the power of the score
  double *gradient, *hessian;  // 0 at first
  double farthest;             // largest distance of a score from the middle, at most 300
  double near_scores;          // added to the distance of two scores: nearer pairs count no more
};

struct PairKernels {
  // Adds up gradients and hessians where all weights are 1. Returns the sum over pairs of log(1 + e^(worse - better)).
  double (*pull)(const PairedRows& rows);
  // The same with weights, without the sum.
  double (*pull_weighted)(const PairedRows& rows);
};
const PairKernels& pair_kernels_of(OfIsa<Isa::base>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx2>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
