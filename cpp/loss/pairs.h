// Gradients of the pairs of a ranked list.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace spinney {

inline constexpr std::size_t pairs_at_a_time = 4;  // for every register width

// The rows of a list, largest gain first. Arrays have `pairs_at_a_time` additional rows of zeros.
struct PairedRows {
  std::size_t n;
  const double *gain, *weight;
  const double* score;         // minus the middle of the list
  const double* raised;        // e to the power of the score
  double *gradient, *hessian;  // initially 0
  double farthest;             // largest distance of a score from the middle, at most 300
  double near_scores;          // added to the distance of two scores, which limits the weight of close pairs
};

// The rows of a list, largest score first. Arrays have `pairs_at_a_time` additional rows of weight 0.
struct RankedRows {
  std::size_t n;
  const double *gain, *weight, *score, *raised;
  const double* discount;      // of the row's rank
  const double* change;        // of the discount if the row is swapped with another of the same score
  double *gradient, *hessian;  // initially 0
  double floor, slope;         // of the divisor of a pair's gradient, as a linear function of the score distance
};

struct PairKernels {
  // Sums gradients and hessians with unit weights. Returns the sum over pairs of log(1 + e^(worse - better)).
  double (*gradient_of_pair)(const PairedRows& rows);
  // The same with weights, without the sum.
  double (*weighted_pair_gradients)(const PairedRows& rows);
  // Sums those of each row with the rows ranked below it. Returns the sum of the absolute gradients of all pairs.
  double (*gain_gradients)(const RankedRows& rows);
};
const PairKernels& pair_kernels_of(OfIsa<Isa::base>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx2>);
const PairKernels& pair_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
