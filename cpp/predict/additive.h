// Sums of trees: each tree adds its leaf's value to one of the outputs, tree t to output t mod n_outputs.
//
// Many rows are predicted with masks. Their values are coded once, as the number of the model's cuts below them; then a
// tree is evaluated for many rows at a time by testing all of its splits, one byte per row, without branches or
// scattered loads. That is faster than walking for a tree with few leaves. All methods are bit-identical.
//
// A byte suffices for any column, because a column may have several: two for each 254 of its cuts, counted from the
// first of them and clipped at both ends, with missing values below all cuts and above; and, for categories, one for
// each run of nodes that distinguish at most 254 groups of categories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/interrupt.h"
#include "data/column.h"
#include "predict/coded.h"
#include "predict/forest_walk.h"
#include "tree/forest.h"

namespace spinney {

// A split. Splits are ordered so that both children come before their parent, and the root is last. Each writes the
// number of the leaf that a row would reach from it, one byte per row, into lines of 64 rows:
//
//   lines 0 … 255       line k is filled with k: a leaf is read like a split, but from one line for all rows
//   four lines each     the output of a split. It reuses that of its first child; if both children are splits, the second
//                       child used the next four. The child that needs more comes first, so that few are needed.
struct MaskNode {
  std::uint16_t slot;
  std::uint16_t left, right;  // first lines of the children
  std::uint8_t place;
  std::int8_t cut;  // larger codes go right
  bool is_category;
};

struct MaskTree {
  const MaskNode* nodes;
  std::size_t n_nodes;
  const double* values;       // of the leaves, from left to right; 32 are readable
  const std::int8_t* tables;  // of the category nodes, in order: 256 bytes each, the code to compare with the cut
};

// Adds a tree's values for n rows to `sums`. `codes` holds one byte per row and slot.
using EvaluateMasks = void (*)(const MaskTree& tree, const std::int8_t* codes, std::uint8_t* lines, double* sums);
inline constexpr std::size_t few_rows = 64, many_rows = 256;
inline constexpr std::size_t line_rows = 64, n_leaf_lines = 256, lines_per_place = many_rows / line_rows;
struct MaskKernels {
  EvaluateMasks few, many;
};

const MaskKernels& mask_kernels();
const MaskKernels& mask_kernels_of(OfIsa<Isa::base>);
const MaskKernels& mask_kernels_of(OfIsa<Isa::avx2>);
const MaskKernels& mask_kernels_of(OfIsa<Isa::avx512>);

class Additive {
 public:
  Additive(Forest forest, std::size_t n_outputs);

  const Forest& forest() const { return forest_; }
  std::size_t n_outputs() const { return n_outputs_; }

  // out[r * n_outputs + k] += the sums of trees first … last - 1.
  void add(const Table& table, std::size_t first, std::size_t last, int n_threads, Interrupt& interrupt,
           double* out) const;

  // out[(p * n_rows + r) * n_outputs + k] += the sums of all trees for row r with the values of point p (a row of
  // `points`) in some columns. A tree is evaluated once for all points that it does not distinguish. Returns false and
  // does nothing if trees must be walked.
  bool add_replaced(const Table& table, const Table& points, std::span<const std::uint32_t> columns, int n_threads,
                    Interrupt& interrupt, double* out) const;

  // The same as add for one row of numbers: walks all trees at once.
  void add_one(const double* row, double* out) const;

  // Prepares add_one for maximum speed.
  void prepare_one(Interrupt& interrupt) const {
    if (!has_linear_leaves()) walker_.prepare(1, interrupt);
  }

  // Returns whether the trees have linear leaves.
  bool has_linear_leaves() const { return !forest_.nodes.linear_leaves.empty(); }

 private:
  struct Slot {  // one byte of a column in use
    std::uint32_t column = 0;
    std::uint32_t first_cut = 0;
    bool is_category = false, missing_left = false;
    Thresholds cuts{};                 // of the column, in its first slot only
    std::vector<std::uint8_t> kind{};  // by category: its group; the last stands for all beyond
  };

  struct Places {  // outputs of a tree's splits
    std::uint32_t root;
    std::vector<std::uint8_t> n_needed, n_leaves_before;  // by node
  };

  void walk_row(const double* row, std::size_t first, std::size_t last, double* sums) const;
  void walk_linear_leaves(const double* row, std::size_t first, std::size_t last, double* sums) const;

  bool prepare();  // false: too many leaves for a byte, or too much to prepare
  bool prepare_slots();
  bool prepare_categories(std::uint32_t column, const std::vector<std::uint32_t>& nodes);
  void prepare_tree(std::size_t t);
  void prepare_node(const Places& places, std::uint32_t node, std::uint8_t place);
  void test_of(std::uint32_t node, MaskNode& test);
  void add_masked(const Table& table, std::size_t first, std::size_t last, int n_threads, Interrupt& interrupt,
                  double* out) const;
  struct Replaced;  // some points as coded for the trees
  Replaced read_points(const Table& points, std::size_t first, std::size_t last,
                       std::span<const std::uint32_t> columns) const;
  void add_points(const Replaced& points, const Table& table, std::size_t begin, double* out) const;
  MaskTree mask_tree(std::size_t t) const {
    return {nodes_.data() + node_at_[t], node_at_[t + 1] - node_at_[t], values_.data() + value_at_[t],
            tables_.data() + table_at_[t]};
  }
  void code_block(const Table& table, std::size_t begin, std::size_t n, std::size_t width, std::int8_t* codes) const;

  Forest forest_;
  std::size_t n_outputs_;
  ForestWalker walker_;  // for rows that are walked
  bool is_masked_ = false;
  std::vector<Slot> slots_;                  // the slots of a column are adjacent
  std::vector<std::uint16_t> slot_of_;       // first slot by column
  std::vector<std::uint16_t> slot_of_node_;  // slot by category node
  std::vector<MaskNode> nodes_;
  std::vector<double> values_;
  std::vector<std::int8_t> tables_;
  std::vector<std::size_t> node_at_, value_at_, table_at_;  // by tree; for nodes_ also the end
  std::size_t n_places_ = 1, n_leaves_ = 0;                 // maximum over the trees
};

}  // namespace spinney
