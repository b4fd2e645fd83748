// Rows in codes down a tree that was grown on such codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "learn/chunks.h"
#include "tree/tree.h"

namespace spinney {

// A tree all of whose splits are of numbers in bytes, as those of most small tables are: node by node, what a row needs to
// know of it. A code goes left up to the cut; that of missing values perhaps, too.
class ByteSteps {
 public:
  ByteSteps(const Tree& tree, const std::vector<std::uint32_t>& cut, const Coding& coding, const Codes& codes) {
    steps_.resize(tree.size());
    for (std::uint32_t at = 0; at < tree.size(); ++at) {
      if (tree.is_leaf(at)) continue;
      const auto f = static_cast<std::uint32_t>(tree.feature[at]);
      const CodedColumn& column = coding.columns[f];
      if (column.is_category || column.is_wide || codes.is_listed(f)) {
        steps_.clear();
        return;
      }
      const bool takes_missing = column.has_missing && (tree.flags[at] & Tree::missing_left) != 0;
      steps_[at] = {codes.narrow(f), cut[at], takes_missing ? column.n_codes - 1 : UINT32_MAX, tree.right[at]};
    }
  }

  bool empty() const { return steps_.empty(); }

  std::uint32_t leaf(Row row) const {
    std::uint32_t at = 0;
    for (const Step* step = steps_.data(); step->codes != nullptr; step = steps_.data() + at) {
      const std::uint32_t code = step->codes[row];
      at = ((code <= step->cut) | (code == step->missing)) ? at + 1 : step->right;
    }
    return at;
  }

 private:
  struct Step {
    const std::uint8_t* codes = nullptr;  // of its column; null: a leaf
    std::uint32_t cut = 0, missing = 0, right = 0;
  };
  std::vector<Step> steps_;
};

// body(row, leaf), after touch(rows) of some at a time; `cut` is by node the last code that goes left, where a column of numbers is split.
template <class Body, class Touch>
void for_each_leaf(const Tree& tree, const std::vector<std::uint32_t>& cut, const Coding& coding, const Codes& codes,
                   std::span<const Row> rows, int n_threads, Body&& body, Touch&& touch) {
  const auto goes_left = [&](std::uint32_t at, std::uint32_t code) {
    const CodedColumn& column = coding.columns[static_cast<std::size_t>(tree.feature[at])];
    if (column.has_missing && code + 1 == column.n_codes) return (tree.flags[at] & Tree::missing_left) != 0;
    if (!column.is_category) return code <= cut[at];
    return category_goes_left(tree.sets.data() + tree.set[at], tree.flags[at] & Tree::default_left, code);
  };
  const ByteSteps steps(tree, cut, coding, codes);
  for_each_chunk(rows.size(), n_threads, 30.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    codes.touch(rows.subspan(begin, end - begin), coding.columns.size());
    touch(rows.subspan(begin, end - begin));
    if (!steps.empty()) {
      for (std::size_t i = begin; i < end; ++i) body(rows[i], steps.leaf(rows[i]));
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::uint32_t at = 0;
      while (!tree.is_leaf(at)) {
        const auto f = static_cast<std::uint32_t>(tree.feature[at]);
        at = goes_left(at, codes.code(coding, f, rows[i])) ? at + 1 : tree.right[at];
      }
      body(rows[i], at);
    }
  });
}

}  // namespace spinney
