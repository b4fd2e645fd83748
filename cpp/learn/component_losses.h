// Losses of rows: of one loss component, and their sums by chunk of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "loss/table.h"

namespace spinney {

// A component of the loss: a target with one score per row, or several, such as one for each class.
struct LossComponent {
  Loss loss = Loss::squared;
  double parameter = 0;        // Huber: a fraction 1 - this of residuals exceeds delta; the quantile; Tweedie's power;
                               // the variance of all rows (has_location); the number of ordered classes
  std::uint32_t n_scores = 1;  // score columns: 1, or the number of classes (multinomial)
  double weight = 1;           // of its loss in the sum over all components
};

// A component with its position among the others.
struct PlacedComponent : LossComponent {
  std::uint32_t first = 0;        // first score
  double delta = 0;               // the distance at which the loss becomes linear in this round
  std::vector<double> cuts = {};  // between ordered classes in this round
  double known() const { return traits_of(loss).has_delta ? delta : parameter; }
};

std::vector<PlacedComponent> placed(const std::vector<LossComponent>& components);

struct LossSum {  // of a chunk of rows
  double loss = 0, weight = 0;
  void add(const double* losses, const double* weights, std::size_t n, double factor);
  void count(const double* weights, std::size_t n);
};

// Adds the losses of some rows of a chunk. `scores` are those of the component.
void add_losses(const PlacedComponent& component, const double* target, const double* weight,
                const double* const* scores, std::size_t n, LossSum& sum);

// Sums are by chunk, in order.
double mean_of(const std::vector<LossSum>& sums);

// The maximum number of out-of-bag rows to evaluate; if there are more, every second, third … is used.
inline constexpr std::size_t max_evaluated_out_of_bag = 16384;
inline std::size_t step_out_of_bag(std::size_t n) {
  return n <= max_evaluated_out_of_bag ? 1 : (n + max_evaluated_out_of_bag - 1) / max_evaluated_out_of_bag;
}

}  // namespace spinney
