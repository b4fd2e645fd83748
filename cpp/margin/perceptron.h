// The perceptron: goes through the rows and learns from its mistakes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

struct PerceptronOptions {
  double rate = 1.0;            // η
  double squared_radius = 1.0;  // R², by which the intercept steps
  std::size_t max_epochs = 1000;
  bool averaged = false;
  bool shuffles = false;
  std::uint64_t seed = 0;
};

struct PerceptronEnd {
  std::vector<double> weights;  // of the terms, and the intercept
  std::size_t n_updates = 0, n_epochs = 0;
  bool is_clean = false;  // whether the last epoch went by without a mistake
};

// rows: n_rows times n_terms, one after the other; sides: +1 or -1; steps: what each row's update counts.
PerceptronEnd fit_perceptron(const double* rows, std::size_t n_rows, std::size_t n_terms, std::span<const double> sides,
                             std::span<const double> steps, const PerceptronOptions& options, Interrupt& interrupt);

}  // namespace spinney
