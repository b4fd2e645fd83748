// New values for the leaves of trees that are there already.
#include <numeric>

#include "learn/boosting.h"
#include "learn/leaf_values.h"

namespace spinney {

// The rows leaf by leaf, as a grown tree has them.
static std::vector<GrownLeaf> leaves_of(const Tree& tree, std::span<const std::uint32_t> leaf, std::span<const Row> all,
                                        std::vector<Row>& rows) {
  std::vector<std::size_t> first(tree.size() + 1, 0);
  for (const Row r : all) ++first[leaf[r] + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<GrownLeaf> leaves;
  for (std::uint32_t at = 0; at < tree.size(); ++at)
    if (first[at] < first[at + 1]) leaves.push_back({at, first[at], first[at + 1], {}});
  rows.resize(all.size());
  for (const Row r : all) rows[first[leaf[r]]++] = r;
  return leaves;
}

// As LightGBM's `refit`: a leaf keeps `decay` of its value, and takes the rest of what it would have been set to by these rows.
// One that has none of them stays as it is.
Tree Boosting::refit(std::uint32_t k, const Tree& old, std::span<const std::uint32_t> leaf, double decay) {
  if (k == 0 && (begins_step() || totals_.empty())) {
    if (!has_pairs_) fill_pairs(nullptr);
    if (params_.n_parallel_trees > 1) step_scores_ = rows_.scores;
    has_pairs_ = false;
  }
  BoostedTree grown{old, {}, {}};
  std::vector<Row> rows;
  grown.leaves = leaves_of(old, leaf, all_, rows);
  set_values(grown, k, rows);
  average(grown.tree);
  Tree tree = old;
  for (const GrownLeaf& l : grown.leaves)
    tree.value[l.node] = decay * old.value[l.node] + (1 - decay) * grown.tree.value[l.node];
  std::swap(grown.tree, tree);
  order_values(grown.tree, tree_params(k).monotonic_cst);
  average_below(grown.tree);
  add_to_scores(grown, k, rows);
  if (k + 1 == n_scores()) ++round_;
  return grown.tree;
}

}  // namespace spinney
