// The recorded splits of a tree's nodes: the primary split, its competitors and its surrogates. Flat: the splits of
// node i are begin[i] … begin[i + 1] - 1, the primary one first.
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
  // reversed: values up to the threshold go right; for a primary split: rpart would draw the right child first
  enum Flag : std::uint8_t { category = 1, reversed = 2 };
  enum class Side : std::uint8_t { right, left, unknown };

  std::vector<std::uint32_t> begin;  // by node, then the end; empty: nothing was recorded
  std::vector<std::uint8_t> role, flags;
  std::vector<std::uint32_t> feature;
  std::vector<double> threshold;
  std::vector<std::uint32_t> set;  // category splits: index in `sets`
  std::vector<std::uint32_t>
      sets;  // each: number of categories that go left, their codes, number that go right, their codes
  std::vector<std::uint32_t> count;  // rows with a value; surrogates: rows they assigned
  std::vector<double> improve;       // gain; surrogates: agreement
  std::vector<double> adjusted;      // surrogates: agreement beyond that of the majority side

  bool empty() const { return begin.empty(); }
  std::size_t size() const { return role.size(); }
  void end_node();                // assigns the splits added since the last call to the next node
  void pad(std::size_t n_nodes);  // up to n_nodes nodes, the new ones without recorded splits
  void append(const SplitList& subtree);
  void copy_node(const SplitList& from, std::size_t node);  // and ends the node

  // The side of a value; unknown: it is missing, or a category that did not occur in the node.
  Side side_of(std::size_t split, double x) const;
  std::size_t set_words(std::size_t split) const;  // length of its set
};

// One of the splits.
struct RankedSplit {
  SplitList::Role role = SplitList::primary;
  std::uint32_t feature = 0;
  bool is_category = false, reversed = false;
  double threshold = 0;
  std::vector<std::uint32_t> left_codes, right_codes;  // ascending
  Row count = 0;
  double improve = 0, adjusted = 0;
};
void add(SplitList& list, const RankedSplit& split);

}  // namespace spinney
