#include "tree/from_nodes.h"

#include <algorithm>
#include <stdexcept>

namespace spinney {

static void check_sizes(const LooseNodes& nodes) {
  const std::size_t n = nodes.left.size();
  const bool agree = n > 0 && n < Tree::list_mark && nodes.value_width > 0 && nodes.right.size() == n &&
                     nodes.feature.size() == n && nodes.threshold.size() == n && nodes.flags.size() == n &&
                     nodes.begin.size() == n + 1 && nodes.begin[n] <= nodes.codes.size() && nodes.weight.size() == n &&
                     nodes.n_rows.size() == n && nodes.value.size() / nodes.value_width == n &&
                     nodes.value.size() % nodes.value_width == 0 && (nodes.gain.empty() || nodes.gain.size() == n) &&
                     (nodes.impurity.empty() || nodes.impurity.size() == n);
  if (!agree || !std::is_sorted(nodes.begin.begin(), nodes.begin.end()))
    throw std::invalid_argument("its arrays differ in length");
}

static void add_codes(const LooseNodes& nodes, std::size_t from, Tree& tree, std::size_t at) {
  const std::uint32_t first = nodes.begin[from], n = nodes.begin[from + 1] - first;
  const std::span<const std::uint32_t> listed = nodes.codes.subspan(first, n);
  if (std::adjacent_find(listed.begin(), listed.end(), std::greater_equal<>()) != listed.end())
    throw std::invalid_argument("its categories are not in order");
  const bool others_left = tree.flags[at] & Tree::default_left;
  tree.set[at] = others_left ? add_set(tree.sets, {}, listed, true) : add_set(tree.sets, listed, {}, false);
}

// Children come after their parent, so the last nodes come first.
static void fill_splits(const LooseNodes& nodes, const std::vector<double>& gain, Tree& tree) {
  const std::size_t width = tree.value_width;
  std::vector<double> total_gain(tree.size(), 0.0);
  for (std::size_t i = tree.size(); i-- > 0;) {
    if (tree.is_leaf(i)) continue;
    const std::size_t left = i + 1, right = tree.right[i];
    if (nodes.averages_inner) {
      const double both = tree.weight[left] + tree.weight[right];
      const double fraction = both > 0 ? tree.weight[left] / both : 0.5;
      for (std::size_t k = 0; k < width; ++k)
        tree.value[i * width + k] =
            fraction * tree.value[left * width + k] + (1 - fraction) * tree.value[right * width + k];
    }
    if (gain.empty()) continue;
    total_gain[i] = gain[i] + total_gain[left] + total_gain[right];
    tree.impurity[i] = tree.weight[i] > 0 ? total_gain[i] / tree.weight[i] : 0.0;
  }
}

Tree tree_from_nodes(const LooseNodes& nodes) {
  check_sizes(nodes);
  struct Waiting {
    std::size_t from, parent;  // the new index of the parent of a right child
  };
  constexpr std::size_t none = SIZE_MAX;
  const std::size_t n = nodes.left.size(), width = nodes.value_width;
  Tree tree;
  tree.value_width = nodes.value_width;
  std::vector<double> gain;
  std::vector<bool> seen(n, false);
  std::vector<Waiting> waiting{{0, none}};
  while (!waiting.empty()) {
    const auto [from, parent] = waiting.back();
    waiting.pop_back();
    if (from >= n || seen[from]) throw std::invalid_argument("its nodes do not form a tree");
    seen[from] = true;
    const std::size_t at = tree.add_leaf();
    if (parent != none) tree.right[parent] = static_cast<std::uint32_t>(at);
    tree.weight[at] = nodes.weight[from];
    tree.n_rows[at] = nodes.n_rows[from];
    std::copy_n(nodes.value.data() + from * width, width, tree.value_of(at).data());
    tree.impurity[at] = nodes.impurity.empty() ? 0.0 : nodes.impurity[from];
    const bool is_leaf = nodes.left[from] < 0;
    if (!nodes.gain.empty()) gain.push_back(is_leaf ? 0.0 : nodes.gain[from]);
    if (is_leaf) continue;
    if (nodes.right[from] < 0 || nodes.feature[from] < 0) throw std::invalid_argument("its nodes do not form a tree");
    tree.feature[at] = nodes.feature[from];
    tree.flags[at] = nodes.flags[from];
    if (tree.flags[at] & Tree::category)
      add_codes(nodes, from, tree, at);
    else
      tree.threshold[at] = nodes.threshold[from];
    waiting.push_back({static_cast<std::size_t>(nodes.right[from]), at});
    waiting.push_back({static_cast<std::size_t>(nodes.left[from]), none});
  }
  fill_splits(nodes, gain, tree);
  return tree;
}

}  // namespace spinney
