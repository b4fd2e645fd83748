#include "predict/shap_prepare.h"

#include <algorithm>
#include <cmath>

namespace spinney {

// Half as many points as columns are exact. Much fewer suffice: the coefficients of products of d factors in [0, 1]
// decay like exp(-n² / 2d), so that n = 9 √d leaves 1e-17, and n is twice the number of points.
std::size_t points_for(std::size_t n_columns) {
  const std::size_t exact = (n_columns + 1) / 2;
  if (exact <= 16) return std::max<std::size_t>(1, exact);
  const auto enough = static_cast<std::size_t>(4.5 * std::sqrt(static_cast<double>(n_columns))) + 2;
  return (std::min(exact, enough) + 7) / 8 * 8;  // few different rules
}

NodeFractions fractions_of(const Tree& nodes, std::size_t node) {
  const double left = nodes.weight[node + 1], right = nodes.weight[nodes.right[node]], both = left + right;
  const double all = nodes.flags[node] & Tree::stops ? std::max(both, nodes.weight[node]) : both;
  if (!(all > 0)) return {0.5, 0.5, 0.0};  // no training row determines the side
  return {left / all, right / all, (all - both) / all};
}

// One level of the path: the split passed and its state.
namespace {
struct PathStep {
  std::uint32_t node, index;  // in the tree, and among its splits
  std::int32_t feature;
  std::uint32_t n_columns;               // distinct columns, including this one
  double left_fraction, right_fraction;  // z of the column on each side
};
}  // namespace

// Calls visit(node, path, previous) for each split of a tree, in preorder, with the splits above it and the level of
// the last one on the same column, or -1; visit appends to the path.
template <class Visit>
static void for_each_split(const Tree& nodes, std::uint32_t root, std::uint32_t end, Visit&& visit) {
  std::vector<PathStep> path;
  for (std::uint32_t node = root; node < end; ++node) {
    while (!path.empty() && !(node == path.back().node + 1) && nodes.right[path.back().node] != node) path.pop_back();
    if (nodes.is_leaf(node)) continue;
    auto previous = static_cast<std::int32_t>(path.size()) - 1;
    while (previous >= 0 && path[static_cast<std::size_t>(previous)].feature != nodes.feature[node]) --previous;
    visit(node, path, previous);
  }
}

// Returns whether the path from `passed` to `node` below it takes the right side.
static bool went_right(const Tree& nodes, const PathStep& passed, std::uint32_t node) {
  return node >= nodes.right[passed.node];
}

// Returns whether a linear leaf below a split has a column that is not on its path: it adds a factor to the polynomial.
static bool has_terms_off(const Tree& nodes, std::uint32_t split, const std::vector<PathStep>& path) {
  const LinearLeaves& leaves = nodes.linear_leaves;
  for (const std::size_t child : {std::size_t{split} + 1, static_cast<std::size_t>(nodes.right[split])}) {
    if (!nodes.is_leaf(child) || !leaves.has(child)) continue;
    for (std::uint32_t t = leaves.begin[child]; t < leaves.begin[child + 1]; ++t)
      if (std::none_of(path.begin(), path.end(), [&](const PathStep& step) {
            return static_cast<std::uint32_t>(step.feature) == leaves.feature[t];
          }))
        return true;
  }
  return false;
}

ShapPreparation::ShapPreparation(const SummedTrees& trees) : trees_(trees) {
  find_columns();
  const Tree& nodes = trees.nodes;
  for (std::size_t t = 0; t < trees.n_trees(); ++t) {
    std::uint32_t most = 0;
    std::size_t n_splits = 0;
    for_each_split(nodes, trees.root[t], trees.root[t + 1],
                   [&](std::uint32_t node, std::vector<PathStep>& path, std::int32_t previous) {
                     const std::uint32_t above = path.empty() ? 0 : path.back().n_columns;
                     path.push_back({node, 0, nodes.feature[node], above + (previous < 0 ? 1 : 0), 0, 0});
                     most = std::max(most, path.back().n_columns + (has_terms_off(nodes, node, path) ? 1 : 0));
                     ++n_splits;
                   });
    const std::size_t n = points_for(most);
    n_points_.push_back(static_cast<std::uint32_t>(n));
    if (!rules_.contains(n)) rules_.emplace(n, gauss_legendre(n));
    constant_bytes_ += n_splits * n * ShapKernels::n_constants * sizeof(double);
  }
}

void ShapPreparation::find_columns() {
  const Tree& nodes = trees_.nodes;
  const auto note = [&](std::uint32_t f) {
    if (f >= slot.size()) slot.resize(f + std::size_t{1}, 0);
    slot[f] = 1;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!nodes.is_leaf(i)) note(static_cast<std::uint32_t>(nodes.feature[i]));
  for (const std::uint32_t f : nodes.splits.feature) note(f);  // surrogates may decide
  for (const std::uint32_t f : nodes.linear_leaves.feature) note(f);
  for (std::uint32_t f = 0; f < slot.size(); ++f)
    if (slot[f]) {
      slot[f] = static_cast<std::uint32_t>(used.size());
      used.push_back(f);
    }
}

// For a small tree with one constant value per leaf, in which all rows reach a leaf.
static std::size_t size_of_tables(const ShapTree& tree, std::size_t most_bytes) {
  const std::size_t size = tree.splits.size() * tree.n_points * shap_kernels().table_size;
  const bool stops =
      std::any_of(tree.splits.begin(), tree.splits.end(), [](const ShapSplit& s) { return s.stop_value != nullptr; });
  return tree.n_values > 1 || tree.linear.begin != nullptr || stops || size * sizeof(double) > most_bytes ? 0 : size;
}

ShapTree ShapPreparation::tree(std::size_t t, std::size_t most_bytes, std::size_t most_table_bytes) const {
  const Tree& nodes = trees_.nodes;
  const Quadrature& rule = rules_.at(n_points_[t]);
  ShapTree made;
  made.n_points = rule.size();
  made.t = rule.t.data();
  made.u = rule.u.data();
  made.weight = rule.weight.data();
  made.n_values = nodes.value_width;
  if (const LinearLeaves& l = nodes.linear_leaves; !l.empty())
    made.linear = {l.begin.data(), l.base.data(), l.feature.data(),   l.slope.data(), l.middle.data(),
                   l.low.data(),   l.high.data(), nodes.right.data(), slot.data(),    nullptr};
  if (const LinearLeaves& l = nodes.linear_leaves; !l.empty())
    for (std::size_t node = trees_.root[t]; node < trees_.root[t + 1]; ++node)
      made.n_terms = std::max<std::size_t>(made.n_terms, l.begin[node + 1] - l.begin[node]);
  const auto value_if_leaf = [&](std::uint32_t node) {
    return nodes.is_leaf(node) ? nodes.value_of(node).data() : nullptr;
  };
  for_each_split(nodes, trees_.root[t], trees_.root[t + 1],
                 [&](std::uint32_t node, std::vector<PathStep>& path, std::int32_t previous) {
                   const NodeFractions fractions = fractions_of(nodes, node);
                   ShapSplit s{};
                   s.node = node;
                   s.threshold = nodes.threshold[node];
                   s.left_fraction = fractions.left;
                   s.right_fraction = fractions.right;
                   s.stop_fraction = fractions.stop;
                   s.fraction_before = 1;
                   if (previous >= 0) {
                     const PathStep& p = path[static_cast<std::size_t>(previous)];
                     s.fraction_before = went_right(nodes, p, node) ? p.right_fraction : p.left_fraction;
                   }
                   s.left_value = value_if_leaf(node + 1);
                   s.right_value = value_if_leaf(nodes.right[node]);
                   s.stop_value = nodes.flags[node] & Tree::stops ? nodes.value_of(node).data() : nullptr;
                   s.slot = slot[static_cast<std::size_t>(nodes.feature[node])];
                   s.level = static_cast<std::uint32_t>(path.size());
                   s.previous = previous;
                   const bool plain = nodes.splits.empty() && !(nodes.flags[node] & Tree::category);
                   s.looked_up = plain ? -1 : static_cast<std::int32_t>(made.looked_up.size());
                   s.missing_left = (nodes.flags[node] & Tree::missing_left) != 0;
                   if (!plain) made.looked_up.push_back(node);
                   const auto index = static_cast<std::uint32_t>(made.splits.size());
                   if (!path.empty() && nodes.right[path.back().node] == node)
                     made.splits[path.back().index].right = index;
                   made.splits.push_back(s);
                   made.n_levels = std::max(made.n_levels, path.size() + 1);
                   path.push_back({node, index, nodes.feature[node], 0, s.fraction_before * s.left_fraction,
                                   s.fraction_before * s.right_fraction});
                 });
  const std::size_t n_constants = made.splits.size() * made.n_points * ShapKernels::n_constants;
  if (n_constants * sizeof(double) <= most_bytes) {
    made.constants.resize(n_constants);
    made.tables.resize(size_of_tables(made, most_table_bytes));
    shap_kernels().fill(made);
  }
  return made;
}

}  // namespace spinney
