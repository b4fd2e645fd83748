// The loop that builds a tree; boosting has a separate one.
//
// Depth-first: nodes larger than a block are split one by one, with a parallel search of their columns; every smaller
// node becomes a task, and the subtrees of tasks grow in parallel. Best-first: the open node with the largest
// improvement is split next. The result does not depend on the number of threads or the order of the tasks.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "grow/worker.h"

namespace spinney {

// A tree, and the rows that stopped at each of its nodes as ranges of the row index.
struct GrownTree {
  Tree tree;
  std::vector<std::pair<std::size_t, std::size_t>> resting;
};

// Memory that a thread reuses for consecutive trees: fresh memory is allocated page by page.
struct GrowBuffers {
  std::vector<Row> rows;  // the row index
  Tree tree;
};

// Grows a tree on the rows of buffers.rows, which are left in the order of its leaves.
GrownTree grow(const Rules& rules, Bins& bins, Workers workers, GrowBuffers& buffers, Interrupt& interrupt);

}  // namespace spinney
