// What the caller asks of a tree. Defaults live in Python; these are neutral values.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace spinney {

// Keeping the splits that were weighed at a node, and sending rows that lack a value by surrogates.
struct Weighing {
  enum class Fallback : std::uint8_t { majority, stop, ignore };  // ignore: surrogates are listed, but not asked

  bool on = false;
  bool present_only = false;  // rows without a value have no say in a column's search, and go by surrogates
  std::uint32_t max_competitors = 0, max_surrogates = 0;
  bool absent_disagrees = true;  // a row that lacks the surrogate's value counts against it
  Fallback missing_fallback = Fallback::majority;
  // rpart's conventions: cuts are x < middle, rows of weight 0 count as rows, ties of the majority stop
  bool rpart = false;
  bool quirks = false;                    // and its errors
  std::vector<std::uint8_t> closed_cuts;  // by column: x <= middle after all, as rpart predicts with ordered factors
  bool fold = false;                      // rpart's way of placing rows in cross-validation
  std::vector<Row> rows;                  // rows to grow on, weight 0 or not; empty: those of positive weight
  const double* case_weight = nullptr;    // by row, without priors and costs; null: every weight is 1
  // rpart's price of a split: nodes that cannot be worth it are not split; < 0: no price
  double price = -1;
  std::vector<double> class_risk;  // K x K: risk of predicting class j per weight of class i; empty: squared error
  // what rpart adds up, where its rounding is to decide between equally good splits; null: the first is taken
  const double* response = nullptr;  // by row: value or number of events; of no meaning for classes
  const double* exposure = nullptr;  // by row, rates only
  std::vector<double> class_factor;  // by class: altered prior over frequency
};

struct GrowParams {
  std::uint32_t max_depth = UINT32_MAX;
  Row min_samples_split = 2, min_samples_leaf = 1;
  double min_weight_leaf = 0;  // in the user's units
  double min_impurity_decrease = 0;
  double min_purity = std::numeric_limits<double>::infinity();
  std::uint32_t max_features = UINT32_MAX;  // columns tried at a node
  std::vector<std::uint32_t> columns;       // the only ones that may be cut, ascending; empty: all may
  std::vector<double> feature_weights;    // by column, > 0 for those that may be cut; empty: equally likely to be drawn
  std::vector<std::uint32_t> always_try;  // columns tried at every node besides those drawn, ascending
  std::uint32_t max_leaf_nodes = 0;       // 0: no limit, grown depth-first; else best-first
  bool random_cuts = false;
  bool random_ties = false;        // columns are tried in random order, and the first of equally good ones is taken
  bool charge_categories = false;  // gains of categories are lowered by what chance alone gives to many of them
  double row_weight = 0;           // weight of one row, where weights say how often rows are there; 0: rows are counted
  std::uint64_t seed = 0;
  std::vector<std::int8_t> monotonic_cst;                   // by column; empty: none
  std::vector<double> feature_costs;                        // by column, > 0; empty: all the same
  std::vector<std::vector<std::uint32_t>> interaction_cst;  // columns that may meet on a path; empty: all may
  int n_threads = 1;
  Weighing weighing;
};

}  // namespace spinney
