#include "learn/grow_tree.h"

#include <memory>

#include "learn/dispatch.h"

namespace spinney {

Entries find_entries(const Table& table, Rule rule, const GrowParams& params, Interrupt& interrupt) {
  constexpr std::size_t least_rows = 4;  // per non-zero value
  const bool is_additive = rule != Rule::absolute_error && rule != Rule::user && !params.surrogate_params.on;
  if (!is_additive || params.max_leaf_nodes > 0 || table.spill) return {};
  return make_entries(table, least_rows, params.n_threads, interrupt);
}

GrownTree grow_tree(const Table& table, Target& target, const GrowParams& params, Bins& bins, GrowBuffers& buffers,
                    Interrupt& interrupt) {
  const Rules rules(table, target, params);
  buffers.rows = std::move(target.rows);
  if (!params.surrogate_params.rows.empty()) buffers.rows = params.surrogate_params.rows;
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(params.n_threads));
  with_criterion(target, [&](const auto& criterion) {
    for (auto& worker : workers) worker = make_worker(criterion);
  });
  return grow(rules, bins, workers, buffers, interrupt);
}

}  // namespace spinney
