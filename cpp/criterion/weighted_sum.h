// Sums over a node's rows that depend neither on their order nor on the unit of their weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "base/any_order.h"
#include "criterion/target.h"

namespace spinney {

// The sum of term(row) times the row's fixed weight. No term is larger than `largest`, which is returned if it is
// infinite; `total` is the rows' fixed weight. If weights are counts, a row of weight 2 adds exactly what two rows of
// weight 1 add.
template <class Term>
double weighted_sum(const Target& target, std::span<const Row> rows, std::int64_t total, double largest, Term&& term) {
  if (!std::isfinite(largest)) return largest;
  if (target.counts) {
    AnyOrderSum sum(largest, static_cast<double>(total));
    if (target.fixed_weight.empty())
      for (const Row r : rows) sum.add(term(r));
    else
      for (const Row r : rows) sum.add(term(r), target.fixed_weight[r]);
    return sum.value();
  }
  std::int64_t heaviest = 0;
  for (const Row r : rows) heaviest = std::max(heaviest, target.fixed_weight[r]);
  AnyOrderSum sum(largest * static_cast<double>(heaviest), static_cast<double>(rows.size()));
  for (const Row r : rows) sum.add(term(r) * static_cast<double>(target.fixed_weight[r]));
  return sum.value();
}

}  // namespace spinney
