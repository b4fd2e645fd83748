#include "learn/cart.h"

#include "grow/grower.h"
#include "learn/dispatch.h"

namespace spinney {

static Bins make_bins(const Table& table, const Target& target, std::uint32_t max_bins, int n_threads,
                      Interrupt& interrupt) {
  Bins bins;
  bins.columns.resize(table.n_columns());
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  const double estimated_ns = 20.0 * static_cast<double>(table.n_columns()) * static_cast<double>(target.rows.size());
  parallel_for_if_worth(estimated_ns, table.n_columns(), n_threads, [&](std::size_t f, int worker) {
    interrupt.check();
    if (!table.columns[f].is_category())
      bins.columns[f] = bin_column(table.columns[f], target.rows, target.input.weight, max_bins,
                                   sorters[static_cast<std::size_t>(worker)]);
  });
  return bins;
}

// An index for the exact search of large nodes, where there are enough of them to pay for it.
static Bins make_coarse(const Table& table, const Target& target, const GrowParams& params, Interrupt& interrupt) {
  Bins bins;
  const bool pays = !params.weighing.on && target.rows.size() >= 8 * coarse_rows && target.is_scalar() &&
                    has_bounds(target.rule) && !params.random_cuts && params.max_features >= table.n_columns();
  if (!pays) return bins;
  bins.coarse.resize(table.n_columns() * table.n_rows);
  parallel_for(table.n_columns(), params.n_threads, [&](std::size_t f, int) {
    interrupt.check();
    if (!table.columns[f].is_category())
      fill_coarse_codes(table.columns[f], target.rows, bins.coarse.data() + f * table.n_rows);
  });
  return bins;
}

Cart grow_cart(const Table& table, const TargetInput& input, Rule rule, const GrowParams& params,
               std::uint32_t max_bins, Interrupt& interrupt) {
  Target target(input, rule);
  const Rules rules(table, target, params);
  Bins bins = max_bins > 0 ? make_bins(table, target, max_bins, params.n_threads, interrupt)
                           : make_coarse(table, target, params, interrupt);
  OpenNode root = rules.root();
  std::vector<Row> rows = std::move(target.rows);  // from here on, the row index of the growing tree
  if (!params.weighing.rows.empty()) rows = params.weighing.rows;
  root.end = rows.size();
  return with_criterion(target, [&]<class Criterion>(const Criterion& criterion) {
    std::vector<Worker<Criterion>> workers(static_cast<std::size_t>(params.n_threads), Worker<Criterion>(criterion));
    root.stat.assign(criterion.width(), 0);
    for (const Row r : rows)
      if (target.weight_of(r) > 0) criterion.add(r, root.stat.data());
    GrownTree grown = Grower<Criterion>(rules, bins, workers, rows, interrupt).grow(std::move(root));
    Cart cart{std::move(grown.tree), {}};
    if (!params.weighing.on) return cart;
    cart.resting_node.assign(table.n_rows, UINT32_MAX);
    for (std::uint32_t node = 0; node < grown.resting.size(); ++node)
      for (std::size_t i = grown.resting[node].first; i < grown.resting[node].second; ++i)
        cart.resting_node[rows[i]] = node;
    return cart;
  });
}

}  // namespace spinney
