// The columns of a block whose nodes try few of many columns, for more than two classes: nothing is sorted, ranks are
// read row by row and counted. The rows of a node are represented by positions that point to the table's packed ranks
// or, in small nodes, to contiguous copies that fit in cache.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cells/class_counts.h"
#include "criterion/wide.h"
#include "grow/block.h"

namespace spinney {

class RankedColumns final : public BlockColumns {
 public:
  RankedColumns(const Rules& rules, const Bins& bins, const Wide<ClassRows>& criterion)
      : rules_(rules), bins_(bins), criterion_(criterion), all_(bins.ranks), kernels_(kernels()) {}

  // Returns whether rows of this target can be counted.
  static bool fits(const Target& target, std::span<const Row> rows);
  void start(const OpenNode&, std::span<Row> rows) override;
  bool finds_constants(const OpenNode& node) const override { return node.n() <= small_rows; }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override;
  // The ranks of the columns searched last are still available, and the chosen column is among them.
  std::size_t partition(const OpenNode& node, const Choice& choice) override;
  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;

 private:
  // A copy of the ranks of a subtree's rows.
  struct Copy {
    std::size_t begin = 0, end = 0;  // range of the rows of the subtree
    std::vector<std::uint8_t> bits;
    std::vector<Row> rows;  // where ranks are bins
    bool holds(const OpenNode& node) const { return begin <= node.begin && node.end <= end; }
  };

  void draw_near(const OpenNode& node);
  void copy_rows(const OpenNode& node, Copy& copy);
  Row row_of(std::uint32_t place) const { return source_ == nullptr ? place : source_->rows[place]; }

  void find_differences(const OpenNode& node);
  bool differs(const RowRanks::Place& place) const;
  void read_flag(const OpenNode& node, std::uint32_t flag);
  void read_ranks(const OpenNode& node, std::span<const std::uint32_t> columns);
  void find_neighbours(const OpenNode& node, const Choice& choice, const std::uint16_t* ranks);
  const Rules& rules_;
  const Bins& bins_;
  const Wide<ClassRows>& criterion_;
  const RowRanks& all_;
  const Kernels& kernels_;
  ClassCounts counts_;
  std::vector<std::uint32_t> places_;  // of the block's rows, partitioned as nodes are split
  std::vector<std::uint32_t> packed_;  // weight and class, partitioned like places_
  std::vector<std::uint64_t> flags_;   // partitioned like places_; empty: no column is a flag
  std::vector<std::uint16_t> ranks_;   // of the node's rows, column by column
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint64_t> spare_flags_;
  static constexpr std::size_t most_copied = 64;  // bytes of a row; nodes read only a few bytes of longer rows
  static constexpr std::array<std::size_t, 2> copy_bytes{std::size_t{1} << 19, std::size_t{1} << 14};
  std::array<Copy, 2> copies_;
  const std::uint8_t* bits_ = nullptr;  // target of the positions: all rows, or a copy
  const Copy* source_ = nullptr;        // null: all rows
  static constexpr std::size_t small_rows = 64;
  std::vector<std::uint32_t> read_;        // searched columns that are not known to be constant
  std::vector<std::uint8_t> differences_;  // bits, in the layout of a row
  std::uint64_t flag_differences_ = 0;
  std::size_t compared_begin_ = 0, compared_end_ = 0;  // the node that differences_ belongs to
  double below_ = 0, above_ = 0;                       // the values next to the last cut
};

}  // namespace spinney
