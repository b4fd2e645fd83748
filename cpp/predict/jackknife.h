// Ends of intervals by the jackknife+ after bootstrap (Kim, Xu and Barber 2020).
//
// Around the mean of the trees that have not seen training row i lies its error; the interval spans a given amount of
// these on each side. Which trees have not seen a row is told by bits, so that the sums over them are looked up eight
// trees at a time, in an order that is the same for any number of threads.
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
  std::span<const double> weight;        // by row; empty: each counts 1
  double needed = 0;                     // weight of the rows that an end must not leave out

  std::size_t n_bytes() const { return (n_trees + 7) / 8; }
};

// Lower and upper end for each query, given what each tree says of it (query after query); infinite where all the rows
// do not weigh what is needed.
void jackknife_plus(const Errors& errors, std::span<const double> by_tree, int n_threads, Interrupt& interrupt,
                    double* out);

}  // namespace spinney
