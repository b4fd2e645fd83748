// Cuts between ordered classes: the parameters of the ordinal loss.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace spinney {

struct OrdinalRows {
  std::span<const double> target;  // classes: 0, 1, ...
  const double* scores = nullptr;
  const double* weight = nullptr;  // null: all 1
  std::size_t n_classes = 2;
};

// The ascending cuts of least loss at these scores, one fewer than there are classes. They are a function of the rows
// alone, not of earlier cuts, so that a fit that is resumed finds the same.
std::vector<double> best_cuts(const OrdinalRows& rows, int n_threads);

}  // namespace spinney
