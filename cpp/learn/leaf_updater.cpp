#include "learn/leaf_updater.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "data/read.h"
#include "learn/chunks.h"
#include "learn/coded_leaves.h"
#include "learn/leaf_values.h"
#include "learn/linear_leaves.h"
#include "learn/scales.h"
#include "loss/row_loss.h"
#include "tree/shrink.h"

namespace spinney {

namespace {

// Adds the predictions of a linear leaf to the scores of its rows, with the operations of `leaf_value` in the same
// order.
void add_linear_leaf(const Tree& tree, std::size_t node, const Table& table, std::span<const Row> rows,
                     double* scores) {
  constexpr std::size_t block = 256;
  const LinearLeaves& linear_leaves = tree.linear_leaves;
  std::vector<double> values((linear_leaves.begin[node + 1] - linear_leaves.begin[node]) * block);
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    const std::size_t n = std::min(block, rows.size() - begin);
    for (std::uint32_t t = linear_leaves.begin[node]; t < linear_leaves.begin[node + 1]; ++t)
      read_values(table.columns[linear_leaves.feature[t]], rows.data() + begin, n,
                  values.data() + (t - linear_leaves.begin[node]) * block);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t next = 0;  // terms are read in order
      scores[rows[begin + i]] +=
          linear_leaves.at(node, tree.value[node], [&](std::uint32_t) { return values[next++ * block + i]; });
    }
  }
}

// The rows leaf by leaf, as a grown tree has them.
std::vector<GrownLeaf> leaves_of(const Tree& tree, std::span<const std::uint32_t> leaf, std::span<const Row> all,
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

}  // namespace

// Sums are integers in a unit below the precision of the gradients, so they do not depend on the order.
std::vector<WholeSums> LeafUpdater::gradient_sums(const std::vector<GrownLeaf>& leaves, std::uint32_t k,
                                                  std::span<const Row> rows) const {
  const LeafScales scales(gradients_.totals()[k]);
  std::vector<std::atomic<std::int64_t>> g(leaves.size()), h(leaves.size());
  for_each_chunk_of_leaf(leaves, rows, state_.n_rows(), state_.n_threads(), 3.0,
                         [&](std::size_t i, std::size_t begin, std::size_t end) {
                           state_.touch((end - begin) * sizeof(Pair));
                           const WholeSums sums = boost_kernels().sum_pairs(
                               gradients_.of(k), rows.data() + begin, end - begin, scales.gradient, scales.hessian);
                           g[i].fetch_add(sums.gradient, std::memory_order_relaxed);
                           h[i].fetch_add(sums.hessian, std::memory_order_relaxed);
                         });
  std::vector<WholeSums> sums;
  sums.reserve(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) sums.push_back({g[i].load(), h[i].load()});
  return sums;
}

void LeafUpdater::set_values(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const {
  const std::size_t n_leaves = grown.leaves.size();
  const int n_threads = state_.n_threads();
  if (traits_of(state_.component_of(k).loss).refits_leaves()) {
    const double estimated_ns = 30.0 * static_cast<double>(rows.size());
    parallel_for_if_worth(estimated_ns, n_leaves, n_threads, [&](std::size_t i, int) {
      grown.tree.value[grown.leaves[i].node] = refitted_value(grown.leaves[i], k, rows);
    });
    return order_values(grown.tree, state_.tree_params(k).monotonic_cst);
  }
  const std::vector<WholeSums> sums = gradient_sums(grown.leaves, k, rows);
  const SplitSearch search(state_.coded->coding, state_.tree_params(k), {});
  set_steps(grown, sums, LeafScales(gradients_.totals()[k]), search, state_.tree_params(k),
            state_.params.step_growth(state_.round), is_damped(state_.params, state_.component_of(k), k),
            state_.params.vector_leaves);
}

void LeafUpdater::add_linear(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const {
  const BoostParams& tree = state_.tree_params(k);
  const SplitSearch search(state_.coded->coding, tree, {});
  const bool damps = is_damped(state_.params, state_.component_of(k), k);
  StepRules rules;
  rules.newton = [&](double g, double h) { return search.step(g, h, {}); };
  rules.bounded = [&](double size) {
    if (tree.max_step > 0) size = std::min(size, tree.max_step);
    if (tree.longest_step > 0) size = std::min(size, tree.longest_step);
    return damps ? damped(size) : size;
  };
  rules.learning_rate = tree.learning_rate * state_.params.step_growth(state_.round);
  fit_linear_leaves(grown, *state_.rows.table, rows, gradients_.of(k),
                    {state_.params.linear_columns, state_.params.linear_l2, state_.params.linear_in_all}, rules,
                    tree.n_threads);
}

double LeafUpdater::refitted_value(const GrownLeaf& leaf, std::uint32_t k, std::span<const Row> rows) const {
  const PlacedComponent& component = state_.component_of(k);
  const LossTraits& traits = traits_of(component.loss);
  const double *target = state_.target_of(component, state_.rows),
               *scores = (step_scores_.empty() ? state_.rows.scores : step_scores_)[k].data();
  std::vector<std::pair<double, double>> residuals;
  for (const Row r : rows.subspan(leaf.begin, leaf.end - leaf.begin))
    residuals.emplace_back(target[r] - scores[r], (state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]) *
                                                      (traits.is_relative ? relative_weight(target[r]) : 1.0));
  double value = weighted_quantile(residuals, traits.level(component.parameter));
  if (traits.refit == LeafRefit::clipped_mean) {
    double sum = 0, total = 0;
    for (const auto& [residual, weight] : residuals) {
      sum += weight * std::clamp(residual - value, -component.delta, component.delta);
      total += weight;
    }
    value += sum / total;
  }
  if (state_.params.tree.max_step > 0)
    value = std::clamp(value, -state_.params.tree.max_step, state_.params.tree.max_step);
  return state_.params.tree.learning_rate * value;  // the learning rate grows for squared errors only
}

// Values of splits are means of those below; leaves may be scaled, or shrunk towards these means.
void LeafUpdater::average(Tree& tree) const {
  if (scale_ < 1)
    for (double& value : tree.value) value *= scale_;
  average_below(tree);
  if (state_.params.hierarchical_shrinkage > 0) shrink(tree, state_.params.hierarchical_shrinkage);
}

// Weights are summed as integers in units of a sufficiently small power of two: integer weights are exact, and the
// order of the rows does not matter.
std::vector<std::int64_t> LeafUpdater::weight_sums(const std::vector<GrownLeaf>& leaves,
                                                   std::span<const Row> rows) const {
  std::vector<std::int64_t> weights;
  weights.reserve(leaves.size());
  if (state_.even_weight > 0) {
    const auto unit = static_cast<std::int64_t>(state_.even_weight * state_.place.weight_scale);
    for (const GrownLeaf& leaf : leaves) weights.push_back(static_cast<std::int64_t>(leaf.end - leaf.begin) * unit);
    return weights;
  }
  std::vector<std::atomic<std::int64_t>> sums(leaves.size());
  for_each_chunk_of_leaf(leaves, rows, state_.n_rows(), state_.n_threads(), 2.0,
                         [&](std::size_t i, std::size_t begin, std::size_t end) {
                           state_.rows.touch(end - begin);
                           std::int64_t sum = 0;
                           for (std::size_t j = begin; j < end; ++j)
                             sum += static_cast<std::int64_t>(sample_.weight_of(rows[j]) * state_.place.weight_scale);
                           sums[i].fetch_add(sum, std::memory_order_relaxed);
                         });
  for (const auto& sum : sums) weights.push_back(sum.load(std::memory_order_relaxed));
  return weights;
}

void LeafUpdater::update_weights(BoostedTree& grown, std::span<const Row> rows) const {
  set_weights(grown, weight_sums(grown.leaves, rows), state_.place.weight_scale);
}

void LeafUpdater::add_to_scores(const BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const {
  double* scores = state_.rows.scores[k].data();
  for_each_chunk_of_leaf(grown.leaves, rows, state_.n_rows(), state_.n_threads(), 2.0,
                         [&](std::size_t i, std::size_t begin, std::size_t end) {
                           state_.touch((end - begin) * sizeof(double));
                           const std::size_t node = grown.leaves[i].node;
                           const double value = grown.tree.value[node];
                           if (grown.tree.linear_leaves.has(node))
                             return add_linear_leaf(grown.tree, node, *state_.rows.table,
                                                    rows.subspan(begin, end - begin), scores);
                           for (std::size_t j = begin; j < end; ++j) scores[rows[j]] += value;
                         });
}

// Rows that the trees were not grown on; the trees belong to scores from the first on and differ only in their values.
void LeafUpdater::walk_others(std::span<const BoostedTree> grown, std::uint32_t first) const {
  // Rows of weight 0 come last; their scores are not needed in a validation set.
  const std::size_t n_apart = state_.held_out.table == state_.rows.table && !sample_.out_of_bag().empty()
                                  ? state_.all.size() - sample_.in_bag().size()
                                  : sample_.out_of_bag().size();
  if (n_apart > 0)
    walk(grown, first, state_.coded->codes, std::span<const Row>(sample_.out_of_bag()).first(n_apart), state_.rows);
  if (state_.held_out.table == nullptr) return;
  walk(grown, first, state_.held_out_codes(), state_.validation_rows, state_.held_out);
}

void LeafUpdater::walk(std::span<const BoostedTree> grown, std::uint32_t first, const Codes& codes,
                       std::span<const Row> rows, BoostingRows& to) const {
  std::vector<RowVector<double>>& scores = to.scores;
  const auto touch_rows = [&](std::span<const Row> some) { state_.rows.table->touch(some, grown.size()); };
  for_each_leaf(
      grown[0].tree, grown[0].cut, state_.coded->coding, codes, rows, state_.n_threads(),
      [&](Row r, std::uint32_t leaf) {
        for (std::size_t k = 0; k < grown.size(); ++k)
          scores[first + k][r] +=
              leaf_value(grown[k].tree, leaf, [&](std::uint32_t f) { return value_at(to.table->columns[f], r); });
      },
      touch_rows);
}

// As LightGBM's `refit`: a leaf retains the fraction `decay` of its value and takes the rest from its value on these
// rows. A leaf without any of these rows is unchanged.
Tree LeafUpdater::refit(std::uint32_t k, const Tree& old, std::span<const std::uint32_t> leaf, double decay) const {
  BoostedTree grown{old, {}, {}};
  std::vector<Row> rows;
  grown.leaves = leaves_of(old, leaf, state_.all, rows);
  set_values(grown, k, rows);
  average(grown.tree);
  Tree tree = old;
  for (const GrownLeaf& l : grown.leaves)
    tree.value[l.node] = decay * old.value[l.node] + (1 - decay) * grown.tree.value[l.node];
  std::swap(grown.tree, tree);
  order_values(grown.tree, state_.tree_params(k).monotonic_cst);
  average_below(grown.tree);
  add_to_scores(grown, k, rows);
  return grown.tree;
}

}  // namespace spinney
