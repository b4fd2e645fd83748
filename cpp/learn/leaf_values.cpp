#include "learn/leaf_values.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "boost/split.h"

namespace spinney {

double damped(double newton) {
  constexpr double trusted = 1.5;
  const double size = std::abs(newton);
  if (size <= trusted) return newton;
  return std::copysign(trusted + log_ieee((1 + size) / (1 + trusted)), newton);
}

void order_values(Tree& tree, const std::vector<std::int8_t>& monotone) {
  if (monotone.empty()) return;
  std::vector<double> mean(tree.size());
  for (std::size_t at = tree.size(); at-- > 0;) {
    mean[at] = tree.value[at];
    if (tree.is_leaf(at)) continue;
    const std::size_t left = at + 1, right = tree.right[at];
    const auto n_left = static_cast<double>(tree.n_rows[left]), n_right = static_cast<double>(tree.n_rows[right]);
    mean[at] = (n_left * mean[left] + n_right * mean[right]) / (n_left + n_right);
  }
  std::vector<Bounds> bounds(tree.size());
  for (std::size_t at = 0; at < tree.size(); ++at) {
    const Bounds b = bounds[at];
    if (tree.is_leaf(at)) {
      tree.value[at] = std::clamp(tree.value[at], b.low, b.high);
      continue;
    }
    Bounds &left = bounds[at + 1], &right = bounds[tree.right[at]];
    left = right = b;
    const int sign = monotone[static_cast<std::size_t>(tree.feature[at])];
    if (sign == 0) continue;
    const double middle =
        (std::clamp(mean[at + 1], b.low, b.high) + std::clamp(mean[tree.right[at]], b.low, b.high)) / 2;
    (sign > 0 ? left : right).high = middle;
    (sign > 0 ? right : left).low = middle;
  }
}

bool is_damped(const BoostingParams& params, const PlacedComponent& component, std::uint32_t score) {
  // The location of a distribution is in the unit of the residuals: its steps do not diverge.
  const LossTraits& traits = traits_of(component.loss);
  return params.damp_steps && traits.needs_damping && !(traits.has_location && score == component.first);
}

void set_steps(BoostedTree& grown, const std::vector<WholeSums>& sums, const LeafScales& scales,
               const SplitSearch& search, const BoostParams& params, double growth, bool is_damped, bool is_free) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const GrownLeaf& leaf = grown.leaves[i];
    double newton = search.step(static_cast<double>(sums[i].gradient) / scales.gradient,
                                static_cast<double>(sums[i].hessian) / scales.hessian, {});
    if (params.longest_step > 0) newton = std::clamp(newton, -params.longest_step, params.longest_step);
    const double step = is_damped ? damped(newton) : std::clamp(newton, leaf.bounds.low, leaf.bounds.high);
    grown.tree.value[leaf.node] = params.learning_rate * growth * step;
  }
  if (is_damped || is_free) order_values(grown.tree, params.monotonic_cst);
}

void set_weights(BoostedTree& grown, const std::vector<std::int64_t>& weights, double scale) {
  Tree& tree = grown.tree;
  std::vector<std::int64_t> weight(tree.size(), 0);
  for (std::size_t i = 0; i < weights.size(); ++i) weight[grown.leaves[i].node] = weights[i];
  for (std::size_t node = tree.size(); node-- > 0;) {
    if (!tree.is_leaf(node)) weight[node] = weight[node + 1] + weight[tree.right[node]];
    const double known = static_cast<double>(weight[node]) / scale;
    if (!(known > 0)) continue;
    tree.impurity[node] *= tree.weight[node] / known;
    tree.weight[node] = known;
  }
}

void average_below(Tree& tree) {
  for (std::size_t at = tree.size(); at-- > 0;) {
    if (tree.is_leaf(at)) continue;
    const std::size_t left = at + 1, right = tree.right[at];
    const double fraction = tree.weight[left] / (tree.weight[left] + tree.weight[right]);
    tree.value[at] = fraction * tree.value[left] + (1 - fraction) * tree.value[right];
  }
}

}  // namespace spinney
