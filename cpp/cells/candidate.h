// The best cut found in one column of one node, and the limits a cut must respect.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace spinney {

inline constexpr double no_score = -std::numeric_limits<double>::infinity();

struct Candidate {
  double score = no_score;
  bool constant = false;       // the column has one value here, in this node and all below it
  bool missing_left = false;   // where missing rows go, if the node has any
  bool missing_alone = false;  // present rows left, missing rows right
  bool has_missing = false;
  bool tied = false;     // another cut is as good, up to rounding; noted on request
  std::uint32_t at = 0;  // which cut of the sweep: lower wins a tie
  Row n_left = 0;
  double w_left = 0;                      // weight on the left, in fixed units
  std::uint32_t below = 0, above = 0;     // numbers: the rows next to the cut
  std::uint32_t code_below = 0;           // numbers: code of `below`
  double threshold = 0;                   // random cuts only
  std::vector<std::uint32_t> left_codes;  // categories that go left
  std::uint32_t n_ordered = 0;            // categories that were put in the order that suits the target best
  double charge = 0;                      // what chance alone may have gained by that, in the unit of gains

  bool found() const { return score > no_score; }
};

inline bool is_near(double a, double b) {
  return a > no_score && b > no_score && std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// To be called with every score before it is compared with the best.
inline void note_tie(Candidate& best, double score) {
  best.tied = is_near(score, best.score) || (best.tied && !(score > best.score));
}

struct Limits {
  Row min_leaf = 1;
  double min_weight = 0;  // in fixed units, as the bounds below
  bool bounded = false;   // the column at hand is constrained: both sides' S / W must lie within the bounds, in order
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
  bool from_highest = false;   // categories are tried from the one with the highest mean, not the lowest
  bool enumerate_all = false;  // all sets of categories are tried, even where there are many
  bool watch_ties = false;     // cuts that are equally good, up to rounding, are noted
  int direction = 0;           // +1: values must not fall from left to right; -1: must not rise

  bool admit_means(double left, double right) const {
    return left >= lower && left <= upper && right >= lower && right <= upper &&
           (direction > 0 ? left <= right : left >= right);
  }
};

// The rows of a node, all together.
struct Totals {
  Row n = 0;
  const std::int64_t* stat = nullptr;
};

// Is a cut with this left side allowed? For criteria of any kind; bounds exist for scalar ones only.
inline bool admits(const Limits& limits, const Totals& total, const std::int64_t* left, Row n_left) {
  if (n_left < limits.min_leaf || total.n - n_left < limits.min_leaf) return false;
  const double wl = static_cast<double>(left[0]), wr = static_cast<double>(total.stat[0] - left[0]);
  if (wl < limits.min_weight || wr < limits.min_weight) return false;
  return !limits.bounded ||
         limits.admit_means(static_cast<double>(left[1]) / wl, static_cast<double>(total.stat[1] - left[1]) / wr);
}

}  // namespace spinney
