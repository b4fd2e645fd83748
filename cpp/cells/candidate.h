// The best cut found in one column of a node, and the limits that cuts must respect.
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
  bool constant = false;       // the column has one value in this node and below
  bool missing_left = false;   // the side of missing rows, if the node has any
  bool missing_alone = false;  // present rows left, missing rows right
  bool has_missing = false;
  bool tied = false;     // another cut is equally good up to rounding; recorded on request
  std::uint32_t at = 0;  // index of the cut in the sweep: the lower one wins a tie
  Row n_left = 0;
  double w_left = 0;                      // weight on the left, in fixed units
  std::uint32_t below = 0, above = 0;     // numbers: the rows next to the cut
  std::uint32_t code_below = 0;           // numbers: code of `below`
  double threshold = 0;                   // random cuts only
  std::vector<std::uint32_t> left_codes;  // categories that go left
  std::uint32_t n_ordered = 0;            // number of categories that were ordered by the target
  double charge = 0;                      // the expected gain of noise from that order, in the unit of gains

  bool found() const { return score > no_score; }
};

inline bool is_near(double a, double b) {
  return a > no_score && b > no_score && std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// Call it with every score before it is compared with the best.
inline void note_tie(Candidate& best, double score) {
  best.tied = is_near(score, best.score) || (best.tied && !(score > best.score));
}

struct Limits {
  Row min_leaf = 1;
  double min_weight = 0;  // in fixed units, like the bounds below
  bool bounded =
      false;  // the column has a monotonic constraint: S / W of both sides must be within the bounds and in order
  double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
  bool from_highest = false;   // categories are tried from the highest mean, not the lowest
  bool enumerate_all = false;  // all sets of categories are tried, even if there are many
  bool watch_ties = false;     // cuts that are equally good up to rounding are recorded
  int direction = 0;           // +1: values must not decrease from left to right; -1: must not increase

  bool admit_means(double left, double right) const {
    return left >= lower && left <= upper && right >= lower && right <= upper &&
           (direction > 0 ? left <= right : left >= right);
  }
};

// The totals over the rows of a node.
struct Totals {
  Row n = 0;
  const std::int64_t* stat = nullptr;
};

// Returns whether a cut with this left side is allowed, for criteria of any kind; only scalar ones have bounds.
inline bool admits(const Limits& limits, const Totals& total, const std::int64_t* left, Row n_left) {
  if (n_left < limits.min_leaf || total.n - n_left < limits.min_leaf) return false;
  const double wl = static_cast<double>(left[0]), wr = static_cast<double>(total.stat[0] - left[0]);
  if (wl < limits.min_weight || wr < limits.min_weight) return false;
  return !limits.bounded ||
         limits.admit_means(static_cast<double>(left[1]) / wl, static_cast<double>(total.stat[1] - left[1]) / wr);
}

}  // namespace spinney
