#include "learn/leaf_values.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "boost/split.h"

namespace spinney {

double weighted_quantile(std::vector<std::pair<double, double>>& values, double share) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  const double wanted = share * total;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    below += values[i].second;
    if (below > wanted * (1 + 1e-12)) return values[i].first;
    if (below >= wanted * (1 - 1e-12) && i + 1 < values.size()) return (values[i].first + values[i + 1].first) / 2;
  }
  return values.empty() ? 0.0 : values.back().first;
}

double tempered(double newton) {
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

void average_below(Tree& tree) {
  for (std::size_t at = tree.size(); at-- > 0;) {
    if (tree.is_leaf(at)) continue;
    const std::size_t left = at + 1, right = tree.right[at];
    const double share = tree.weight[left] / (tree.weight[left] + tree.weight[right]);
    tree.value[at] = share * tree.value[left] + (1 - share) * tree.value[right];
  }
}

}  // namespace spinney
