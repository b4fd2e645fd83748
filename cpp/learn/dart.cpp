#include "learn/dart.h"

#include <algorithm>

#include "base/random.h"
#include "learn/coded_leaves.h"

namespace spinney {

std::vector<double> DroppedRounds::round_weights(std::uint32_t n_rounds) const {
  std::vector<double> round_weight(n_rounds, 1.0);
  for (std::uint32_t round = 0; round < n_rounds && round < dropped_.size(); ++round) {
    const auto k = static_cast<double>(dropped_[round].size());
    for (const std::uint32_t t : dropped_[round]) round_weight[t] *= k / (k + 1);
  }
  return round_weight;
}

std::vector<std::uint32_t> DroppedRounds::draw() const {
  if (!(state_.params.drop_rate > 0) || state_.round == 0) return {};
  const std::uint64_t key = derive(derive(state_.params.tree.seed, 13), state_.round);
  const auto unit = [&](std::uint64_t branch) { return static_cast<double>(derive(key, branch) >> 11) * 0x1p-53; };
  if (unit(0) < state_.params.skip_drop) return {};
  std::vector<double> weight(state_.round, 1.0);
  if (state_.params.drops_by_weight) {
    weight = round_weights(state_.round);
    for (std::uint32_t t = 0; t < state_.round; ++t) weight[t] /= static_cast<double>(dropped_[t].size() + 1);
  }
  double mean = 0;
  for (const double w : weight) mean += w / static_cast<double>(state_.round);
  std::vector<std::pair<double, std::uint32_t>> drawn;  // time until each round is drawn
  for (std::uint32_t t = 0; t < state_.round; ++t) drawn.emplace_back(unit(t + 1) * mean / weight[t], t);
  std::sort(drawn.begin(), drawn.end());
  const auto end =
      std::find_if(drawn.begin(), drawn.end(), [&](const auto& d) { return d.first >= state_.params.drop_rate; });
  const auto n = std::min<std::size_t>(std::max<std::ptrdiff_t>(end - drawn.begin(), 1), state_.params.max_drop);
  std::vector<std::uint32_t> rounds;
  for (std::size_t i = 0; i < n; ++i) rounds.push_back(drawn[i].second);
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

// Adds the weighted predictions of rounds, times a factor, to the scores of rows.
void DroppedRounds::add(std::span<const std::uint32_t> rounds, const std::vector<double>& round_weight, double factor,
                        const Codes& codes, std::span<const Row> rows, std::vector<RowVector<double>>& scores) const {
  for (const std::uint32_t t : rounds)
    for (std::uint32_t k = 0; k < state_.n_scores(); ++k) {
      const std::size_t at = static_cast<std::size_t>(t) * state_.n_scores() + k;
      const Tree& tree = trees_[at];
      const double by = factor * round_weight[t];
      double* mine = scores[k].data();
      for_each_leaf(
          tree, cuts_[at], state_.coded->coding, codes, rows, state_.n_threads(),
          [&](Row r, std::uint32_t leaf) { mine[r] += by * tree.value[leaf]; },
          [&](std::span<const Row> some) { state_.rows.table->touch(some, 1); });
    }
}

void DroppedRounds::take_off(std::span<const std::uint32_t> rounds) const {
  add(rounds, round_weights(state_.round), -1.0, state_.coded->codes, state_.all, state_.rows.scores);
}

void DroppedRounds::put_back(std::vector<std::uint32_t> rounds) {
  const std::vector<double> before = round_weights(state_.round);
  dropped_.push_back(std::move(rounds));
  const std::vector<std::uint32_t>& dropped = dropped_.back();
  if (dropped.empty()) return;
  const std::vector<double> after = round_weights(state_.round);
  add(dropped, after, 1.0, state_.coded->codes, state_.all, state_.rows.scores);
  if (state_.held_out.table == nullptr) return;
  const Codes& codes = state_.held_out_codes();
  add(dropped, before, -1.0, codes, state_.validation_rows, state_.held_out.scores);
  add(dropped, after, 1.0, codes, state_.validation_rows, state_.held_out.scores);
}

std::vector<RowVector<double>> DroppedRounds::scores_to_fit() const {
  std::vector<RowVector<double>> scores = state_.rows.scores;
  const std::vector<std::uint32_t> dropped = draw();
  if (!dropped.empty()) add(dropped, round_weights(state_.round), -1.0, state_.coded->codes, state_.all, scores);
  return scores;
}

}  // namespace spinney
