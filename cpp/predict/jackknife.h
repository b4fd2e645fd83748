// Prediction intervals by the jackknife+ after bootstrap (Kim, Xu and Barber 2020).
//
// For training row i, its error is centred at the mean of the trees for which it is out of bag; the interval covers a
// given weight of these on each side. Bit masks mark these trees, so that the sums are looked up eight trees at a time,
// in an order that is the same for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/interrupt.h"

namespace spinney {

struct Errors {
  std::size_t n_trees = 0;
  std::span<const std::uint8_t> unseen;  // n_bytes() x rows: trees 0 … 7 of every row, the lowest bit first; …
  std::span<const double> error;         // by row
  std::span<const double> weight;        // by row; empty: 1
  double needed = 0;                     // weight of the rows that an end must include

  std::size_t n_bytes() const { return (n_trees + 7) / 8; }
};

// Lower and upper end for each query, given the prediction of each tree (query after query); infinite if all rows
// together have less than the needed weight.
void jackknife_plus(const Errors& errors, std::span<const double> by_tree, int n_threads, Interrupt& interrupt,
                    double* out);

}  // namespace spinney
