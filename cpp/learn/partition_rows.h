// The rows of a partition as the trees of a round split them: they answer the requests of boost/row_messages.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "boost/row_messages.h"
#include "learn/leaf_setting.h"

namespace spinney {

class PartitionRows {
 public:
  PartitionRows(BoostingState& state, Gradients& gradients, RowSample& sample, const LeafSetting& leaves);
  ~PartitionRows();

  // Each reads a request and writes the answer.
  void plant(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void split(MessageReader& from, MessageWriter& to, Interrupt& interrupt);
  void leaf_sums(MessageReader& from, MessageWriter& to);

  // Adds the values of leaves, which have these numbers in messages, to the scores of the rows that the tree was grown on.
  void add(BoostedTree& grown, std::uint32_t score, std::span<const std::uint32_t> nodes,
           std::span<const std::uint32_t> names);

  // The trees of the round are done.
  void end_round();

  std::size_t n_weighted_out_of_bag() const { return n_weighted_; }  // these come first

 private:
  struct Memory;    // that the trees of a score use one after the other
  struct TreeRows;  // of a tree that is being grown

  TreeRows& tree_of(std::uint32_t score);
  std::size_t partition(TreeRows& tree, const NodeSplit& request);
  void put_counts(const TreeRows& tree, const NodeHistogram& request, MessageWriter& to) const;

  BoostingState& state_;
  Gradients& gradients_;
  RowSample& sample_;
  const LeafSetting& leaves_;
  std::vector<std::unique_ptr<Memory>> memory_;     // by score, once it is needed
  std::vector<std::unique_ptr<TreeRows>> growing_;  // by score, those that are being grown
  std::size_t n_weighted_ = 0;
};

[[noreturn]] void refuse_request();

}  // namespace spinney
