// What a tree learns, in the engine's own units: weights and targets as 64-bit integers.
//
// Integer sums are associative, so a statistic is the same whatever the order in which rows are added: the same bits for
// any number of threads and any chunking, and cuts that separate the same rows tie exactly.
//   fixed_weight   weight / weight_unit: how often the weight holds the largest unit of which all weights are multiples; where
//                  that is too often, rounded; absent: every weight is 1
//   fixed_value    weight * (y - offset) / value_unit, rounded; that of a row of two classes: its weight if it is of the second
// Units are chosen so that no sum can overflow. Neither the order of the rows nor the unit of the caller's weights shows in
// these numbers, as long as the caller's own products are exact.
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
  const std::int32_t* codes = nullptr;   // classes: n_rows x n_outputs
  std::vector<std::uint32_t> n_classes;  // classes: one per output
  const double* y = nullptr;             // values: n_rows x n_outputs
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
  std::vector<std::int64_t> fixed_value;   // by row and output; values only
  std::vector<std::uint8_t> second_class;  // two classes, every weight 1: the same as fixed_value, in a byte
  std::vector<std::uint32_t> packed;       // two classes, small whole weights: both numbers of a row in one word
  std::vector<std::int64_t> flagged;       // two classes, other weights: weight << 1 | 1 if the class is the second
  std::vector<double> offset;              // by output
  double weight_unit = 1, value_unit = 1;
  bool counts = true;                      // weights are whole and few: a weight of k is a row that is there k times
  std::vector<double> pair_cost;           // generalised Gini: mean cost of confusing two classes, K x K
  std::vector<std::uint32_t> class_begin;  // where an output's classes begin in a node's value

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

  double most_ = 0;  // a bound of the sum of weights: fixed ones where they are counts, else the caller's
};

}  // namespace spinney
