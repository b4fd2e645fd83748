// Boosters that learn from different rows of one table, advanced together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/boosting.h"

namespace spinney {

// Early stopping: the lowest loss has hardly decreased over the last `patience` losses.
struct EarlyStoppingRule {
  std::uint32_t patience = 0;        // 0: never stop
  double tol = 0;                    // minimum decrease of the loss
  double min_relative_decrease = 0;  // the same relative to the first loss, or
  bool of_best = false;              // to the lowest loss so far
};

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingRule rule) : rule_(rule) {}
  void add(double loss);
  bool is_stopped() const { return is_stopped_; }
  bool is_best() const { return is_best_; }  // whether the last loss is the lowest so far

 private:
  EarlyStoppingRule rule_;
  std::vector<double> least_;  // lowest loss up to each round
  bool is_stopped_ = false, is_best_ = false;
};

// After a round; NaN if there is no validation set, no out-of-bag row, or there are several boosters.
struct RoundLosses {
  double training, held_out;
  Boosting::OutOfBagLoss out_of_bag;
};

// The history of a booster's rounds.
struct RoundLog {
  std::vector<RoundLosses> losses;
  std::vector<RowVector<double>> best_scores;  // of the validation set, after the round with its lowest loss
};

struct Runner {
  Boosting* booster;
  RoundLog* log;
  EarlyStopping* stopping;     // null: the caller decides when to stop
  std::uint32_t n_rounds = 1;  // maximum number of rounds
  bool saves_best = false;     // save the best scores of the validation set
};

// Performs more rounds of each booster: n_rounds, or until its validation loss stops decreasing or a loss is not
// finite. If a tree has too little work for all threads, each thread takes a round of the booster with most rounds
// left. Otherwise a call may return early when threads become idle, because the remaining boosters can use them for
// their trees. After an interruption some boosters may be ahead of others.
void advance_together(std::span<const Runner> runners, int n_threads, Interrupt& interrupt);

}  // namespace spinney
