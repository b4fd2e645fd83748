// What a finished node says of its rows, in the user's units.
#pragma once

#include <cstdint>
#include <span>

#include "criterion/target.h"

namespace spinney {

struct Summary {
  double weight = 0;
  double impurity = 0;
  double majority = 0;  // classes: largest share, the smallest over the outputs
  bool pure = false;    // no cut can help
};

// Writes the node's value (class shares, means or medians; target.value_width() numbers) to `value`.
// `stat` is the node's statistic: {W, S_2} for two classes, {W, S_1, …} for more; for values only W is looked at.
Summary summarise(const Target& target, std::span<const Row> rows, const std::int64_t* stat, double* value);

// No cut of these rows can help: one class, or one value.
bool is_pure(const Target& target, std::span<const Row> rows, const std::int64_t* stat);

// Decrease of the impurity by a cut of this score, times the node's fixed weight: the unit of weights does not show in it;
// equal gains of whole counts are equal to the bit. `stat` is the node's statistic.
double gain_of(const Target& target, double score, const std::int64_t* stat);

}  // namespace spinney
