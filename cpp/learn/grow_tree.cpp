#include "learn/grow_tree.h"

#include <memory>

#include "learn/dispatch.h"

namespace spinney {

GrownTree grow_tree(const Table& table, Target& target, const GrowParams& params, Bins& bins, GrowBuffers& buffers,
                    Interrupt& interrupt) {
  const Rules rules(table, target, params);
  buffers.rows = std::move(target.rows);
  if (!params.weighing.rows.empty()) buffers.rows = params.weighing.rows;
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(params.n_threads));
  with_criterion(target, [&](const auto& criterion) {
    for (auto& worker : workers) worker = make_worker(criterion);
  });
  return grow(rules, bins, workers, buffers, interrupt);
}

}  // namespace spinney
