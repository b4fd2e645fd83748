// The value and impurity of a finished node, in the user's units.
#pragma once

#include <cstdint>
#include <span>

#include "criterion/target.h"

namespace spinney {

struct Summary {
  double weight = 0;
  double impurity = 0;
  double majority = 0;  // classes: largest probability, the minimum over the outputs
  bool pure = false;    // no cut can reduce the impurity
};

// Writes the node's value (class probabilities, means or medians; target.value_width() numbers) to `value`. `stat` is
// the node's statistic: {W, S_2} for two classes, {W, S_1, …} for more; for regression only W is used.
Summary summarise(const Target& target, std::span<const Row> rows, const std::int64_t* stat, double* value);

// Returns whether no cut of these rows can reduce the impurity: one class, or one value.
bool is_pure(const Target& target, std::span<const Row> rows, const std::int64_t* stat);

// The decrease of impurity by a cut with this score, times the node's fixed weight. It does not depend on the unit of
// weights; equal gains of integer counts are bit-identical. `stat` is the node's statistic.
double gain_of(const Target& target, double score, const std::int64_t* stat);

}  // namespace spinney
