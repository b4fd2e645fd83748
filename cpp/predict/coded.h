// A forest encoded for walking many rows: splits of 8 bytes, no leaves, and rows as small integers.
//
//   code    of a value: the number of the forest's thresholds of its column below it. A node stores 1 + the rank of its
//           threshold, so x <= threshold is code < node.code.
//   slot    a column in use, stored twice: with missing values above all codes and below, for nodes that send them
//           right and left. Rows without missing values are stored once, which halves the slot.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/coded_walk.h"
#include "tree/forest.h"

namespace spinney {

// The thresholds of one column, prepared for searching.
class Thresholds {
 public:
  explicit Thresholds(std::span<const double> ascending = {});
  RankLevels levels() const;

 private:
  std::vector<std::vector<Sixteen>> levels_;  // from all thresholds upwards
};

class CodedForest {
 public:
  CodedForest(const Forest& forest, int n_threads, Interrupt& interrupt);

  bool is_usable() const { return is_usable_; }  // false: the trees are too large, or the columns too many

  // Codes of rows begin … begin + n - 1. Reused from block to block.
  struct Block {
    std::vector<std::uint32_t> buffer;
    std::vector<double> values;
    std::vector<Row> rows;
    const std::uint32_t* codes = nullptr;
    std::size_t width = 0, stride = 0;  // see CodedTree
    bool plain = true;                  // no value is missing
  };
  void read(const Table& table, std::size_t begin, std::size_t n, Block& block) const;
  std::size_t width() const { return columns_.size() + 1; }

  // Each row of `members` reaches a leaf of tree t: row[i] is in leaf[i], in any order. Both have space for walk_slack
  // more. Leaves are numbered from left to right, or by their node within the tree.
  enum class LeavesAre { numbers, nodes };
  void walk(const Block& block, std::size_t t, std::span<const std::uint32_t> members, LeavesAre leaves_are,
            std::uint32_t* row, std::uint32_t* leaf) const;

  // Adds the values of the leaves of tree t, by number, to out[row].
  void add(std::size_t t, std::span<const std::uint32_t> row, const std::uint32_t* leaf, double* out) const;

  // Calls take(t, values of the row's leaf) for trees t = first … last - 1. The row is given by its numbers, column by
  // column.
  template <class ValueOf, class Take>
  void visit_one(std::size_t first, std::size_t last, ValueOf&& value_of, Take&& take) const {
    std::array<double, most_columns> x;
    for (std::size_t c = 0; c < columns_.size(); ++c) x[c] = value_of(columns_[c]);
    std::array<std::uint32_t, 2 * most_columns> codes;
    code_row(x.data(), codes.data());
    std::array<std::uint32_t, most_trees> leaf;
    for (std::size_t begin = first; begin < last; begin += most_trees) {
      const std::size_t n = std::min(most_trees, last - begin);
      walk_row(codes.data(), begin, n, leaf.data());
      for (std::size_t k = 0; k < n; ++k) take(begin + k, value(leaf[k]));
    }
  }

 private:
  static constexpr std::size_t most_columns =
      512;                                        // with more, coding a row costs more than reading the values it needs
  static constexpr std::size_t most_trees = 256;  // that one row is walked down at a time

  void number_slots();
  void code_splits(std::vector<double>& threshold, std::vector<std::vector<Row>>& splits);
  void code_split(std::size_t node, std::vector<double>& threshold, std::vector<std::vector<Row>>& splits);
  void rank_thresholds(const std::vector<double>& threshold, std::vector<std::vector<Row>>& splits, int n_threads,
                       Interrupt& interrupt);
  void code_leaves();
  std::uint32_t n_slots() const { return static_cast<std::uint32_t>(2 * columns_.size()); }
  void code_row(const double* x, std::uint32_t* codes) const;
  void walk_row(const std::uint32_t* codes, std::size_t first, std::size_t n_trees, std::uint32_t* leaf) const;
  CodedTree tree_of(const std::uint32_t* codes, std::size_t width, std::size_t stride, bool plain) const;
  const double* value(std::size_t leaf) const {
    return values_.data() + (places_.empty() ? leaf : places_[leaf]) * std::size_t{forest_.nodes.value_width};
  }

  const Forest& forest_;
  bool is_usable_ = false;
  std::vector<std::uint32_t> columns_;  // in use: numbers, then categories
  std::vector<std::uint32_t> slot_of_;  // by column
  std::uint32_t first_category_ = 0;    // slots from here on are categories
  std::uint32_t shift_ = 0;             // of the slot in CodedNode::next
  std::vector<Thresholds> thresholds_;  // of each number column in use
  std::vector<RankLevels> levels_;      // positions of the thresholds
  std::vector<CodedNode> nodes_;
  std::vector<std::uint32_t> first_split_, first_leaf_;  // by tree, then the end
  std::vector<std::uint32_t> places_;  // index of each leaf's values in values_, unless there is one value per leaf
  std::vector<double> values_;
};

}  // namespace spinney
