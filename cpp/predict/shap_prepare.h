// Converts trees to the form that the loops of Shapley values walk over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "predict/quadrature.h"
#include "predict/shap.h"
#include "predict/shap_tree.h"

namespace spinney {

// Fractions of a node's training weight: of its children, and of the rows that stop there.
struct NodeFractions {
  double left, right, stop;
};
NodeFractions fractions_of(const Tree& nodes, std::size_t node);

class ShapPreparation {
 public:
  explicit ShapPreparation(const SummedTrees& trees);

  // Without constants, or without tables, if they take more memory.
  ShapTree tree(std::size_t t, std::size_t most_bytes, std::size_t most_table_bytes) const;
  std::size_t constant_bytes() const { return constant_bytes_; }  // of all trees

  std::vector<std::uint32_t> used;  // columns in use, ascending
  std::vector<std::uint32_t> slot;  // index of each column among them

 private:
  void find_columns();

  const SummedTrees& trees_;
  std::vector<std::uint32_t> n_points_;  // by tree
  std::map<std::size_t, Quadrature> rules_;
  std::size_t constant_bytes_ = 0;
};

// Sends the whole weight where one row goes: next(node) is its child, or the node itself if it stops there.
template <class Next>
void follow_row(ShapTree& tree, const Tree& nodes, Next&& next) {
  std::vector<std::uint32_t> open(tree.n_levels);
  std::vector<double> left(tree.n_levels), right(tree.n_levels);  // z of the column on each side, by level
  for (std::uint32_t i = 0; i < tree.splits.size(); ++i) {
    ShapSplit& s = tree.splits[i];
    const std::uint32_t to = next(s.node);
    s.left_fraction = to == s.node + 1;
    s.right_fraction = to == nodes.right[s.node];
    s.stop_fraction = to == s.node;
    s.fraction_before = 1;
    if (s.previous >= 0) {
      const ShapSplit& above = tree.splits[open[static_cast<std::size_t>(s.previous)]];
      const bool went_right = above.right_value == nullptr && i >= above.right;
      s.fraction_before = (went_right ? right : left)[above.level];
    }
    open[s.level] = i;
    left[s.level] = s.fraction_before * s.left_fraction;
    right[s.level] = s.fraction_before * s.right_fraction;
  }
  if (!tree.constants.empty()) shap_kernels().fill(tree);
}

// Quadrature points for paths with this many distinct columns.
std::size_t points_for(std::size_t n_columns);

}  // namespace spinney
