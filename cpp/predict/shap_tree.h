// A tree prepared for Shapley values, and the loops over it that are compiled once per instruction set.
//
// A leaf of value v is reached by a set S of known columns with weight  Π (j in S) o_j · Π (j not in S) z_j: o_j is 1
// if the row meets every condition of the path on column j, else 0, and z_j is the fraction of the training weight that
// met them. The Shapley value of column i is therefore a sum over leaves of
//
//     v (o_i - z_i) ∫ Π (j ≠ i) (o_j t + z_j (1 - t)) dt      over t from 0 to 1,
//
// a polynomial that a few quadrature points integrate exactly. All terms are products of numbers in [0, 1] for any
// depth. At each point, the product P of all factors is carried down the tree, the sums H of v P over the leaves below
// a node are carried up, and the contribution of column i is H times g = (o_i - z_i) / (o_i t + z_i (1 - t)), summed
// over the edges on column i, minus the g of the edge on i above. So the work is nodes × points for any path length.
//
// A linear leaf (tree/linear_leaves.h) has the value base + Σ c_j over its columns: c_j is the slope times the distance of
// the row's value from the column's centre in the leaf, or from the background row's value, and 0 where column j is
// unknown. So v P becomes P (base + Σ c_j o_j t / f_j) with f_j = o_j t + z_j (1 - t), and column j itself also
// contributes c_j o_j P z_j / f_j²: at every t, both add up to c_j o_j times the other columns' factors.
//
// Rows are processed eight at a time. Rejected: a table over all 2^d sets of met conditions per leaf. Its gathers cost
// as much as the arithmetic, and the tables grow with classes and depth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cpu.h"

namespace spinney {

inline constexpr std::size_t shap_lanes = 8;

struct ShapSplit {
  double threshold;
  double left_fraction, right_fraction, stop_fraction;  // fractions of the node's training weight
  double fraction_before;                               // z of the column above this split; 1 if the column is new
  const double* left_value;                             // of a leaf; null: a split
  const double* right_value;
  const double* stop_value;  // of the node itself, if rows may stop here; else null
  std::uint32_t node;        // in the tree
  std::uint32_t right;       // index of the right split; the left one is next
  std::uint32_t slot;        // column
  std::uint32_t level;
  std::int32_t previous;   // level of the last split on the same column above; -1: none
  std::int32_t looked_up;  // number splits: -1; else index of the given sides
  std::uint8_t missing_left;
};

// The linear leaves of all trees, by node and by term as in LinearLeaves.
struct ShapLinear {
  const std::uint32_t* begin = nullptr;  // null: all leaves are constant
  const double* base = nullptr;
  const std::uint32_t* feature = nullptr;
  const double *slope = nullptr, *middle = nullptr, *low = nullptr, *high = nullptr;
  const std::uint32_t* right = nullptr;  // by node: the right child
  const std::uint32_t* slot = nullptr;   // by column
  const double* background = nullptr;    // by slot: the row whose values unknown columns take; null: none
};

struct ShapTree {
  std::vector<ShapSplit> splits;         // in preorder
  std::vector<double> constants;         // n_constants × n_points per split; empty: computed during the walk
  std::vector<double> tables;            // the same for every possible pair of rows: see shap_pairs.h; empty: none
  std::vector<std::uint32_t> looked_up;  // nodes whose sides are not determined by one comparison
  std::size_t n_points = 0;
  const double *t = nullptr, *u = nullptr, *weight = nullptr;
  std::size_t n_levels = 0;
  std::size_t n_terms = 0;   // the most of a linear leaf
  std::size_t n_values = 1;  // numbers per leaf
  ShapLinear linear;
};

struct ShapSides {
  std::uint8_t left, right;  // one bit per lane; neither: the row stops
};

struct alignas(64) ShapLanes {
  double of[shap_lanes];
};
struct alignas(64) ShapMask {
  std::int64_t of[shap_lanes];  // -1 or 0
};

// A column of a linear leaf: c by row, the rows that meet all conditions on it, and the fraction z that does.
struct ShapTerm {
  ShapLanes part;
  ShapMask met;
  double fraction;
  std::uint32_t slot;
};

struct ShapScratch {
  std::vector<ShapLanes> down;      // [level][point] P
  std::vector<ShapLanes> up, done;  // [level][value][point] H of left children; [value][point] that of the last subtree
  std::vector<ShapLanes> edge;      // [level][point] g of the edge taken
  std::vector<ShapMask> left, right, before, alive;  // [level]
  std::vector<double> constants;                     // of one split
  std::vector<std::uint32_t> places;                 // [level][side][pair of rows] in a split's table
  std::vector<std::uint32_t> open;                   // [level] split
  std::vector<std::uint8_t> hidden;                  // [level] a later edge is on the same column
  std::vector<ShapTerm> terms;                       // of one linear leaf
  std::vector<ShapLanes> due;                        // [point] what a column of a linear leaf contributes itself

  void fit(const ShapTree& tree, bool pairs);
};

struct ShapKernels {
  // The ratios of P at the edges of a split, and the g of these edges minus the g above, by point.
  enum Constant : std::uint8_t {
    left_met,     // ratio of P to the left child if the row meets all conditions
    left_unmet,   // … if this is the first condition it does not meet
    right_met,    // the same for the right child
    right_unmet,  //
    gain_left,    // g minus the g above on the left edge if the row goes left
    gain_right,   //
    loss,         // g minus the g above on the edge that the row does not take
    stop_met,     // a third child, which is a leaf: rows that stop here
    stop_unmet,   //
    gain_stop,    //
    above,        // g above
    cold,         // g of a condition that is not met
    n_constants
  };

  std::size_t table_size;  // numbers of a table per split and point; 0: this instruction set has no tables
  void (*fill)(ShapTree& tree);
  // Adds to `values` [value][slot] and, unless null, `pairs` [value][slot][slot], the lower slot first.
  void (*explain)(const ShapTree& tree, const ShapLanes* x, const ShapSides* sides, std::size_t n_slots,
                  ShapScratch& scratch, ShapLanes* values, ShapLanes* pairs);
};

const ShapKernels& shap_kernels();

const ShapKernels& shap_kernels_of(OfIsa<Isa::base>);
const ShapKernels& shap_kernels_of(OfIsa<Isa::avx2>);
const ShapKernels& shap_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
