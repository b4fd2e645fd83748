#include "learn/boosting_state.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace spinney {

std::uint64_t key_of_boosted_tree(std::uint64_t seed, std::uint32_t round, std::uint32_t score) {
  return derive(derive(derive(seed, 12), round), score);
}

void BoostingRows::touch(std::size_t n) const {
  const std::size_t n_numbers = (weight == nullptr ? 1 : 2) + 2 * scores.size();  // a pair is as large as a score
  if (table->spill) table->spill->touch(n * sizeof(double) * n_numbers);
}

BoostingState::BoostingState(BoostingRows learning, BoostingRows validation, BoostingParams given, TablePlace where)
    : rows(std::move(learning)),
      held_out(std::move(validation)),
      params(std::move(given)),
      place(where),
      components(placed(params.losses)),
      all(rows.table->spill),
      validation_rows(rows.table->spill) {
  params.tree.count_by_weight = place.count_by_weight;
  for (std::size_t p = 0; p < components.size(); ++p)
    component_of_score.insert(component_of_score.end(), components[p].n_scores, p);
  of_score = params.constrain();
  take_rows_of_weight(n_rows(), rows.weight, all);
  if (held_out.table != nullptr) take_rows_of_weight(held_out.table->n_rows, held_out.weight, validation_rows);
}

// If a few rows have nearly all the weight, fractions of the hessian, from which the rows of a side are estimated,
// would prevent splits of the others: one weight of 1e6 among 2,000 ones left no split at all. In this case a row
// counts as the median weight.
void BoostingState::set_weight_scale() {
  if (params.draws_by_gradient) place.weight_scale = std::ldexp(1.0, 50 - std::ilogb(static_cast<double>(n_rows())));
  if (rows.weight == nullptr) return;
  const double first = rows.weight[all[0]];
  const auto is_first = [&](Row r) { return rows.weight[r] == first; };
  if (!params.draws_by_gradient && std::all_of(all.begin(), all.end(), is_first)) even_weight = first;
  const WeightScale found = weight_scale(all, rows.weight, n_rows(), params.draws_by_gradient ? 50 : 61);
  place.weight_scale = found.scale;
  if (!(found.count_by_weight > 0)) return;
  place.count_by_weight = params.tree.count_by_weight = found.count_by_weight;
  for (BoostParams& of : of_score) of.count_by_weight = found.count_by_weight;
}

}  // namespace spinney
