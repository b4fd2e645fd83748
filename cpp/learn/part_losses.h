// Losses of rows: those of one part, and their sums by chunk of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loss/table.h"

namespace spinney {

// A target and its loss: of one score of a row, or of several, such as one for each class.
struct LossPart {
  Loss loss = Loss::squared;
  double parameter = 0;        // Huber: share of the residuals beyond delta is 1 - this; the quantile; Tweedie's power;
                               // the variance of all rows (normal)
  std::uint32_t n_scores = 1;  // score columns: 1, or the number of classes (multinomial)
  double weight = 1;           // of its loss in the sum over all parts
};

// A part among others.
struct PlacedPart : LossPart {
  std::uint32_t first = 0;  // score
  double delta = 0;         // where a loss that bends does so in this round
  double known() const { return traits_of(loss).bends ? delta : parameter; }
};

std::vector<PlacedPart> placed(const std::vector<LossPart>& parts);

struct LossSum {  // of a chunk of rows
  double loss = 0, weight = 0;
  void add(const double* losses, const double* weights, std::size_t n, double factor);
  void count(const double* weights, std::size_t n);
};

// Adds the losses of some rows of a chunk. `scores` are those of the part.
void add_losses(const PlacedPart& part, const double* target, const double* weight, const double* const* scores,
                std::size_t n, LossSum& sum);

// Sums are by chunk, in order.
double mean_of(const std::vector<LossSum>& sums);

// Rows out of bag, of which every second, third … is judged where there are many.
inline constexpr std::size_t most_judged_out_of_bag = 16384;
inline std::size_t step_out_of_bag(std::size_t n) {
  return n <= most_judged_out_of_bag ? 1 : (n + most_judged_out_of_bag - 1) / most_judged_out_of_bag;
}

}  // namespace spinney
