// Requests to rows of other processes, as bytes; see boost/rows.h.
//
// Partitions answer messages in the order in which they are sent, so that one may be sent before another is answered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "boost/rows.h"

namespace spinney {

enum class Request : std::uint8_t {
  gradients,    // at the present scores: their sums, and the rows' losses, chunk by chunk
  plant,        // Rows::plant
  split,        // batches of trees: counts, partition, histograms; then leaf_sums
  leaf_sums,    // Rows::leaf_sums
  add,          // finished trees: Rows::add, and rows that they were not grown on
  out_of_bag,   // targets, weights and scores of some rows that were not drawn
  held_scores,  // scores of all rows, as those held out have them
  keep_scores,  // nothing: these scores are the best so far
  kept_scores,  // those that were kept last
};

inline MessageWriter message_of(Request kind) {
  MessageWriter to;
  to.put(static_cast<std::uint8_t>(kind));
  return to;
}

// What a tree wants to know next. The answer: counts, rows that went left, histograms.
struct RowBatch {
  std::uint32_t tree = 0;
  std::vector<ColumnCount> counts;
  std::vector<NodeSplit> splits;
  std::vector<std::uint32_t> histograms;  // of nodes

  bool empty() const { return counts.empty() && splits.empty(); }
};

void put_batch(MessageWriter& to, const RowBatch& batch);
RowBatch get_batch(MessageReader& from);
void put_roots(MessageWriter& to, const RootsRequest& roots);
RootsRequest get_roots(MessageReader& from);

// Have rows do what a message asks for, and write the answer.
void answer_plant(Rows& rows, MessageReader& from, MessageWriter& to, Interrupt& interrupt);
void answer_batches(Rows& rows, MessageReader& from, MessageWriter& to, Interrupt& interrupt);
void answer_leaf_sums(Rows& rows, MessageReader& from, MessageWriter& to);

}  // namespace spinney
