// Ranking values, and walking coded rows down coded trees: compiled once per instruction set, with the same results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace spinney {

// A split. Leaves are no nodes: they are numbered from left to right, and the walk counts those it leaves behind.
//
//   left child    the next node
//   right child   `step` nodes on, and as many leaves: one more than the splits on the left
struct CodedNode {
  std::uint32_t code;  // of a number: smaller codes go left; of a category: set << 1 | others go left
  std::uint32_t next;  // slot << shift | step << 2 | left child is a leaf << 1 | right child is a leaf
};

struct CodedTree {
  const CodedNode* nodes;
  const std::uint32_t* codes;  // of the rows: of row r and slot s at r * width + s * stride
  const std::uint32_t* sets;   // of the categories
  std::uint32_t width, stride;
  std::uint32_t shift;            // of these rows: the slot is next >> shift
  std::uint32_t step_mask;        // of step and leaves in next
  std::uint32_t missing_left;     // the bit of next that says so
  std::uint32_t category_begins;  // smallest `next` of a category
  bool has_categories;
};

// Does a category, or a missing one, go left at this node?
bool category_goes_left(const CodedTree& tree, CodedNode node, std::uint32_t code);
inline constexpr std::uint32_t missing_category = UINT32_MAX;

// Thresholds, ascending; above them the last of every 16, and so on up to 16 of them. Infinities fill up each level, at
// least one of them. A search has no branch to guess, and touches two cache lines a level.
struct alignas(64) Sixteen {
  double threshold[16];
};
struct RankLevels {
  std::uint32_t n;
  const Sixteen* level[8];  // from the top
};

struct CodedKernels {
  bool codes_by_column;  // as `walk` wants those of many rows: a column's side by side, not a row's

  // Each row of `members` comes to rest in a leaf: row[i] in leaf[i], in any order. Both have room for walk_slack more.
  // A leaf is its number, to which `in_preorder` adds the splits before it.
  void (*walk)(const CodedTree& tree, const std::uint32_t* members, std::size_t n, bool in_preorder, std::uint32_t* row,
               std::uint32_t* leaf);

  // The first row down many trees at once: tree t begins at split first[t], and the number of its leaf is added to leaf[t].
  void (*walk_trees)(const CodedTree& tree, std::size_t n_trees, const std::uint32_t* first, std::uint32_t* leaf);

  // rank[i] = how many thresholds lie below x[i]; 0 for NaN.
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
