// Weights as integers in a unit, so that their sums depend neither on the row order nor on the caller's unit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace spinney {

struct FixedWeights {
  std::vector<std::int64_t> by_row;
  double unit = 1;
  bool counts = true;  // no weight is rounded: the unit is the largest number of which all weights are multiples
  double most = 0;     // a bound of the sum: of integers if they are counts, else of the caller's weights

  // Weights that are not counts are rounded so that their sum stays below 2^bits.
  FixedWeights(const double* weight, std::size_t n_rows, std::span<const Row> rows, int bits);

 private:
  bool fix_as_counts(const double* weight, std::span<const Row> rows);
  void round(const double* weight, std::span<const Row> rows, int bits);
};

// The power of two by which products of two numbers below these bounds may be multiplied to stay below 2^bits.
double scale_below(int bits, double bound, double other_bound);

}  // namespace spinney
