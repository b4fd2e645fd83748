#include "criterion/target.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "criterion/fixed_weights.h"

namespace spinney {

Target::Target(const TargetInput& in, Rule r) : input(in), rule(r) {
  rows.resize(input.n_rows);
  std::size_t n = 0;
  for (std::size_t i = 0; i < input.n_rows; ++i) {  // branch-free: samples omit rows at random
    rows[n] = static_cast<Row>(i);
    n += weight_of(static_cast<Row>(i)) > 0;
  }
  rows.resize(n);
  rows.shrink_to_fit();
  fix_weights();
  if (is_class_rule(rule))
    fix_classes();
  else if (rule != Rule::user)
    fix_values();
}

double Target::total_weight() const {
  std::int64_t total = 0;
  for (const Row r : rows) total += fixed_weight_of(r);
  return static_cast<double>(total);
}

void Target::fix_weights() {
  most_ = static_cast<double>(rows.size());
  if (input.weight == nullptr) return;
  if (std::all_of(rows.begin(), rows.end(), [&](Row r) { return input.weight[r] == 1; })) {
    input.weight = rows.size() == input.n_rows ? nullptr : input.weight;
    return;
  }
  FixedWeights fixed(input.weight, input.n_rows, rows, 62);
  fixed_weight = std::move(fixed.by_row);
  weight_unit = fixed.unit;
  counts = fixed.counts;
  most_ = fixed.most;
}

void Target::fix_classes() {
  class_begin.assign(1, 0);
  for (const std::uint32_t k : input.n_classes) class_begin.push_back(class_begin.back() + k);
  if (rule == Rule::generalised_gini) {
    const std::size_t n = input.n_classes[0];
    pair_cost.resize(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) pair_cost[i * n + j] = input.cost[i * n + j] / 2 + input.cost[j * n + i] / 2;
  }
  if (!is_two_class()) return;
  value_unit = weight_unit;
  if (fixed_weight.empty()) {
    second_class.assign(input.n_rows, 0);
    for (const Row r : rows) second_class[r] = input.codes[r] == 1;
    return;
  }
  const bool small = std::all_of(rows.begin(), rows.end(), [&](Row r) { return fixed_weight[r] < 0x10000; });
  if (small) {
    packed.assign(input.n_rows, 0);
    for (const Row r : rows) {
      const auto w = static_cast<std::uint32_t>(fixed_weight[r]);
      packed[r] = w << 16 | (input.codes[r] == 1 ? w : 0);
    }
    return;
  }
  flagged.assign(input.n_rows, 0);
  for (const Row r : rows) flagged[r] = fixed_weight[r] << 1 | (input.codes[r] == 1);
}

// The offset is the midrange (0 for event counts), which unlike the mean does not depend on weights or row order.
// Friedman's criterion uses the average of the outputs as its only value.
void Target::fix_values() {
  const std::size_t p = input.n_outputs, n_values = rule == Rule::friedman_mse ? 1 : p;
  offset.assign(p, 0.0);
  double reach = 0;
  for (std::size_t k = 0; k < p; ++k) {
    double low = INFINITY, high = -INFINITY;
    for (const Row r : rows) {
      low = std::min(low, input.y[r * p + k]);
      high = std::max(high, input.y[r * p + k]);
    }
    if (!counts_events(rule)) offset[k] = low / 2 + high / 2;
    reach = std::max({reach, std::abs(low - offset[k]), std::abs(high - offset[k])});
  }
  const double scale = scale_below(62, reach, most_);
  value_unit = (counts ? weight_unit : 1) / scale;
  fixed_value.assign(input.n_rows * n_values, 0);
  for (const Row r : rows)
    for (std::size_t k = 0; k < n_values; ++k) {
      double v = input.y[r * p + k] - offset[k];
      if (n_values < p) {
        for (std::size_t other = 1; other < p; ++other) v += input.y[r * p + other] - offset[other];
        v /= static_cast<double>(p);
      }
      fixed_value[r * n_values + k] =
          counts ? fixed_weight_of(r) * std::llround(v * scale) : std::llround(v * weight_of(r) * scale);
    }
}

}  // namespace spinney
