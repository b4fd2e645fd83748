// A node while it grows: a contiguous range of the row index, and what its descendants inherit.
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
  std::uint64_t key = 0;  // of the node's random streams: a function of the path from the root
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> features;  // columns that may still be cut here and below
  std::vector<std::uint32_t> groups;    // interaction groups still open
  std::vector<std::int64_t> stat;
  double impurity = 0;                                     // once it is known
  double worth = std::numeric_limits<double>::infinity();  // rpart: the most that a split of this node can be worth

  Row n() const { return static_cast<Row>(end - begin); }
};

struct Choice {
  std::uint32_t feature = 0;
  double gain = 0;   // decrease of the impurity times the node's fixed weight
  double merit = 0;  // gain by the column's cost: what best-first growth goes by
  Candidate candidate;
};

}  // namespace spinney
