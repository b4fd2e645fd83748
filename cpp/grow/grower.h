// The loop that builds a tree; boosting has one of its own.
//
// Depth-first: nodes larger than a block are split one by one, their columns searched in parallel; every smaller node
// becomes a task, and the tasks' subtrees grow in parallel. Best-first: the open node that improves most is split next.
// Neither the number of threads nor the order of the tasks shows in the result.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "grow/worker.h"

namespace spinney {

// A tree, and the rows that came to rest at each of its nodes, as ranges of the row index.
struct GrownTree {
  Tree tree;
  std::vector<std::pair<std::size_t, std::size_t>> resting;
};

// What a thread that grows one tree after another uses again: memory that is new has to be asked for page by page.
struct GrowBuffers {
  std::vector<Row> rows;  // the row index
  Tree tree;
};

// Grows a tree on the rows of buffers.rows, which are left in the order of its leaves.
GrownTree grow(const Rules& rules, Bins& bins, Workers workers, GrowBuffers& buffers, Interrupt& interrupt);

}  // namespace spinney
