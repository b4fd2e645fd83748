// The best split of a node with multi-output leaves: gains are summed over the scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/split.h"

namespace spinney {

// One score of the tree.
struct ScoreTerms {
  const Packed* pairs = nullptr;  // by row of the table
  Units units;
  double weight = 1;                           // of its gain in the sum
  std::span<const std::int8_t> monotone = {};  // by column; empty: none
};

struct VectorSplit : BoostSplit {
  std::vector<Sums> left_sums;  // by score
};

// The terms of a node that are the same for all columns.
struct VectorTerms {
  std::vector<Sums> total;  // by score
  Row n_rows = 0;
  double least = 0;   // minimum hessian of a side
  double parent = 0;  // score of the unsplit node
};

class VectorSearch {
 public:
  VectorSearch(const Coding& coding, const BoostParams& params, std::span<const ScoreTerms> scores);

  // Scratch of one thread.
  struct Scratch {
    std::vector<double> score_of_node, hessian;  // by cut
    std::vector<std::uint8_t> breaks;            // by cut: whether it violates a monotonic constraint
    std::vector<std::uint32_t> categories, frequent;
    std::vector<Packed> ordered;
    std::vector<Row> counts;
  };

  VectorTerms terms(std::vector<Sums> total, Row n_rows) const;

  // The best split on one column from its cells by score. If `counts` (rows by code) is given, the number of rows on
  // each side is checked as well.
  VectorSplit search(std::uint32_t feature, std::span<const Packed* const> cells, const VectorTerms& terms,
                     const Row* counts, Scratch& scratch) const;

  // Twice the second-order decrease of the loss by the best step of a score.
  double score_of_node(std::size_t k, Sums sums, double extra_l2 = 0) const;

 private:
  struct Cuts;
  std::size_t best_of(const Cuts& cuts, const VectorTerms& terms, Scratch& scratch, VectorSplit& best) const;
  void add_worths(const Cuts& cuts, std::size_t k, Sums total, Scratch& scratch) const;
  void search_numbers(std::uint32_t feature, std::span<const Packed* const> cells, const VectorTerms& terms,
                      const Row* counts, Scratch& scratch, VectorSplit& best) const;
  void search_categories(std::span<const Packed* const> cells, const VectorTerms& terms, const Row* counts,
                         Scratch& scratch, VectorSplit& best) const;
  void try_order(std::span<const Packed* const> cells, std::span<const std::uint32_t> order, const VectorTerms& terms,
                 const Row* counts, Scratch& scratch, VectorSplit& best) const;
  std::vector<std::size_t> scores_to_sort_by(std::span<const Packed* const> cells,
                                             std::span<const std::uint32_t> categories) const;
  double step(std::size_t k, Sums sums, double extra_l2) const;

  const Coding& coding_;
  const BoostParams& params_;
  const std::span<const ScoreTerms> scores_;
  const bool plain_;                // no L1 penalty, no limit on steps
  std::vector<SplitSearch> steps_;  // by score
};

}  // namespace spinney
