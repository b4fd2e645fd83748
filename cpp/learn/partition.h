// Some rows of a table that is partitioned among processes: they answer the messages of whoever boosts on all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boost/row_messages.h"
#include "learn/leaf_setting.h"

namespace spinney {

// Begins at a multiple of `chunk_rows` of the table: sums are by chunk, and none is shared.
class Partition {
 public:
  // `rows` has a table without columns, whose codes are `coded`; `held_out` has the same, or none.
  Partition(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
            const TablePlace& place);
  ~Partition();

  std::string answer(std::string_view request, Interrupt& interrupt);

 private:
  struct Memory;    // that the trees of a score use one after the other
  struct TreeRows;  // of a tree that is being grown

  // Each reads a request and writes the answer.
  void plant(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
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
  LeafSetting leaves_;
  std::vector<std::unique_ptr<Memory>> memory_;     // by score, once it is needed
  std::vector<std::unique_ptr<TreeRows>> growing_;  // by score, those that are being grown
  std::size_t n_weighted_ = 0;                      // rows out of bag with a weight; they come first
  std::vector<RowVector<double>> kept_;             // best scores of the validation set, by score
};

}  // namespace spinney
