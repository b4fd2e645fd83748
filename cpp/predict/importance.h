// Out-of-bag statistics of a forest's splits and columns.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "data/sample.h"
#include "tree/forest.h"

namespace spinney {

// The rows that a forest was grown on, and their target: class codes or numbers, by row and output.
struct EvaluationRows {
  const Table& table;
  const Sampling& sampling;
  const std::int32_t* codes = nullptr;
  const double* numbers = nullptr;
  std::size_t n_outputs = 1;
  std::vector<std::uint32_t>
      first_class{};               // by output: index of its first class probability in a node's value; then the end
  const double* weight = nullptr;  // rows of weight 0 are not evaluated; null: every weight is 1

  std::size_t target_width() const { return codes != nullptr ? first_class.back() : n_outputs; }
  double weight_of(Row r) const { return weight == nullptr ? 1.0 : weight[r]; }
};

struct NodeSums {
  std::vector<double> weight;  // by node: weight of its out-of-bag rows
  std::vector<double> sum;     // by node: their weighted sum of targets, or the weights of their classes
};

// Equivalent to (and faster than) summing the decision paths of each tree's out-of-bag rows.
NodeSums out_of_bag_sums(const Forest& forest, const EvaluationRows& evaluated, int n_threads, Interrupt& interrupt);

// Losses of a row in its leaf; averaged over the outputs.
enum class LeafLoss : std::uint8_t {
  wrong_class,      // 0 or 1
  squared_proba,    // Brier: squared distance of the class probabilities from the indicator of the class
  negative_margin,  // largest probability of another class minus that of the true class
  squared_error,
  absolute_error,
};

struct PermutationRequest {
  LeafLoss loss = LeafLoss::squared_error;
  const std::int32_t* node_class = nullptr;        // by node and output: the predicted class; for wrong_class only
  std::vector<std::vector<std::uint32_t>> groups;  // columns that are permuted together
  std::uint32_t n_repeats = 1;
  std::uint64_t seed = 0;
  bool by_row = false;
  std::vector<double> output_scale{};  // by output: factor of its loss; empty: 1
};

struct PermutationRises {
  std::vector<double> loss;      // by tree: mean over its out-of-bag rows; NaN if there are none
  std::vector<double> rise;      // by tree and group: increase of the mean loss when the group's columns are permuted
  std::vector<double> row_rise;  // by row and group, on request: sum over the trees for which the row is out of bag
  std::vector<std::uint32_t> row_trees;  // by row: the number of these trees
};

// The permutation of a tree's out-of-bag rows is a function of (seed, tree, first column of the group, repeat). A row
// whose path does not test the group keeps its leaf, and the others start again at the first such test.
PermutationRises permutation_increases(const Forest& forest, const EvaluationRows& evaluated,
                                       const PermutationRequest& request, int n_threads, Interrupt& interrupt);

}  // namespace spinney
