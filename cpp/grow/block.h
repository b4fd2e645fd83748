// Grows the whole subtree below a node, depth-first, directly into the finished tree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "grow/search.h"

namespace spinney {

// The columns of the block, in the form that its cuts need.
class BlockColumns {
 public:
  virtual ~BlockColumns() = default;

  // Takes the rows of the block; for regression they are reordered as nodes are split, because summaries read them.
  virtual void start(const OpenNode& root, std::span<Row> rows) = 0;
  // The best cut of each of some columns.
  virtual void search(const OpenNode& node, std::span<const std::uint32_t> columns,
                      std::span<Candidate> candidates) = 0;
  // Partitions the rows of a node by a cut; returns where the rows of the right child begin.
  virtual std::size_t partition(const OpenNode& node, const Choice& choice) = 0;
  // Adds the rows of a range to a statistic.
  virtual void add(std::size_t begin, std::size_t end, std::int64_t* stat) const = 0;
  // The split that was made last, possibly without its threshold.
  virtual SplitRecord describe(const Choice& choice, bool left_heavier) = 0;
  // The threshold of a split that `describe` left out; this is the latest time to set it.
  virtual void cut_later(const Choice&, Tree&, std::size_t) {}
  virtual void cut_now(Tree&) {}
  // Prepares a search of the children of a split.
  virtual void follow(const OpenNode&, const OpenNode&, const OpenNode&) {}
  // Returns whether a search identifies all constant columns of a node.
  virtual bool finds_constants(const OpenNode&) const { return false; }
};

// Grows the subtree below `root`, whose range of the row index is `rows`; the range is reordered. `tree` may hold
// another tree; `tried` is scratch.
void grow_block(const Rules& rules, BlockColumns& columns, TriedColumns& tried, OpenNode root, std::span<Row> rows,
                Tree& tree, Interrupt& interrupt);

}  // namespace spinney
