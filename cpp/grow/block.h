// Growing the whole subtree below a node, depth-first, straight into the finished tree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "grow/search.h"

namespace spinney {

// The block's columns, in the form that its cuts need.
class BlockColumns {
 public:
  virtual ~BlockColumns() = default;

  // Takes the block's rows; they are reordered as nodes are split, where summaries look at them (values, not classes).
  virtual void start(const OpenNode& root, std::span<Row> rows) = 0;
  // The best cut of each of some columns.
  virtual void search(const OpenNode& node, std::span<const std::uint32_t> columns,
                      std::span<Candidate> candidates) = 0;
  // Parts the rows of a node by a cut; returns where the right child's begin.
  virtual std::size_t part(const OpenNode& node, const Choice& choice) = 0;
  // Adds the rows of a range to a statistic.
  virtual void add(std::size_t begin, std::size_t end, std::int64_t* stat) const = 0;
  // The split that was made last, perhaps without its threshold.
  virtual SplitRecord describe(const Choice& choice, bool left_heavier) = 0;
  // Its threshold, if `describe` leaves it out, and the latest time for it.
  virtual void cut_later(const Choice&, Tree&, std::size_t) {}
  virtual void cut_now(Tree&) {}
  // Prepares for a search of the children of a split.
  virtual void follow(const OpenNode&, const OpenNode&, const OpenNode&) {}
  // Does a search tell at once which of all columns are constant in a node?
  virtual bool tells_constants(const OpenNode&) const { return false; }
};

// Grows the subtree below `root`, whose range of the row index is `rows`; it is reordered. `tree` may have been another
// before; `tried` is scratch.
void grow_block(const Rules& rules, BlockColumns& columns, Tried& tried, OpenNode root, std::span<Row> rows, Tree& tree,
                Interrupt& interrupt);

}  // namespace spinney
