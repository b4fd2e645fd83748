#include "learn/members.h"

#include <limits>

#include "base/pool.h"

namespace spinney {

std::vector<RoundLosses> advance_together(std::span<Boosting* const> members, int n_threads, Interrupt& interrupt) {
  constexpr std::size_t many_rows = 50'000;  // from here on the threads share the work of one tree
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const bool is_alone = members.size() == 1;  // of several, the learning curves know no rows out of bag
  std::vector<RoundLosses> losses(members.size());
  const auto advance = [&](std::size_t m, int) {
    Boosting& member = *members[m];
    member.advance(interrupt, is_alone);
    const bool is_judged = member.held_out().table != nullptr;
    losses[m].training = member.training_loss();
    losses[m].held_out = is_judged ? member.held_out_loss() : unknown;
    losses[m].out_of_bag = is_alone ? member.out_of_bag_loss() : Boosting::OutOfBagLoss{unknown, unknown};
  };
  const auto n_wanted = static_cast<std::size_t>(n_threads);
  if (members.size() > 1 && (members.size() >= n_wanted || members[0]->rows().table->n_rows < many_rows))
    parallel_for(members.size(), n_threads, advance);
  else
    for (std::size_t m = 0; m < members.size(); ++m) advance(m, 0);
  return losses;
}

}  // namespace spinney
