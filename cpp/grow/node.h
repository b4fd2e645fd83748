// A node while it grows: a contiguous range of the row index, and the state its descendants inherit.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"
#include "cells/candidate.h"

namespace spinney {

struct OpenNode {
  std::size_t begin = 0, end = 0;  // range of the row index
  std::uint32_t depth = 0;
  std::uint64_t key = 0;  // key of the node's random streams: a function of the path from the root
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> features;  // columns that may still be split on here and below
  std::vector<std::uint32_t> groups;    // interaction groups that are still open
  std::vector<std::int64_t> stat;
  double impurity = 0;  // set once it is known
  double max_gain =
      std::numeric_limits<double>::infinity();  // rpart: upper bound of what a split of this node can gain

  Row n() const { return static_cast<Row>(end - begin); }
};

struct Choice {
  std::uint32_t feature = 0;
  double gain = 0;   // decrease of impurity times the node's fixed weight
  double merit = 0;  // gain divided by the column's cost: the order of best-first growth
  Candidate candidate;
};

}  // namespace spinney
