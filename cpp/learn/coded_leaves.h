// Walks coded rows down a tree that was grown on such codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "learn/chunks.h"
#include "tree/tree.h"

namespace spinney {

// The side of the rows with a code; `cut` is the last code that goes left for number columns.
inline bool code_goes_left(const Tree& tree, const CodedColumn& column, std::uint32_t at, std::uint32_t cut,
                           std::uint32_t code) {
  if (column.has_missing && code + 1 == column.n_codes) return (tree.flags[at] & Tree::missing_left) != 0;
  if (!column.is_category) return code <= cut;
  return category_goes_left(tree.sets.data() + tree.set[at], tree.flags[at] & Tree::default_left, code);
}

// A compact tree whose splits are on one-byte number columns or few categories, as in most small tables. A number code
// goes left up to the cut, and possibly the code of missing values too.
class ByteSteps {
 public:
  ByteSteps(const Tree& tree, const std::vector<std::uint32_t>& cut, const Coding& coding, const Codes& codes) {
    steps_.resize(tree.size());
    for (std::uint32_t at = 0; at < tree.size(); ++at) {
      if (tree.is_leaf(at)) continue;
      const auto f = static_cast<std::uint32_t>(tree.feature[at]);
      const CodedColumn& column = coding.columns[f];
      if ((column.is_category && column.n_codes > 64) || column.is_wide || codes.is_listed(f)) {
        steps_.clear();
        return;
      }
      Step& step = steps_[at];
      step = {codes.narrow(f), cut[at], UINT32_MAX, tree.right[at], 0};
      if (column.is_category) {
        step.missing = of_categories;
        for (std::uint32_t code = 0; code < column.n_codes; ++code)
          step.left |= std::uint64_t{code_goes_left(tree, column, at, 0, code)} << code;
      } else if (column.has_missing && (tree.flags[at] & Tree::missing_left) != 0) {
        step.missing = column.n_codes - 1;
      }
    }
  }

  bool empty() const { return steps_.empty(); }

  std::uint32_t leaf(Row row) const {
    std::uint32_t at = 0;
    for (const Step* step = steps_.data(); step->codes != nullptr; step = steps_.data() + at) {
      const std::uint32_t code = step->codes[row];
      const bool is_left = step->missing == of_categories ? (step->left >> code & 1) != 0
                                                          : (code <= step->cut) | (code == step->missing);
      at = is_left ? at + 1 : step->right;
    }
    return at;
  }

 private:
  static constexpr std::uint32_t of_categories = UINT32_MAX - 1;  // in place of the code of missing values

  struct Step {
    const std::uint8_t* codes = nullptr;  // of its column; null: a leaf
    std::uint32_t cut = 0, missing = 0, right = 0;
    std::uint64_t left = 0;  // one bit per category
  };
  std::vector<Step> steps_;
};

// Calls body(row, leaf), after touch(rows) for some rows at a time; `cut` is by node the last code that goes left for
// number columns.
template <class Body, class Touch>
void for_each_leaf(const Tree& tree, const std::vector<std::uint32_t>& cut, const Coding& coding, const Codes& codes,
                   std::span<const Row> rows, int n_threads, Body&& body, Touch&& touch) {
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
        const std::uint32_t code = codes.code(coding, f, rows[i]);
        at = code_goes_left(tree, coding.columns[f], at, cut[at], code) ? at + 1 : tree.right[at];
      }
      body(rows[i], at);
    }
  });
}

}  // namespace spinney
