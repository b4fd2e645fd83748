// Rounds that leave some of the earlier ones out (Rashmi and Gilad-Bachrach 2015, "DART").
//
// The trees of a round are fitted as if the rounds dropped were not there, and would do their work a second time if all of it
// were added: the new round counts for a (k + 1)-th, the k dropped ones for k of k + 1 parts of what they did.
#include <algorithm>

#include "base/random.h"
#include "learn/boosting.h"
#include "learn/coded_leaves.h"

namespace spinney {

std::vector<double> Boosting::worths(std::uint32_t n_rounds) const {
  std::vector<double> worth(n_rounds, 1.0);
  for (std::uint32_t round = 0; round < n_rounds && round < dropped_.size(); ++round) {
    const auto k = static_cast<double>(dropped_[round].size());
    for (const std::uint32_t t : dropped_[round]) worth[t] *= k / (k + 1);
  }
  return worth;
}

// Which of the rounds so far the next one does without, ascending. At least one, as published, unless it is one of those
// that drop nothing.
std::vector<std::uint32_t> Boosting::draw_drops() const {
  if (!(params_.drop_rate > 0) || round_ == 0) return {};
  const std::uint64_t key = derive(derive(params_.tree.seed, 13), round_);
  const auto unit = [&](std::uint64_t branch) { return static_cast<double>(derive(key, branch) >> 11) * 0x1p-53; };
  if (unit(0) < params_.skip_drop) return {};
  std::vector<double> weight(round_, 1.0);
  if (params_.drops_by_weight) {
    weight = worths(round_);
    for (std::uint32_t t = 0; t < round_; ++t) weight[t] /= static_cast<double>(dropped_[t].size() + 1);
  }
  double mean = 0;
  for (const double w : weight) mean += w / static_cast<double>(round_);
  std::vector<std::pair<double, std::uint32_t>> drawn;  // how soon each goes
  for (std::uint32_t t = 0; t < round_; ++t) drawn.emplace_back(unit(t + 1) * mean / weight[t], t);
  std::sort(drawn.begin(), drawn.end());
  const auto end =
      std::find_if(drawn.begin(), drawn.end(), [&](const auto& d) { return d.first >= params_.drop_rate; });
  const auto n = std::min<std::size_t>(std::max<std::ptrdiff_t>(end - drawn.begin(), 1), params_.max_drop);
  std::vector<std::uint32_t> rounds;
  for (std::size_t i = 0; i < n; ++i) rounds.push_back(drawn[i].second);
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

// Adds what rounds are worth, times a factor, to the scores of rows.
void Boosting::add_rounds(std::span<const std::uint32_t> rounds, const std::vector<double>& worth, double factor,
                          const Codes& codes, std::span<const Row> rows, std::vector<RowVector<double>>& scores) const {
  for (const std::uint32_t t : rounds)
    for (std::uint32_t k = 0; k < n_scores(); ++k) {
      const std::size_t at = static_cast<std::size_t>(t) * n_scores() + k;
      const Tree& tree = trees_[at];
      const double by = factor * worth[t];
      double* mine = scores[k].data();
      for_each_leaf(
          tree, cuts_[at], coded_->coding, codes, rows, params_.tree.n_threads,
          [&](Row r, std::uint32_t leaf) { mine[r] += by * tree.value[leaf]; },
          [&](std::span<const Row> some) { rows_.table->touch(some, 1); });
    }
}

void Boosting::take_off(std::span<const std::uint32_t> rounds) {
  step_share_ = 1.0 / static_cast<double>(rounds.size() + 1);
  if (rounds.empty()) return;
  add_rounds(rounds, worths(round_), -1.0, coded_->codes, all_, rows_.scores);
  has_pairs_ = has_pairs_ && is_outside();  // these were found by `scores_to_fit`
}

void Boosting::put_back(std::vector<std::uint32_t> rounds) {
  const std::vector<double> before = worths(round_);
  dropped_.push_back(std::move(rounds));
  const std::vector<std::uint32_t>& dropped = dropped_.back();
  if (dropped.empty()) return;
  const std::vector<double> after = worths(round_);
  add_rounds(dropped, after, 1.0, coded_->codes, all_, rows_.scores);
  if (held_out_.table == nullptr) return;
  const Codes& codes = held_out_.table == rows_.table ? coded_->codes : coded_->later;
  add_rounds(dropped, before, -1.0, codes, judged_, held_out_.scores);
  add_rounds(dropped, after, 1.0, codes, judged_, held_out_.scores);
}

std::vector<RowVector<double>> Boosting::scores_to_fit() const {
  std::vector<RowVector<double>> scores = rows_.scores;
  const std::vector<std::uint32_t> dropped = draw_drops();
  if (!dropped.empty()) add_rounds(dropped, worths(round_), -1.0, coded_->codes, all_, scores);
  return scores;
}

}  // namespace spinney
