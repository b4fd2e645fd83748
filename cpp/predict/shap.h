// Shapley values of columns, and interactions of pairs of columns, for predictions of trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "tree/tree.h"

namespace spinney {

// Trees whose values are summed and multiplied by `scale`: tree t is nodes root[t] … root[t + 1] - 1. With several
// `turns`, tree t contributes to output t mod turns; else each leaf has a value for every output.
struct SummedTrees {
  const Tree& nodes;
  std::span<const std::uint32_t> root;
  double scale = 1;
  std::size_t turns = 1;

  std::size_t n_trees() const { return root.size() - 1; }
  std::size_t n_outputs() const { return turns > 1 ? turns : nodes.value_width; }
  std::size_t output_of(std::size_t tree) const { return turns > 1 ? tree % turns : 0; }
};

// The expected prediction by output: the mean over the training weight or, if given, over the background rows.
std::vector<double> shap_base_value(const SummedTrees& trees, const Table* background);

// values[row][column][output]. Unless null, also pairs[row][column][column][output]: the interaction of two columns,
// half in each position, so that the rows of the matrix sum to the values. The caller passes zeros. Unknown columns
// take the values of each background row in turn or, without a background, send the row to both sides by training
// weight.
void shap_values(const SummedTrees& trees, const Table& table, const Table* background, int n_threads,
                 Interrupt& interrupt, double* values, double* pairs);

}  // namespace spinney
