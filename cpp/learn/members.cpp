#include "learn/members.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/pool.h"

namespace spinney {

void EarlyStopping::add(double loss) {
  is_best_ = least_.empty() || loss < least_.back();
  least_.push_back(is_best_ ? loss : least_.back());
  const std::size_t n = least_.size();
  if (rule_.patience == 0 || n <= rule_.patience) return;
  const double of = rule_.of_best ? least_.back() : least_.front();
  const double min_relative_decrease = std::max(rule_.tol, rule_.min_relative_decrease * std::abs(of));
  is_stopped_ = least_.back() >= least_[n - 1 - rule_.patience] - min_relative_decrease;
}

namespace {

constexpr std::size_t many_rows = 50'000;  // from here on the threads work together on one tree

// Performs one more round; returns whether another may follow.
bool advance(const Runner& runner, bool is_alone, Interrupt& interrupt) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Boosting& booster = *runner.booster;
  booster.advance(interrupt, is_alone);
  const bool is_evaluated = booster.held_out().table != nullptr;
  RoundLosses losses{booster.training_loss(), is_evaluated ? booster.held_out_loss() : unknown, {unknown, unknown}};
  if (is_alone) losses.out_of_bag = booster.out_of_bag_loss();
  runner.log->losses.push_back(losses);
  if (!std::isfinite(losses.training) || (is_evaluated && !std::isfinite(losses.held_out))) return false;
  if (runner.stopping == nullptr || !is_evaluated) return true;
  runner.stopping->add(losses.held_out);
  if (runner.saves_best && runner.stopping->is_best()) runner.log->best_scores = booster.held_out().scores;
  return !runner.stopping->is_stopped();
}

// Assigns rounds of boosters to threads.
class Turns {
 public:
  Turns(std::span<const Runner> runners, Interrupt& interrupt) : runners_(runners), interrupt_(interrupt) {
    for (const Runner& runner : runners) to_do_.push_back(runner.n_rounds);
    is_taken_.resize(runners.size(), false);
  }

  void work(bool may_be_alone) {
    std::unique_lock lock(mutex_);
    for (std::size_t i = next(); !is_over_ && i < runners_.size(); i = next()) {
      is_taken_[i] = true;
      lock.unlock();
      bool continues = false;
      try {
        continues = advance(runners_[i], false, interrupt_);
      } catch (...) {
        lock.lock();
        is_over_ = true;
        throw;
      }
      lock.lock();
      is_taken_[i] = false;
      to_do_[i] = continues ? to_do_[i] - 1 : 0;
    }
    if (!may_be_alone) is_over_ = true;
  }

 private:
  // The booster with most rounds left that no thread has taken.
  std::size_t next() const {
    std::size_t found = runners_.size();
    for (std::size_t i = 0; i < runners_.size(); ++i)
      if (!is_taken_[i] && to_do_[i] > (found == runners_.size() ? 0 : to_do_[found])) found = i;
    return found;
  }

  std::span<const Runner> runners_;
  Interrupt& interrupt_;
  std::mutex mutex_;
  std::vector<std::uint32_t> to_do_;
  std::vector<bool> is_taken_;
  bool is_over_ = false;
};

}  // namespace

void advance_together(std::span<const Runner> runners, int n_threads, Interrupt& interrupt) {
  const auto n_wanted = static_cast<std::size_t>(n_threads);
  const bool are_small = runners[0].booster->rows().table->n_rows < many_rows;
  if (runners.size() > 1 && (runners.size() >= n_wanted || are_small)) {
    Turns turns(runners, interrupt);
    parallel_for(std::min(n_wanted, runners.size()), n_threads, [&](std::size_t, int) { turns.work(are_small); });
    return;
  }
  std::uint32_t most = 0;
  for (const Runner& runner : runners) most = std::max(most, runner.n_rounds);
  std::vector<bool> continues(runners.size(), true);
  for (std::uint32_t i = 0; i < most; ++i)
    for (std::size_t m = 0; m < runners.size(); ++m)
      continues[m] = continues[m] && i < runners[m].n_rounds && advance(runners[m], runners.size() == 1, interrupt);
}

}  // namespace spinney
