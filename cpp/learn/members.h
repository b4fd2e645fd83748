// Boosters that learn from different rows of one table, side by side.
#pragma once

#include <span>
#include <vector>

#include "learn/boosting.h"

namespace spinney {

// After a round; NaN where no rows are held out, none are out of bag, or there are several boosters.
struct RoundLosses {
  double training, held_out;
  Boosting::OutOfBagLoss out_of_bag;
};

// One more round of each. Where a tree has too little work for the threads, they take a booster each. After an
// interruption some may be a round ahead of the others.
std::vector<RoundLosses> advance_together(std::span<Boosting* const> members, int n_threads, Interrupt& interrupt);

}  // namespace spinney
