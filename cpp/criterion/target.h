// The target of a tree in the engine's units: weights and targets as 64-bit integers.
//
// Integer sums are associative, so a statistic does not depend on the order of the rows: it is bit-identical for any
// number of threads and any chunking, and cuts that separate the same rows tie exactly.
//   fixed_weight   weight / weight_unit, where the unit is the largest number of which all weights are multiples;
//                  rounded if that is too small; absent: every weight is 1
//   fixed_value    weight * (y - offset) / value_unit, rounded; for two classes: the weight if the row is in the second
//                  class
// Units are chosen so that no sum can overflow. The integers depend neither on the row order nor on the unit of the
// caller's weights, as long as the caller's products are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "criterion/rule.h"
#include "criterion/user.h"

namespace spinney {

struct TargetInput {  // the caller's arrays, validated by the caller
  std::size_t n_rows = 0, n_outputs = 1;
  const std::int32_t* codes = nullptr;   // classification: n_rows x n_outputs
  std::vector<std::uint32_t> n_classes;  // classification: one per output
  const double* y = nullptr;             // regression: n_rows x n_outputs
  const double* weight = nullptr;        // one per row, >= 0; null: every weight is 1
  const double* cost = nullptr;          // generalised Gini: cost of predicting class j for class i, K x K, 0 for i = j
  const UserCriterion* user = nullptr;   // Rule::user only
};

struct Target {
  Target(const TargetInput& input, Rule rule);

  TargetInput input;
  Rule rule;
  std::vector<Row> rows;                   // those of positive weight, ascending
  std::vector<std::int64_t> fixed_weight;  // by row; empty: every weight is 1
  std::vector<std::int64_t> fixed_value;   // by row and output; regression only
  std::vector<std::uint8_t> second_class;  // two classes, every weight 1: the same as fixed_value, one byte each
  std::vector<std::uint32_t> packed;       // two classes, small integer weights: both numbers of a row in one word
  std::vector<std::int64_t> flagged;       // two classes, other weights: weight << 1 | 1 if the class is the second
  std::vector<double> offset;              // by output
  double weight_unit = 1, value_unit = 1;
  bool counts = true;                      // weights are small integers: a weight of k equals k copies of the row
  std::vector<double> pair_cost;           // generalised Gini: mean cost of confusing two classes, K x K
  std::vector<std::uint32_t> class_begin;  // first index of an output's classes in a node's value

  bool is_two_class() const { return is_class_rule(rule) && input.n_outputs == 1 && input.n_classes[0] <= 2; }
  bool is_scalar() const {  // a statistic is one weight and one sum
    if (is_class_rule(rule)) return is_two_class();
    return rule == Rule::friedman_mse || (input.n_outputs == 1 && rule != Rule::user);
  }
  std::size_t value_width() const {  // numbers in a node's value
    if (rule == Rule::user) return input.user->n_values;
    return is_class_rule(rule) ? class_begin.back() : input.n_outputs;
  }
  double weight_of(Row r) const { return input.weight == nullptr ? 1.0 : input.weight[r]; }
  std::int64_t fixed_weight_of(Row r) const { return fixed_weight.empty() ? 1 : fixed_weight[r]; }
  double total_weight() const;  // in fixed weights

 private:
  void fix_weights();
  void fix_classes();
  void fix_values();

  double most_ = 0;  // a bound of the sum of weights: fixed weights if they are counts, else the caller's
};

}  // namespace spinney
