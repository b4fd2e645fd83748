// The splits that were weighed at the nodes of a tree: its own, the runners-up, and those that imitate it where its
// column has no value. Flat: the splits of node i are begin[i] … begin[i + 1] - 1, its own first.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace spinney {

template <class T>
void extend(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

struct SplitList {
  enum Role : std::uint8_t { primary, competitor, surrogate };
  // reversed: values up to the threshold go right; for a tree's own split: rpart would draw the right child first
  enum Flag : std::uint8_t { category = 1, reversed = 2 };
  enum class Side : std::uint8_t { right, left, unknown };

  std::vector<std::uint32_t> begin;  // by node, and the end; empty: nothing was kept
  std::vector<std::uint8_t> role, flags;
  std::vector<std::uint32_t> feature;
  std::vector<double> threshold;
  std::vector<std::uint32_t> set;    // category splits: where in `sets`
  std::vector<std::uint32_t> sets;   // each: number of categories that go left, these, number that go right, these
  std::vector<std::uint32_t> count;  // rows with a value; surrogates: rows they placed
  std::vector<double> improve;       // gain; surrogates: agreement
  std::vector<double> adjusted;      // surrogates: agreement beyond that of the larger side

  bool empty() const { return begin.empty(); }
  std::size_t size() const { return role.size(); }
  void end_node();  // the splits added since the last call are the next node's
  void append(const SplitList& subtree);
  void copy_node(const SplitList& from, std::size_t node);  // and ends the node

  // Where a value goes; unknown: it is missing, or a category that the node has not seen.
  Side side_of(std::size_t split, double x) const;
  std::size_t set_words(std::size_t split) const;  // length of its set
};

// One of them, on its own.
struct WeighedSplit {
  SplitList::Role role = SplitList::primary;
  std::uint32_t feature = 0;
  bool is_category = false, reversed = false;
  double threshold = 0;
  std::vector<std::uint32_t> left_codes, right_codes;  // ascending
  Row count = 0;
  double improve = 0, adjusted = 0;
};
void add(SplitList& list, const WeighedSplit& split);

}  // namespace spinney
