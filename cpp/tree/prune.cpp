#include "tree/prune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::uint32_t none = UINT32_MAX;
// Differences of risks below this fraction of the node's risk are rounding errors: risks are rounded sums.
constexpr double rounding = 1e-12;
// Risks are clipped to this size, so that their sums cannot overflow.
constexpr double largest_risk = 1e290;

// Compensated summation (Neumaier).
struct ExactSum {
  double sum = 0, lost = 0;
  void add(double x) {
    const double next = sum + x;
    lost += std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
    sum = next;
  }
  double value() const { return sum + lost; }
};

// Finds the weakest links from the leaves up, independent of the tree's depth.
//
// Let f_t(alpha) be the minimum cost of the branch at t: f_t = min(R(t) + alpha, f_l + f_r). It is concave and
// piecewise linear; its slope is the number of remaining leaves. Every kink is a link: the alpha at which some node of
// the branch becomes a leaf. A branch stores its kinks in a heap, the largest alpha on top. At t the two heaps are
// merged, and t becomes a leaf where f_l + f_r intersects R(t) + alpha: from the right, kinks above the intersection
// are removed (these nodes are gone when t is a leaf), then the kink of t is added. So each node enters and leaves a
// heap once: O(n log n). Updating strengths along the path to the root instead would cost the depth for every step.
class Links {
 public:
  Links(const Tree& tree, std::span<const double> risk, int n_threads = 1)
      : tree_(tree), risk_(risk), links_(tree.size()) {
    const auto is_usable = [](double r) { return std::abs(r) <= largest_risk; };
    if (!std::all_of(risk.begin(), risk.end(), is_usable)) {
      for (const double r : risk) held_in_.push_back(std::isnan(r) ? 0.0 : std::clamp(r, -largest_risk, largest_risk));
      risk_ = held_in_;
    }
    above_.assign(tree.size(), none);  // initially the heap of each branch
    n_splits_ = tree.size() / 2;
    link_branches(n_threads);
  }

  PruningPath path() {
    PruningPath path;
    const std::vector<Step> steps = joined_steps();
    path.complexity.assign(tree_.size(), 0.0);
    for (std::size_t i = 0; i < tree_.size(); ++i)
      if (!tree_.is_leaf(i)) path.complexity[i] = links_[above_[i]].alpha;
    ExactSum total;
    std::uint32_t n_leaves = 0;
    for (std::size_t i = 0; i < tree_.size(); ++i)
      if (tree_.is_leaf(i)) total.add(risk_[i]), ++n_leaves;
    for (auto* numbers : {&path.alpha, &path.risk}) numbers->reserve(steps.size() + 1);
    for (auto* numbers : {&path.node, &path.n_leaves}) numbers->reserve(steps.size() + 1);
    path.risk.push_back(total.value());
    path.n_leaves.push_back(n_leaves);
    for (const Step& step : steps) {
      total.add(step.saved);
      path.node.push_back(step.node);
      path.alpha.push_back(step.alpha);
      path.risk.push_back(total.value());
      path.n_leaves.push_back(n_leaves -= step.dropped);
    }
    return path;
  }

  std::vector<std::uint32_t> first_cuts(std::span<const double> limits) {
    std::vector<std::uint32_t> cut_of(tree_.size(), 0), first(tree_.size(), 0);
    std::uint32_t cut = 0;
    for (const Step& step : joined_steps()) {
      while (cut < limits.size() && limits[cut] < step.alpha) ++cut;
      cut_of[step.node] = cut;
    }
    for (std::size_t i = 0; i < tree_.size(); ++i)
      if (!tree_.is_leaf(i)) first[i] = cut_of[above_[i]];
    return first;
  }

 private:
  struct Link {
    double alpha = 0, saved = 0;  // saved: the risk that the branch below still saves when it is pruned
    std::uint32_t dropped = 0;    // leaves that are removed with it
    std::uint32_t left = none, right = none;
    std::uint8_t rank = 1;  // at most the logarithm of the number of nodes
    bool live = false;      // in some heap; at the end: a step of the path
  };
  struct
      Step {  // the part of a link that the path needs, contiguous, because the links are scattered in memory by then
    double alpha, saved;
    std::uint32_t node, dropped;
    bool operator<(const Step& o) const { return alpha != o.alpha ? alpha < o.alpha : node < o.node; }
  };

  // Stable, so that ties stay in node order. Alphas are not negative: their bit patterns have the same order.
  static void sort_by_alpha(std::vector<Step>& steps) {
    constexpr unsigned digit_bits = 11, n_digits = 6;
    constexpr std::size_t radix_pays = 4096;
    if (steps.size() < radix_pays) return std::sort(steps.begin(), steps.end());
    std::vector<Step> spare(steps.size());
    for (unsigned digit = 0; digit < n_digits; ++digit) {
      const auto digit_of = [&](const Step& s) {
        return std::bit_cast<std::uint64_t>(s.alpha) >> (digit * digit_bits) & ((1u << digit_bits) - 1);
      };
      std::vector<std::size_t> place((1u << digit_bits) + 1, 0);
      for (const Step& s : steps) ++place[digit_of(s) + 1];
      if (std::find(place.begin(), place.end(), steps.size()) != place.end()) continue;  // all equal
      std::partial_sum(place.begin(), place.end(), place.begin());
      for (const Step& s : steps) spare[place[digit_of(s)]++] = s;
      steps.swap(spare);
    }
  }

  // Branches are independent, so those of moderate size are linked in parallel; then the splits above them.
  void link_branches(int n_threads) {
    const std::size_t moderate = n_threads > 1 ? std::max<std::size_t>(4096, tree_.size() / 32) : tree_.size();
    struct Branch {
      std::size_t node, end;
    };
    std::vector<Branch> branches, stack{{0, tree_.size()}};
    std::vector<std::size_t> above;
    while (!stack.empty()) {
      const Branch branch = stack.back();
      stack.pop_back();
      if (branch.end - branch.node <= moderate) {
        branches.push_back(branch);
        continue;
      }
      above.push_back(branch.node);
      stack.push_back({tree_.right[branch.node], branch.end});
      stack.push_back({branch.node + 1, tree_.right[branch.node]});
    }
    parallel_for(branches.size(), n_threads, [&](std::size_t b, int) {
      for (std::size_t i = branches[b].end; i-- > branches[b].node;) link(i);  // children come after their parent
    });
    for (std::size_t k = above.size(); k-- > 0;) link(above[k]);
  }

  void link(std::size_t i) {
    if (!tree_.is_leaf(i)) above_[i] = add(static_cast<std::uint32_t>(i), merge(above_[i + 1], above_[tree_.right[i]]));
  }

  std::uint8_t rank(std::uint32_t i) const { return i == none ? std::uint8_t{0} : links_[i].rank; }

  // Leftist heaps: the right spines are logarithmic, so the recursion is shallow.
  std::uint32_t merge(std::uint32_t a, std::uint32_t b) {
    if (a == none || b == none) return a == none ? b : a;
    if (links_[a].alpha < links_[b].alpha) std::swap(a, b);
    Link& top = links_[a];
    top.right = merge(top.right, b);
    if (rank(top.left) < rank(top.right)) std::swap(top.left, top.right);
    top.rank = static_cast<std::uint8_t>(rank(top.right) + 1);
    return a;
  }

  std::uint32_t add(std::uint32_t i, std::uint32_t heap) {
    ExactSum saved;  // R(i) minus the risk of the branch's leaves
    saved.add(risk_[i]);
    saved.add(-risk_[i + 1]);
    saved.add(-risk_[tree_.right[i]]);
    std::uint32_t dropped = 1;
    const double slack = scale_of(i) * rounding;
    const auto take_top = [&] {
      Link& top = links_[heap];
      top.live = false;
      saved.add(top.saved);
      dropped += top.dropped;
      heap = merge(top.left, top.right);
    };
    while (heap != none && links_[heap].alpha > 0 && links_[heap].alpha * dropped >= saved.value() - slack) take_top();
    const bool is_free = saved.value() <= slack;
    while (is_free && heap != none) take_top();  // only alphas of 0 are left in it
    links_[i] = {is_free ? 0.0 : saved.value() / dropped, saved.value(), dropped, none, none, 1, true};
    return merge(heap, i);
  }

  // The size of the terms whose difference a split saves, to which rounding errors are relative.
  double scale_of(std::size_t i) const {
    return std::max({std::abs(risk_[i]), std::abs(risk_[i + 1]), std::abs(risk_[tree_.right[i]])});
  }

  // The remaining links by alpha, then node. Those whose alphas differ only by rounding get the smallest of them.
  std::vector<Step> sorted_steps() {
    std::vector<Step> steps;
    steps.reserve(n_splits_);
    double largest = 0;
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      largest = std::max(largest, std::abs(risk_[i]));
      if (const Link& link = links_[i]; link.live) steps.push_back({link.alpha, link.saved, i, link.dropped});
    }
    sort_by_alpha(steps);
    const auto slack = [&](const Step& step) { return rounding * scale_of(step.node) / step.dropped; };
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      const double first = steps[begin].alpha, surely_apart = rounding * largest;
      for (end = begin + 1; end < steps.size(); ++end) {
        const double gap = steps[end].alpha - first;
        if (gap > surely_apart || gap > std::max(slack(steps[begin]), slack(steps[end]))) break;
        steps[end].alpha = links_[steps[end].node].alpha = first;
      }
      if (end - begin > 1)
        std::sort(steps.begin() + static_cast<std::ptrdiff_t>(begin), steps.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return steps;
  }

  // The steps of the path: a link inside another of the same alpha belongs to it. From then on above_ is, for each
  // split, the step that prunes it.
  // the step that takes it.
  std::vector<Step> joined_steps() {
    std::vector<Step> steps = sorted_steps();
    bool any_joined = false;
    above_[0] = none;
    for (std::uint32_t i = 0; i < tree_.size(); ++i) {
      if (tree_.is_leaf(i)) continue;
      Link& link = links_[i];
      if (link.live && above_[i] != none && link.alpha >= links_[above_[i]].alpha) {
        links_[above_[i]].saved += link.saved;
        links_[above_[i]].dropped += link.dropped;
        link.live = false;
        any_joined = true;
      }
      if (link.live) above_[i] = i;
      above_[i + 1] = above_[tree_.right[i]] = above_[i];
    }
    if (!any_joined) return steps;
    std::erase_if(steps, [&](const Step& step) { return !links_[step.node].live; });
    for (Step& step : steps) step.saved = links_[step.node].saved, step.dropped = links_[step.node].dropped;
    return steps;
  }

  const Tree& tree_;
  std::span<const double> risk_;
  std::vector<double> held_in_;  // clipped risks, if some were not usable
  std::vector<Link> links_;
  std::vector<std::uint32_t> above_;  // heaps during linking, then see joined_steps
  std::size_t n_splits_ = 0;
};

}  // namespace

PruningPath weakest_links(const Tree& tree, std::span<const double> risk, int n_threads) {
  return Links(tree, risk, n_threads).path();
}

std::vector<std::uint32_t> first_cuts(const Tree& tree, std::span<const double> risk, std::span<const double> limits) {
  return Links(tree, risk).first_cuts(limits);
}

Turns pruning_turns(const Tree& tree, std::span<const std::uint32_t> rest, std::span<const std::uint32_t> first_cut,
                    std::uint32_t n_cuts) {
  Turns turns;
  for (std::uint32_t row = 0; row < rest.size(); ++row) {
    std::uint32_t until = n_cuts;
    for (std::uint32_t node = 0; until > 0; node = rest[row] >= tree.right[node] ? tree.right[node] : node + 1) {
      const std::uint32_t begin = node == rest[row] ? 0 : first_cut[node];
      if (begin >= until) continue;
      turns.row.push_back(row);
      turns.node.push_back(node);
      turns.begin.push_back(begin);
      turns.until.push_back(until);
      until = begin;
    }
  }
  return turns;
}

std::vector<double> impurity_risks(const Tree& tree) {
  std::vector<double> risk(tree.size());
  for (std::size_t i = 0; i < tree.size(); ++i) risk[i] = tree.impurity[i] * (tree.weight[i] / tree.weight[0]);
  return risk;
}

Tree collapse(const Tree& tree, const std::vector<std::uint8_t>& make_leaf) {
  Tree out;
  out.value_width = tree.value_width;
  out.shrinkage = tree.shrinkage;
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
    if (tree.linear_leaves.has(from)) {
      out.linear_leaves.pad(to);
      out.linear_leaves.copy_node(tree.linear_leaves, from);
    }
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
  if (!out.linear_leaves.empty()) out.linear_leaves.pad(out.size());
  return out;
}

Tree prune(const Tree& tree, std::span<const double> risk, double alpha) {
  const PruningPath path = weakest_links(tree, risk);
  std::vector<std::uint8_t> make_leaf(tree.size(), 0);
  const double limit = alpha + alpha_rounding * std::abs(alpha);
  for (std::size_t i = 0; i < path.node.size() && path.alpha[i] <= limit; ++i) make_leaf[path.node[i]] = 1;
  return collapse(tree, make_leaf);
}

}  // namespace spinney
