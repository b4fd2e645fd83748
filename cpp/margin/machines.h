// Several kernel machines on one table: for several classes and several penalties.
#pragma once

#include <span>
#include <vector>

#include "margin/dual.h"

namespace spinney {

// Bounds of the problems are for a penalty of 1. Returns the solutions of each problem for each of the ascending
// penalties: each starts from the previous one. Problems are solved in parallel or, if there is one, by all threads.
std::vector<std::vector<DualSolution>> fit_machines(const KernelRows& kernel, const std::vector<DualProblem>& problems,
                                                    std::span<const double> penalties, const DualOptions& options,
                                                    int n_threads, Interrupt& interrupt);

// A range of support vectors and their coefficients, which a machine sums.
struct MachinePart {
  std::uint32_t machine, first, n;
  const double* coefficients;
};

// Data for prediction: kernel values between a row and the support vectors, summed in parts.
struct Machines {
  Kernel kernel;
  std::size_t n_terms, n_vectors;
  const double* vectors;  // n_vectors times n_terms; null: kernel values are given instead of terms
  std::vector<MachinePart> parts;
  std::span<const double> intercepts;
};

// out: n_rows times the number of machines. rows: row-major.
void decide(const Machines& machines, const double* rows, std::size_t n_rows, int n_threads, Interrupt& interrupt,
            double* out);

}  // namespace spinney
