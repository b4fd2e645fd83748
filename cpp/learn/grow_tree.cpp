// The one place where growers are made for every criterion: compiling them takes a minute.
#include "learn/grow_tree.h"

#include "learn/dispatch.h"

namespace spinney {

GrownTree grow_tree(const Table& table, Target& target, const GrowParams& params, Bins& bins, GrowBuffers& buffers,
                    Interrupt& interrupt) {
  const Rules rules(table, target, params);
  OpenNode root = rules.root();
  std::vector<Row>& rows = buffers.rows;
  rows = std::move(target.rows);
  if (!params.weighing.rows.empty()) rows = params.weighing.rows;
  root.end = rows.size();
  return with_criterion(target, [&]<class Criterion>(const Criterion& criterion) {
    std::vector<Worker<Criterion>> workers(static_cast<std::size_t>(params.n_threads), Worker<Criterion>(criterion));
    root.stat.assign(criterion.width(), 0);
    for (const Row r : rows)
      if (target.weight_of(r) > 0) criterion.add(r, root.stat.data());
    return Grower<Criterion>(rules, bins, workers, buffers, interrupt).grow(std::move(root));
  });
}

}  // namespace spinney
