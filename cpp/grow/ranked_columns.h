// The columns of a block whose nodes try few of many columns, for more than two classes: nothing is sorted or kept in
// order, ranks are read row by row and counted. The rows of a node stay where they are: places stand for them, which point
// to the table's packed ranks or, in small nodes, to copies that lie side by side, and so in a near cache.
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

  // Can the rows of this target be counted?
  static bool fits(const Target& target, std::span<const Row> rows);
  void start(const OpenNode&, std::span<Row> rows) override;
  bool tells_constants(const OpenNode& node) const override { return node.n() <= small_rows; }

  void search(const OpenNode& node, std::span<const std::uint32_t> columns, std::span<Candidate> candidates) override;
  // The ranks of the columns that were searched last are still here, and the chosen one is among them.
  std::size_t part(const OpenNode& node, const Choice& choice) override;
  void add(std::size_t begin, std::size_t end, std::int64_t* stat) const override;
  SplitRecord describe(const Choice& choice, bool left_heavier) override;

 private:
  // Ranks of the rows of a subtree, once more.
  struct Copy {
    std::size_t begin = 0, end = 0;  // where the rows of the subtree lie
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
  std::vector<std::uint32_t> places_;  // of the block's rows, parted as nodes are split
  std::vector<std::uint32_t> packed_;  // weight and class, parted like places_
  std::vector<std::uint64_t> flags_;   // parted like places_; empty: no column is a flag
  std::vector<std::uint16_t> ranks_;   // of the node's rows, column by column
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint64_t> spare_flags_;
  static constexpr std::size_t most_copied = 64;  // bytes of a row; nodes read few of those that longer rows have
  static constexpr std::array<std::size_t, 2> copy_bytes{std::size_t{1} << 19, std::size_t{1} << 14};
  std::array<Copy, 2> copies_;
  const std::uint8_t* bits_ = nullptr;  // what places point to: all rows, or a copy
  const Copy* source_ = nullptr;        // null: all rows
  static constexpr std::size_t small_rows = 64;
  std::vector<std::uint32_t> read_;        // columns of the search that are not known to be constant
  std::vector<std::uint8_t> differences_;  // bits, laid out as a row
  std::uint64_t flag_differences_ = 0;
  std::size_t compared_begin_ = 0, compared_end_ = 0;  // the node that they are of
  double below_ = 0, above_ = 0;                       // the values next to the cut that was made last
};

}  // namespace spinney
