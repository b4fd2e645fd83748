// From trees to what the loops of Shapley values walk over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "predict/quadrature.h"
#include "predict/shap.h"
#include "predict/shap_tree.h"

namespace spinney {

// Shares of a node's training weight: of its children, and of the rows that stop there.
struct NodeShares {
  double left, right, stop;
};
NodeShares shares_of(const Tree& nodes, std::size_t node);

class ShapPreparation {
 public:
  explicit ShapPreparation(const SummedTrees& trees);

  ShapTree tree(std::size_t t, std::size_t most_bytes) const;     // without constants if they take more
  std::size_t constant_bytes() const { return constant_bytes_; }  // of all trees

  std::vector<std::uint32_t> used;  // columns in use, ascending
  std::vector<std::uint32_t> slot;  // where each column is among them

 private:
  void find_columns();

  const SummedTrees& trees_;
  std::vector<std::uint32_t> n_points_;  // by tree
  std::map<std::size_t, Quadrature> rules_;
  std::size_t constant_bytes_ = 0;
};

// Quadrature points for paths with so many different columns.
std::size_t points_for(std::size_t n_columns);

}  // namespace spinney
