// The dual of kernel machines: least ½ β'Kβ - z'β + ε |β|₁ with lowest ≤ β ≤ highest and Σ β = 0.
//
// Two classes: z is +1 or -1, ε is 0, and β, which is y α, lies between 0 and C or between -C and 0. Values: z is the
// target, ε the width of the tube, and β lies between -C and C.
//
// pull = z - Kβ is what a row would gain per unit of β, but for ε. At the optimum no row that may go up has more (after its
// ε) than one that may go down; the largest such difference is the violation, and the solution is good to a tolerance if it
// is below.
//
// Of ν machines the sums of both sides, of what is at least 0 and of what is at most 0, are given too: Σ β = ± side_sum. Then
// steps go between rows of one side, and each side has a level of its own that the pulls of its free rows come to. A row of
// a regression is there twice, once on each side.
//
// Large problems are solved by working sets: the rows that violate most and those that were at work before, with their
// small kernel matrix, by steps of two rows each (SMO, second-order choice of the partner). Then all other pulls follow,
// which needs the kernel rows of what has changed alone. Rows that sit firmly at a bound are left out in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "margin/rows.h"

namespace spinney {

struct DualProblem {
  std::vector<std::uint32_t> rows;  // of the table
  std::vector<double> z, lowest, highest;
  double insensitive = 0.0;
  double side_sum = 0.0;  // positive: sums of both sides are kept

  bool keeps_sides() const { return side_sum > 0; }
  bool is_below(std::size_t i) const { return lowest[i] < 0; }  // of rows that are on one side
};

struct DualOptions {
  double tolerance = 1e-3;
  std::size_t cache_bytes = 0;
  std::size_t most_steps = 0;
  bool shrinking = true;
  bool is_double = false;  // whether kernel values are kept as doubles, not as floats
};

struct DualSolution {
  std::vector<double> beta, pull;
  double intercept = 0.0, violation = 0.0;
  double half_width =
      0.0;  // where sides are kept: half the difference of their levels, the positive side's less the other's
  std::size_t n_steps = 0;
  bool is_bounded = true;  // false: the objective fell below anything that a margin worth the name allows
};

// start: where β begins and its pull; or β alone; or empty: from zero.
DualSolution solve_dual(const KernelRows& kernel, const DualProblem& problem, const DualOptions& options,
                        DualSolution start, int n_threads, Interrupt& interrupt);

}  // namespace spinney
