#include "tree/prune.h"

#include <algorithm>
#include <queue>

namespace spinney {

namespace {

// State of the sequence: each live split's subtree risk and leaf count, kept current along the path to the root.
// Collapsing the weakest link never lowers another link's strength, so a queued strength is a lower bound: it is
// computed anew when its turn comes, and queued again if it has risen.
class Pruner {
 public:
  explicit Pruner(const Tree& tree) : tree_(tree), parent_(tree.size(), none) {
    const std::size_t n = tree.size();
    risk_.resize(n);
    subtree_risk_.resize(n);
    n_leaves_.assign(n, 1);
    live_.assign(n, 0);
    for (std::size_t i = n; i-- > 0;) {  // children come after their parent
      risk_[i] = tree.impurity[i] * tree.weight[i] / tree.weight[0];
      subtree_risk_[i] = risk_[i];
      if (tree.is_leaf(i)) continue;
      const std::size_t l = i + 1, r = tree.right[i];
      parent_[l] = parent_[r] = static_cast<std::uint32_t>(i);
      subtree_risk_[i] = subtree_risk_[l] + subtree_risk_[r];
      n_leaves_[i] = n_leaves_[l] + n_leaves_[r];
      live_[i] = 1;
      push(i);
    }
  }

  PruningPath run() {
    PruningPath path;
    path.risk.push_back(subtree_risk_[0]);
    while (!links_.empty()) {
      const Link link = links_.top();
      links_.pop();
      if (!live_[link.node]) continue;
      if (strength(link.node) > link.alpha) {
        push(link.node);
        continue;
      }
      collapse(link.node);
      path.node.push_back(link.node);
      path.alpha.push_back(link.alpha);
      path.risk.push_back(subtree_risk_[0]);
    }
    return path;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Link {
    double alpha;
    std::uint32_t node;
    bool operator<(const Link& o) const { return alpha != o.alpha ? alpha > o.alpha : node > o.node; }
  };

  double strength(std::size_t i) const { return (risk_[i] - subtree_risk_[i]) / (n_leaves_[i] - 1.0); }
  void push(std::size_t i) { links_.push({strength(i), static_cast<std::uint32_t>(i)}); }

  void collapse(std::uint32_t node) {
    const double saved = risk_[node] - subtree_risk_[node];
    const std::uint32_t dropped = n_leaves_[node] - 1;
    kill_splits_below(node);
    subtree_risk_[node] = risk_[node];
    n_leaves_[node] = 1;
    for (std::uint32_t a = parent_[node]; a != none; a = parent_[a]) {
      subtree_risk_[a] += saved;
      n_leaves_[a] -= dropped;
    }
  }

  // Every split dies once, so all calls together are linear.
  void kill_splits_below(std::uint32_t node) {
    std::vector<std::uint32_t> stack{node};
    while (!stack.empty()) {
      const std::uint32_t i = stack.back();
      stack.pop_back();
      if (!live_[i]) continue;
      live_[i] = 0;
      stack.push_back(i + 1);
      stack.push_back(tree_.right[i]);
    }
  }

  const Tree& tree_;
  std::vector<std::uint32_t> parent_, n_leaves_;
  std::vector<double> risk_, subtree_risk_;
  std::vector<std::uint8_t> live_;
  std::priority_queue<Link> links_;
};

}  // namespace

PruningPath weakest_links(const Tree& tree) { return Pruner(tree).run(); }

Tree collapse(const Tree& tree, const std::vector<std::uint8_t>& make_leaf) {
  Tree out;
  out.value_width = tree.value_width;
  struct Step {
    std::size_t node, parent;
  };
  std::vector<Step> stack{{0, SIZE_MAX}};
  while (!stack.empty()) {
    const Step step = stack.back();
    stack.pop_back();
    const std::size_t from = step.node, to = out.add_leaf();
    if (step.parent != SIZE_MAX) out.right[step.parent] = static_cast<std::uint32_t>(to);
    std::copy_n(tree.value_of(from).begin(), tree.value_width, out.value_of(to).begin());
    out.impurity[to] = tree.impurity[from];
    out.weight[to] = tree.weight[from];
    out.n_rows[to] = tree.n_rows[from];
    const bool leaf = tree.is_leaf(from) || make_leaf[from];
    if (!tree.splits.empty()) leaf ? out.splits.end_node() : out.splits.copy_node(tree.splits, from);
    if (leaf) continue;
    out.feature[to] = tree.feature[from];
    out.threshold[to] = tree.threshold[from];
    out.flags[to] = tree.flags[from];
    if (tree.flags[from] & Tree::category) {
      out.set[to] = static_cast<std::uint32_t>(out.sets.size());
      const auto* set = tree.sets.data() + tree.set[from];
      out.sets.insert(out.sets.end(), set, set + 1 + (*set & ~Tree::list_mark));
    }
    stack.push_back({tree.right[from], to});
    stack.push_back({from + 1, SIZE_MAX});
  }
  return out;
}

Tree prune(const Tree& tree, double alpha) {
  const PruningPath path = weakest_links(tree);
  std::vector<std::uint8_t> make_leaf(tree.size(), 0);
  for (std::size_t i = 0; i < path.node.size() && path.alpha[i] <= alpha; ++i) make_leaf[path.node[i]] = 1;
  return collapse(tree, make_leaf);
}

}  // namespace spinney
