#include "boost/statistics.h"

namespace spinney {

void restore_categories(Tree& tree, std::size_t n_columns, std::span<const CategoryStatistic> statistics) {
  std::vector<std::uint32_t> left, right;
  for (std::size_t node = 0; node < tree.size(); ++node) {
    if (tree.is_leaf(node) || static_cast<std::size_t>(tree.feature[node]) < n_columns) continue;
    const CategoryStatistic& statistic = statistics[static_cast<std::size_t>(tree.feature[node]) - n_columns];
    const double threshold = tree.threshold[node];
    left.clear();
    right.clear();
    for (std::uint32_t code = 0; code < statistic.of_category.size(); ++code)
      (statistic.of_category[code] <= threshold ? left : right).push_back(code);
    const bool unseen_left = statistic.of_unseen <= threshold;
    tree.feature[node] = static_cast<std::int32_t>(statistic.source);
    tree.threshold[node] = 0;
    tree.flags[node] = static_cast<std::uint8_t>(Tree::category | (unseen_left ? Tree::default_left : 0) |
                                                 (statistic.of_missing <= threshold ? Tree::missing_left : 0));
    tree.set[node] = add_set(tree.sets, left, right, unseen_left);
  }
}

}  // namespace spinney
