// What a booster learns from, and how far it is. Those that draw rows, find gradients, grow trees, set their leaves and drop
// rounds share it: see learn/sampling.h, learn/gradients.h, learn/growing.h, learn/leaf_setting.h, learn/dropping.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/spilled_vector.h"
#include "boost/coded_table.h"
#include "learn/boosting_options.h"
#include "learn/part_losses.h"

namespace spinney {

// Rows with their targets. Scores are by column, then by row; they start where the caller says.
struct BoostingRows {
  const Table* table = nullptr;
  const double* target = nullptr;  // part by part; multinomial: the class
  const double* weight = nullptr;  // null: every row counts once
  std::vector<RowVector<double>> scores;

  void touch(std::size_t n) const;  // all that is known of so many rows is about to be read
};

// Where rows are in a table whose other rows may be in other partitions, and what is known of all of them.
struct TablePlace {
  std::size_t first_row = 0, n_all_rows = 0;
  double weight_scale = 1;     // weights are added up in whole numbers of its inverse
  double count_by_weight = 1;  // what a row counts for where `min_samples_leaf` is judged by shares of the hessian
};

// The key of a tree's random streams.
std::uint64_t key_of_boosted_tree(std::uint64_t seed, std::uint32_t round, std::uint32_t score);

struct BoostingState {
  BoostingState(BoostingRows rows, BoostingRows held_out, BoostingParams params, TablePlace place);

  // Finds the scale of weights, and what a row counts for, from the rows here: these are all there are.
  void weigh_rows();

  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(part_of_score.size()); }
  std::size_t n_rows() const { return rows.table->n_rows; }
  int n_threads() const { return params.tree.n_threads; }
  bool is_outside() const { return traits_of(parts[0].loss).is_outside; }
  bool begins_step() const { return round % params.n_parallel_trees == 0; }
  const PlacedPart& part_of(std::uint32_t score) const { return parts[part_of_score[score]]; }
  const BoostParams& tree_params(std::uint32_t score) const { return of_score.empty() ? params.tree : of_score[score]; }
  std::uint64_t key_of_tree(std::uint32_t score) const { return key_of_boosted_tree(params.tree.seed, round, score); }
  const double* target_of(const PlacedPart& part, const BoostingRows& of) const {
    return of.target + static_cast<std::size_t>(&part - parts.data()) * of.table->n_rows;
  }
  const Codes& held_out_codes() const { return held_out.table == rows.table ? coded->codes : coded->later; }
  void touch(std::size_t n_bytes) const {
    if (rows.table->spill) rows.table->spill->touch(n_bytes);
  }

  BoostingRows rows, held_out;
  BoostingParams params;
  TablePlace place;
  std::vector<PlacedPart> parts;
  std::vector<std::size_t> part_of_score;
  std::vector<BoostParams> of_score;  // where trees of different scores are grown by different rules
  std::shared_ptr<const CodedTable> coded;
  RowVector<Row> all;       // rows of positive weight
  RowVector<Row> judged;    // rows held out
  double even_weight = 0;   // that all rows of positive weight have, as those of a fold; 0: they differ, or have none
  std::uint32_t round = 0;  // rounds done
};

}  // namespace spinney
