// Parameters of a tree. The defaults are in Python; these are neutral values.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace spinney {

// Recording of competing splits, and surrogates for rows with a missing value.
struct SurrogateParams {
  enum class Fallback : std::uint8_t { majority, stop, ignore };  // ignore: surrogates are listed, but not used

  bool on = false;
  bool present_only = false;  // rows with a missing value do not take part in a column's search, and follow surrogates
  std::uint32_t max_competitors = 0, max_surrogates = 0;
  bool absent_disagrees = true;  // a row with a missing value in the surrogate's column counts as a disagreement
  Fallback missing_fallback = Fallback::majority;
  // rpart's conventions: cuts are x < middle, rows of weight 0 count as rows, ties of the majority stop
  bool rpart = false;
  bool quirks = false;                    // reproduce rpart's bugs
  std::vector<std::uint8_t> closed_cuts;  // by column: x <= middle, as rpart predicts ordered factors
  bool fold = false;                      // rpart's placement of rows in cross-validation
  std::vector<Row> rows;                  // rows to grow on, including weight 0; empty: those of positive weight
  const double* case_weight = nullptr;    // by row, without priors and costs; null: every weight is 1
  // rpart's complexity price of a split: nodes that cannot be worth it are not split; < 0: none
  double price = -1;
  std::vector<double> class_risk;  // K x K: risk of predicting class j per weight of class i; empty: squared error
  // the terms rpart sums, where its rounding decides between equally good splits; null: the first is taken
  const double* response = nullptr;  // by row: value or number of events; unused for classes
  const double* exposure = nullptr;  // by row, rates only
  std::vector<double> class_factor;  // by class: altered prior divided by frequency
};

struct GrowParams {
  std::uint32_t max_depth = UINT32_MAX;
  Row min_samples_split = 2, min_samples_leaf = 1;
  double min_weight_leaf = 0;  // in the user's units
  double min_impurity_decrease = 0;
  double min_purity = std::numeric_limits<double>::infinity();
  std::uint32_t max_features = UINT32_MAX;  // number of columns tried at a node
  std::vector<std::uint32_t> columns;       // the only columns that may be split on, ascending; empty: all
  std::vector<double> feature_weights;      // by column, > 0 for usable columns; empty: all equally likely to be drawn
  std::vector<std::uint32_t> always_try;    // columns tried at every node in addition to those drawn, ascending
  std::uint32_t max_leaf_nodes = 0;         // 0: no limit, grown depth-first; else best-first
  bool random_cuts = false;
  bool random_ties = false;        // columns are tried in random order, so that ties are broken at random
  bool charge_categories = false;  // gains of categories are reduced by the expected gain of noise
  double row_weight = 0;           // weight of one row if weights are repetition counts; 0: rows are counted
  std::uint64_t seed = 0;
  std::vector<std::int8_t> monotonic_cst;                   // by column; empty: none
  std::vector<double> feature_costs;                        // by column, > 0; empty: all the same
  std::vector<std::vector<std::uint32_t>> interaction_cst;  // groups of columns that may interact; empty: all
  int n_threads = 1;
  SurrogateParams surrogate_params;
};

}  // namespace spinney
