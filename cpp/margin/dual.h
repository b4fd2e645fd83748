// The dual problem of kernel machines: minimise ½ β'Kβ - z'β + ε |β|₁ with lowest ≤ β ≤ highest and Σ β = 0.
//
// Classification: z is +1 or -1, ε is 0, and β = y α lies between 0 and C or between -C and 0. Regression: z is the
// target, ε the width of the tube, and β lies between -C and C.
//
// residual = z - Kβ is the decrease of the objective per unit of β, except for ε. At the optimum no row that may
// increase has a larger residual (after its ε) than one that may decrease; the largest such difference is the
// violation, and a solution is accepted if it is below the tolerance.
//
// ν machines also fix the sums of the non-negative and of the non-positive β: Σ β = ± side_sum. Steps are then between
// rows of one side, and each side has a level, the common residual of its free rows. A regression row occurs twice,
// once on each side.
//
// Large problems are solved by working sets: the rows with the largest violations and some of the previous set, with
// their small kernel matrix, by steps of two rows each (SMO, second-order choice of the partner). The other residuals
// are then updated, which needs only the kernel rows of the changed β. Rows that are firmly at a bound are shrunk, that
// is left out for some time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "margin/rows.h"

namespace spinney {

struct DualProblem {
  std::vector<std::uint32_t> rows;  // rows of the table
  std::vector<double> z, lowest, highest;
  double insensitive = 0.0;
  double side_sum = 0.0;  // positive: the sums of both sides are fixed

  bool has_side_sums() const { return side_sum > 0; }
  bool is_below(std::size_t i) const { return lowest[i] < 0; }  // for rows that are on one side
};

struct DualOptions {
  double tolerance = 1e-3;
  std::size_t cache_bytes = 0;
  std::size_t most_steps = 0;
  bool shrinking = true;
  bool is_double = false;  // store kernel values as doubles, not floats
};

struct DualSolution {
  std::vector<double> beta, residual;
  double intercept = 0.0, violation = 0.0;
  double half_width =
      0.0;  // with fixed side sums: half the difference of the levels, positive side minus negative side
  std::size_t n_steps = 0;
  bool is_bounded = true;  // false: the objective fell below what any usable margin allows
};

// start: initial β and its residual; or β alone; or empty: zero.
DualSolution solve_dual(const KernelRows& kernel, const DualProblem& problem, const DualOptions& options,
                        DualSolution start, int n_threads, Interrupt& interrupt);

}  // namespace spinney
