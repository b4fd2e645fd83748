// A forest as a walk over many rows needs it: nodes of 8 bytes, and rows as small integers.
//
//   code    of a value: how many of the forest's thresholds of its column lie below it. A node holds 1 + the rank of its
//           own, so x <= threshold is code < node.code.
//   slot    a column in use, twice: once with missing values above all codes, once below, for nodes that send them right
//           and left. Rows without missing values are kept once, which halves the slot. The last slot is above all.
//   leaf    leads to itself, so that rows walked together need not stop together; its code is the place of its value
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "data/column.h"
#include "predict/coded_walk.h"
#include "tree/forest.h"

namespace spinney {

class CodedForest {
 public:
  CodedForest(const Forest& forest, int n_threads, Interrupt& interrupt);

  bool is_usable() const { return !nodes_.empty(); }  // else the trees are too large, or the columns too many

  // Rows begin … begin + n - 1 as codes. Reused from block to block.
  struct Block {
    std::vector<std::uint32_t> codes;
    std::vector<double> values;
    std::vector<Row> rows;
    std::size_t width = 0;
    bool plain = true;  // no value is missing
  };
  void read(const Table& table, std::size_t begin, std::size_t n, Block& block) const;
  std::size_t width() const { return columns_.size() + 1; }

  // leaf[i] = where row members[i] of the block comes to rest in tree t, counted within the tree.
  void walk(const Block& block, std::size_t t, std::span<const std::uint32_t> members, std::uint32_t* leaf) const;
  const double* value(std::size_t t, std::uint32_t leaf) const {
    return values_.data() + std::size_t{nodes_[forest_.root[t] + leaf].code} * forest_.nodes.value_width;
  }

  // out += the values of the leaves of one row, given as the numbers of all its columns.
  void sum_one(const double* row, double* out) const;

 private:
  void number_slots();
  void code_thresholds(int n_threads, Interrupt& interrupt);
  void code_leaves();
  bool is_category(std::uint32_t slot) const { return slot >= first_category_; }
  std::uint32_t never() const { return static_cast<std::uint32_t>(2 * columns_.size()); }
  std::uint32_t walk_categories(const std::uint32_t* codes, std::uint32_t shift, std::size_t t) const;

  const Forest& forest_;
  std::vector<std::uint32_t> columns_;           // in use: numbers, then categories
  std::vector<std::uint32_t> slot_of_;           // by column
  std::uint32_t first_category_ = 0;             // slots from here are of categories
  std::uint32_t shift_ = 0;                      // of the slot in CodedNode::next
  std::vector<std::vector<double>> thresholds_;  // of each number column in use, ascending
  std::vector<CodedNode> nodes_;
  std::vector<double> values_;  // of leaves; the first ones are the pure ones
};

}  // namespace spinney
