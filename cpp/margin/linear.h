// Sums over the rows of a table of terms, which lie one term after the other: what linear machines are fitted by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

// terms: n_terms times n_rows. Beside the terms there is one more that is 1 throughout, the last.
struct TermTable {
  const double* terms;
  std::size_t n_rows, n_terms;
};

// out[i] = Σ weights[k] terms[k][i], and the last weight.
void weighted_terms(const TermTable& table, const double* weights, int n_threads, Interrupt& interrupt, double* out);

// Σ of each term times the factors of the rows.
std::vector<double> term_sums(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt);

// Σ of each pair of terms times the factors of the rows: a symmetric matrix.
std::vector<double> term_products(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt);

// The solutions x of A x = b, in place of the right sides, for a symmetric positive definite A, which is lost. False if it is not.
bool solve_positive(std::vector<double>& matrix, std::size_t n, double* right_sides, std::size_t n_sides);

}  // namespace spinney
