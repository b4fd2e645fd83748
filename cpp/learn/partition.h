// One partition of the rows of a distributed table: it answers the requests of the coordinating booster.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boost/row_messages.h"
#include "learn/leaf_updater.h"

namespace spinney {

// Begins at a multiple of `chunk_rows` of the table, because sums are by chunk.
class Partition {
 public:
  // `rows` has a table without columns, whose codes are `coded`; `held_out` has the same table, or none.
  Partition(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
            const TablePlace& place);
  ~Partition();

  std::string answer(std::string_view request, Interrupt& interrupt);

 private:
  struct Memory;    // memory that consecutive trees of a score reuse
  struct TreeRows;  // the rows of a tree that is being grown

  // Each reads a request and writes the answer.
  void init_root(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void split(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void leaf_sums(MessageReader& from, MessageWriter& to);

  TreeRows& tree_of(std::uint32_t score);
  std::size_t partition(TreeRows& tree, const NodeSplit& request);
  void put_counts(const TreeRows& tree, const NodeHistogram& request, MessageWriter& to) const;
  void add_leaves(BoostedTree& grown, std::uint32_t score, std::span<const std::uint32_t> nodes,
                  std::span<const std::uint32_t> names);
  void end_round();
  void put_state(MessageWriter& to);
  void add(MessageReader& from, MessageWriter& to);
  void out_of_bag(MessageReader& from, MessageWriter& to);
  void put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const;

  BoostingState state_;
  Gradients gradients_;
  RowSample sample_;
  LeafUpdater leaves_;
  std::vector<std::unique_ptr<Memory>> memory_;     // by score, created when needed
  std::vector<std::unique_ptr<TreeRows>> growing_;  // by score, trees being grown
  std::size_t n_weighted_ = 0;                      // out-of-bag rows with a weight, which come first
  std::vector<RowVector<double>> best_scores_;      // best scores of the validation set, by score
};

}  // namespace spinney
