// The training data and the current state of a booster. The classes that draw rows, compute gradients, grow trees, set
// leaf values and drop rounds share it: see learn/sampling.h, learn/gradients.h, learn/round_grower.h,
// learn/leaf_updater.h, learn/dart.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/spilled_vector.h"
#include "boost/coded_table.h"
#include "learn/boosting_options.h"
#include "learn/component_losses.h"

namespace spinney {

// Rows with their targets. Scores are by column, then by row; the caller sets their initial values.
struct BoostingRows {
  const Table* table = nullptr;
  const double* target = nullptr;  // component by component; multinomial: the class
  const double* weight = nullptr;  // null: every row counts once
  std::vector<RowVector<double>> scores;

  void touch(std::size_t n) const;  // announces that all data of n rows are about to be read
};

// The position of the rows in a table whose other rows may be in other partitions, and statistics of all of them.
struct TablePlace {
  std::size_t first_row = 0, n_all_rows = 0;
  double weight_scale = 1;  // weights are summed as integers in units of its inverse
  double count_by_weight =
      1;  // rows per unit of weight, for estimating `min_samples_leaf` from fractions of the hessian
};

// The key of a tree's random streams.
std::uint64_t key_of_boosted_tree(std::uint64_t seed, std::uint32_t round, std::uint32_t score);

struct BoostingState {
  BoostingState(BoostingRows rows, BoostingRows held_out, BoostingParams params, TablePlace place);

  // Computes the weight scale and the row count per weight from these rows, which are all rows.
  void set_weight_scale();

  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(component_of_score.size()); }
  std::size_t n_rows() const { return rows.table->n_rows; }
  int n_threads() const { return params.tree.n_threads; }
  bool is_external() const { return traits_of(components[0].loss).is_external; }
  bool begins_step() const { return round % params.n_parallel_trees == 0; }
  const PlacedComponent& component_of(std::uint32_t score) const { return components[component_of_score[score]]; }
  const BoostParams& tree_params(std::uint32_t score) const { return of_score.empty() ? params.tree : of_score[score]; }
  std::uint64_t key_of_tree(std::uint32_t score) const { return key_of_boosted_tree(params.tree.seed, round, score); }
  const double* target_of(const PlacedComponent& component, const BoostingRows& of) const {
    return of.target + static_cast<std::size_t>(&component - components.data()) * of.table->n_rows;
  }
  const Codes& held_out_codes() const { return held_out.table == rows.table ? coded->codes : coded->validation; }
  void touch(std::size_t n_bytes) const {
    if (rows.table->spill) rows.table->spill->touch(n_bytes);
  }

  BoostingRows rows, held_out;
  BoostingParams params;
  TablePlace place;
  std::vector<PlacedComponent> components;
  std::vector<std::size_t> component_of_score;
  std::vector<BoostParams> of_score;  // if trees of different scores have different options
  std::shared_ptr<const CodedTable> coded;
  RowVector<Row> all;              // rows of positive weight
  RowVector<Row> validation_rows;  // rows of the validation set
  double even_weight =
      0;  // the common weight of all rows of positive weight, as in a fold; 0: they differ or there are none
  std::uint32_t round = 0;  // number of finished rounds
};

}  // namespace spinney
