// Pulls of the pairs of a list.
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

// The rows of a list, largest score first. Arrays are longer than it by `pairs_at_a_time` rows of no weight.
struct RankedRows {
  std::size_t n;
  const double *gain, *weight, *score, *raised;
  const double* discount;      // of the row's place
  const double* change;        // of the discount, if the row were swapped with another of the same score
  double *gradient, *hessian;  // 0 at first
  double floor, slope;         // of what a pull is divided by, in the distance of the scores
};

struct PairKernels {
  // Adds up gradients and hessians where all weights are 1. Returns the sum over pairs of log(1 + e^(worse - better)).
  double (*pull)(const PairedRows& rows);
  // The same with weights, without the sum.
  double (*pull_weighted)(const PairedRows& rows);
  // Adds up those of each row with the rows ranked below it. Returns the sum of the sizes of all pulls.
  double (*pull_by_gain)(const RankedRows& rows);
};
const PairKernels& pair_kernels_of(OfIsa<Isa::base>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx2>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
