// Sums over the rows of a term-major table, for fitting linear machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

// terms: n_terms times n_rows. An additional last term is 1 for every row.
struct TermTable {
  const double* terms;
  std::size_t n_rows, n_terms;
};

// out[i] = Σ weights[k] terms[k][i], plus the last weight.
void weighted_terms(const TermTable& table, const double* weights, int n_threads, Interrupt& interrupt, double* out);

// Σ of each term times the factors of the rows.
std::vector<double> term_sums(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt);

// Σ of each pair of terms times the factors of the rows: a symmetric matrix.
std::vector<double> term_products(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt);

// Solves A x = b in place of the right sides, for a symmetric positive definite A, which is overwritten. False if A is
// not.
bool solve_positive(std::vector<double>& matrix, std::size_t n, double* right_sides, std::size_t n_sides);

}  // namespace spinney
