// Ranks values and walks coded rows down coded trees: compiled once per instruction set, with identical results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace spinney {

// A split. Leaves are not nodes: they are numbered from left to right, and the walk counts those it passes.
//
//   left child    the next node
//   right child   `step` nodes and as many leaves further: one more than the splits on the left
struct CodedNode {
  std::uint32_t code;  // number: smaller codes go left; category: set << 1 | others go left
  std::uint32_t next;  // slot << shift | step << 2 | left child is a leaf << 1 | right child is a leaf
};

struct CodedTree {
  const CodedNode* nodes;
  const std::uint32_t* codes;  // of row r and slot s at r * width + s * stride
  const std::uint32_t* sets;   // of the categories
  std::uint32_t width, stride;
  std::uint32_t shift;            // for these rows: the slot is next >> shift
  std::uint32_t step_mask;        // of step and leaves in next
  std::uint32_t missing_left;     // bit of next: missing goes left
  std::uint32_t category_begins;  // smallest `next` of a category
  bool has_categories;
};

// Returns whether a category, or a missing value, goes left at this node.
bool category_goes_left(const CodedTree& tree, CodedNode node, std::uint32_t code);
inline constexpr std::uint32_t missing_category = UINT32_MAX;

// Ascending thresholds; above them the last of every 16, and so on up to 16 of them. Infinities pad each level, at
// least one each. A search has no unpredictable branch and reads two cache lines per level.
struct alignas(64) Sixteen {
  double threshold[16];
};
struct RankLevels {
  std::uint32_t n;
  const Sixteen* level[8];  // from the top
};

struct CodedKernels {
  bool codes_by_column;  // the layout that `walk` needs for many rows: column-major, not row-major

  // Each row of `members` reaches a leaf: row[i] is in leaf[i], in any order. Both have space for walk_slack more. A
  // leaf is its number, plus the splits before it if `in_preorder`.
  void (*walk)(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
               std::uint32_t* leaf);

  // Walks the first row down many trees at once: tree t begins at split first[t], and its leaf number is added to
  // leaf[t].
  void (*walk_trees)(const CodedTree& tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf);

  // rank[i] = the number of thresholds below x[i]; 0 for NaN.
  void (*rank)(const RankLevels& levels, const double* x, std::size_t n, std::uint32_t* rank);

  // The same for one value of each column.
  void (*rank_row)(const RankLevels* levels, const double* x, std::size_t n, std::uint32_t* rank);
};
inline constexpr std::size_t walk_slack = 16;

const CodedKernels& coded_kernels();

const CodedKernels& coded_kernels_of(OfIsa<Isa::base>);
const CodedKernels& coded_kernels_of(OfIsa<Isa::avx2>);
const CodedKernels& coded_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
