// Boosters that learn from different rows of one table, side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/boosting.h"

namespace spinney {

// When losses no longer fall: the least of all is hardly below what it was `patience` losses ago.
struct SettlingRule {
  std::uint32_t patience = 0;  // 0: they never settle
  double tol = 0;              // what they must save, to go on
  double worth = 0;            // the same as a share of the first loss, or
  bool of_present = false;     // of the least so far
};

class Settling {
 public:
  explicit Settling(SettlingRule rule) : rule_(rule) {}
  void add(double loss);
  bool is_settled() const { return is_settled_; }
  bool is_best() const { return is_best_; }  // the last loss is below all before it

 private:
  SettlingRule rule_;
  std::vector<double> least_;  // up to each loss
  bool is_settled_ = false, is_best_ = false;
};

// After a round; NaN where no rows are held out, none are out of bag, or there are several boosters.
struct RoundLosses {
  double training, held_out;
  Boosting::OutOfBagLoss out_of_bag;
};

// What the rounds of a booster have done.
struct RoundLog {
  std::vector<RoundLosses> losses;
  std::vector<RowVector<double>> best_scores;  // of the rows held out, after the round of their least loss
};

struct Runner {
  Boosting* booster;
  RoundLog* log;
  Settling* settling;          // null: the caller judges
  std::uint32_t n_rounds = 1;  // to be done
  bool keeps_best = false;     // scores of the rows held out
};

// More rounds of each: as many as are asked for, or until its held-out loss has settled, or a loss is no number. Where a
// tree has too little work for the threads, they take a round of a booster each, of the one that has most to do. Else a
// call may end before all is done, when threads are free: they would be better used by the trees of those that are left.
// After an interruption some have done more than others.
void advance_together(std::span<const Runner> runners, int n_threads, Interrupt& interrupt);

}  // namespace spinney
