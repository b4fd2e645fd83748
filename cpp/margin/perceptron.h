// The perceptron: passes over the rows and updates on misclassified rows only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"

namespace spinney {

struct PerceptronOptions {
  double rate = 1.0;            // η
  double squared_radius = 1.0;  // R², the step size of the intercept
  std::size_t max_epochs = 1000;
  bool averaged = false;
  bool shuffles = false;
  std::uint64_t seed = 0;
  double l1 = 0.0, l2 = 0.0;  // penalties of the size and of half the square of each weight, per row
  double tolerance =
      -1.0;  // least decrease of the mean loss that counts; negative: epochs go on until all rows are right
  std::size_t patience = 5;   // epochs without such a decrease before the end
  std::vector<double> start;  // weights to continue from, and the intercept; empty: zeros
  bool grows_radius = false;  // squared_radius is that of earlier rows, and becomes the largest of the rows so far
};

struct PerceptronEnd {
  std::vector<double> weights;  // of the terms, and the intercept
  std::vector<double> last;     // those after the last row; differ from the weights if these are means
  double squared_radius = 0.0;
  std::size_t n_updates = 0, n_epochs = 0;
  bool is_clean = false;    // whether the last epoch had no misclassified row
  bool is_settled = false;  // whether the loss no longer decreased
};

// rows: n_rows times n_terms, row-major; sides: +1 or -1; steps: weight of each row's update.
PerceptronEnd fit_perceptron(const double* rows, std::size_t n_rows, std::size_t n_terms, std::span<const double> sides,
                             std::span<const double> steps, const PerceptronOptions& options, Interrupt& interrupt);

}  // namespace spinney
