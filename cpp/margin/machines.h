// Several kernel machines of one table: those of several classes, and of several penalties.
#pragma once

#include <span>
#include <vector>

#include "margin/dual.h"

namespace spinney {

// Bounds of the problems are those of a penalty of 1. Returns the solutions of each problem for each penalty, which ascend:
// each starts from the one before. Problems are solved side by side, or, where there is one, by all threads.
std::vector<std::vector<DualSolution>> fit_machines(const KernelRows& kernel, const std::vector<DualProblem>& problems,
                                                    std::span<const double> penalties, const DualOptions& options,
                                                    int n_threads, Interrupt& interrupt);

// A run of support vectors and their coefficients, which a machine adds up.
struct MachinePart {
  std::uint32_t machine, first, n;
  const double* coefficients;
};

// What predicts: kernel values of a row and the support vectors, summed in parts.
struct Machines {
  Kernel kernel;
  std::size_t n_terms, n_vectors;
  const double* vectors;  // n_vectors times n_terms; null: kernel values are given in place of terms
  std::vector<MachinePart> parts;
  std::span<const double> intercepts;
};

// out: n_rows times the number of machines. rows: one after the other.
void decide(const Machines& machines, const double* rows, std::size_t n_rows, int n_threads, Interrupt& interrupt,
            double* out);

}  // namespace spinney
