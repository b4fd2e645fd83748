// Shapley values of the columns for what trees predict, and of pairs of columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "tree/tree.h"

namespace spinney {

// Trees whose values are summed and multiplied by `scale`: tree t is nodes root[t] … root[t + 1] - 1. With several `turns`,
// tree t speaks of output t mod turns; else each leaf has a number for every output.
struct SummedTrees {
  const Tree& nodes;
  std::span<const std::uint32_t> root;
  double scale = 1;
  std::size_t turns = 1;

  std::size_t n_trees() const { return root.size() - 1; }
  std::size_t n_outputs() const { return turns > 1 ? turns : nodes.value_width; }
  std::size_t output_of(std::size_t tree) const { return turns > 1 ? tree % turns : 0; }
};

// What is predicted when no column is known, by output: the mean over the training weight or, if there is one, over the
// background's rows.
std::vector<double> shap_base_value(const SummedTrees& trees, const Table* background);

// values[row][column][output]. Unless null, also pairs[row][column][column][output]: what two columns do together, half in
// either place, so that the rows of the matrix sum to the values. The caller passes zeros. Columns that are not known have
// the values of a row of the background, each row in turn, or, without one, send the row both ways by training weight.
void shap_values(const SummedTrees& trees, const Table& table, const Table* background, int n_threads,
                 Interrupt& interrupt, double* values, double* pairs);

}  // namespace spinney
