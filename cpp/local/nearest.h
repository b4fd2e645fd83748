// The k nearest of rows that arrive in any order; ties go to the lower row numbers.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/types.h"

namespace spinney {

struct Neighbour {
  double key;
  Row row;

  auto operator<=>(const Neighbour&) const = default;
};

class Nearest {
 public:
  explicit Nearest(std::size_t k) : k_(k) { found_.reserve(k); }

  // Rows with a larger key are not among the nearest.
  double limit() const { return found_.size() < k_ ? std::numeric_limits<double>::infinity() : found_.front().key; }

  void meet(const Neighbour& other) {
    if (found_.size() < k_) {
      found_.push_back(other);
      std::push_heap(found_.begin(), found_.end());
    } else if (other < found_.front()) {
      std::pop_heap(found_.begin(), found_.end());
      found_.back() = other;
      std::push_heap(found_.begin(), found_.end());
    }
  }

  // The neighbours, nearest first. Call it last.
  const std::vector<Neighbour>& sorted() {
    std::sort_heap(found_.begin(), found_.end());
    return found_;
  }

 private:
  std::size_t k_;
  std::vector<Neighbour> found_;  // a heap, the farthest first
};

}  // namespace spinney
