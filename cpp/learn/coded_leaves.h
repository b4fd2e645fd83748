// Rows in codes down a tree that was grown on such codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "learn/chunks.h"
#include "tree/tree.h"

namespace spinney {

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
  for_each_chunk(rows.size(), n_threads, 30.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    codes.touch(rows.subspan(begin, end - begin), coding.columns.size());
    touch(rows.subspan(begin, end - begin));
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
