// Rows in this process, behind the seam of boost/rows.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "boost/rows.h"
#include "learn/gradients.h"
#include "learn/sampling.h"

namespace spinney {

class LocalRows final : public Rows {
 public:
  LocalRows(BoostingState& state, Gradients& gradients, RowSample& sample);
  ~LocalRows() override;

  DrawnRows plant(const RootsRequest& roots, CellSink sink, Interrupt& interrupt) override;
  std::vector<std::uint64_t> partition(std::uint32_t tree, std::span<const NodeSplit> splits) override;
  void histograms(std::uint32_t tree, std::span<const std::uint32_t> nodes, CellSink sink,
                  Interrupt& interrupt) override;
  std::vector<Row> counts(std::uint32_t tree, ColumnCount of) override;
  std::vector<LeafSums> leaf_sums(std::uint32_t tree, std::span<const std::uint32_t> nodes) override;
  void add(std::uint32_t tree, std::span<const LeafAdded> leaves) override;

  // The trees of the round are done.
  void end_round();

  std::size_t n_weighted_out_of_bag() const { return n_weighted_; }  // these come first

 private:
  struct Memory;    // that the trees of a score have in turn
  struct TreeRows;  // of a tree that is being grown

  TreeRows& tree_of(std::uint32_t score);
  void put_cells(TreeRows& tree, std::size_t begin, std::size_t end, bool is_root, CellSink sink,
                 Interrupt& interrupt) const;

  BoostingState& state_;
  Gradients& gradients_;
  RowSample& sample_;
  std::vector<std::unique_ptr<Memory>> memory_;     // by score, once it is needed
  std::vector<std::unique_ptr<TreeRows>> growing_;  // by score, those that are being grown
  std::size_t n_weighted_ = 0;
};

[[noreturn]] void refuse_request();

}  // namespace spinney
