// What the rows that a tree has not seen say about its splits and its columns.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "data/sample.h"
#include "tree/forest.h"

namespace spinney {

// The rows that a forest was grown on, and their target: class codes or numbers, by row and output.
struct JudgedRows {
  const Table& table;
  const Sampling& sampling;
  const std::int32_t* codes = nullptr;
  const double* numbers = nullptr;
  std::size_t n_outputs = 1;
  std::vector<std::uint32_t> first_class{};  // by output: where its shares begin in a node's value; and the end
  const double* weight = nullptr;            // rows of weight 0 are not judged; null: every weight is 1

  std::size_t target_width() const { return codes != nullptr ? first_class.back() : n_outputs; }
  double weight_of(Row r) const { return weight == nullptr ? 1.0 : weight[r]; }
};

struct NodeSums {
  std::vector<double> weight;  // by node: weight of the out-of-bag rows that pass it
  std::vector<double> sum;     // by node: their weighted numbers, or the weights of their classes
};

// Equivalent to (and faster than) adding up the decision paths of each tree's out-of-bag rows.
NodeSums out_of_bag_sums(const Forest& forest, const JudgedRows& judged, int n_threads, Interrupt& interrupt);

// Losses of a row that comes to rest in a leaf; with several outputs, their mean.
enum class LeafLoss : std::uint8_t {
  wrong_class,      // 0 or 1
  squared_shares,   // Brier: squared distance of the class shares from the class
  negative_margin,  // largest share of another class less the share of the right one
  squared_error,
  absolute_error,
};

struct PermutationRequest {
  LeafLoss loss = LeafLoss::squared_error;
  const std::int32_t* node_class = nullptr;        // by node and output: the class it predicts; wrong_class alone
  std::vector<std::vector<std::uint32_t>> groups;  // columns that are permuted together
  std::uint32_t n_repeats = 1;
  std::uint64_t seed = 0;
  bool by_row = false;
  std::vector<double> output_scale{};  // by output: what its loss is multiplied by; empty: 1
};

struct PermutationRises {
  std::vector<double> loss;      // by tree: mean over its out-of-bag rows; NaN where there are none
  std::vector<double> rise;      // by tree and group: what the mean loss rises by when the group's columns are permuted
  std::vector<double> row_rise;  // by row and group, if asked for: sum over the trees that have not seen the row
  std::vector<std::uint32_t> row_trees;  // by row: how many these are
};

// The permutation of a tree's out-of-bag rows is a function of (seed, tree, first column of the group, repeat). A row
// whose path does not ask for the group keeps its leaf, and the others start again where it first does.
PermutationRises permutation_rises(const Forest& forest, const JudgedRows& judged, const PermutationRequest& request,
                                   int n_threads, Interrupt& interrupt);

}  // namespace spinney
