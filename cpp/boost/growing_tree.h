// A boosted tree that is being grown: its leaves, the order of their splits, and the nodes so far. TreeGrower
// (boost/grower.h) derives from it and splits the leaves. Leaves have one value, or one value per score.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "boost/boosted_tree.h"
#include "boost/codes.h"
#include "boost/columns.h"
#include "boost/histograms.h"
#include "boost/rows.h"
#include "boost/split.h"

namespace spinney {

// A node of the tree, or a child that was split off speculatively.
template <class SplitType, class SumsType>
struct GrowingNode {
  using Split = SplitType;
  using SumsOfRows = SumsType;

  std::size_t begin = 0, end = 0;
  SumsType sums;
  std::uint32_t depth = 0;
  std::uint64_t path = 1;  // random streams are keyed by the position in the tree
  Bounds bounds;
  std::vector<std::uint32_t> groups;  // interaction groups that are still open; empty: no constraint
  Histogram histogram;
  Histogram listed;  // histogram of the listed columns, if there are enough entries
  SplitType best;
  std::unique_ptr<GrowingNode> left, right;  // set once the split has been made, possibly speculatively
  bool is_taken = false;                     // its split is requested from partitions
  bool is_placed = false;                    // it is part of the tree
  std::size_t made = 0;                      // order of creation
  std::size_t at = 0;                        // its index among the nodes
  int made_by = 0;                           // worker
  std::uint32_t name = 0;                    // node number in messages of a distributed fit

  Row n() const { return static_cast<Row>(end - begin); }
  bool is_split() const { return left != nullptr; }
};

using GrowingLeaf = GrowingNode<BoostSplit, Sums>;

inline const Sums& left_sums(const BoostSplit& split) { return split.left; }
inline Sums difference(const Sums& a, const Sums& b) { return {a.gradient - b.gradient, a.hessian - b.hessian}; }

template <class LeafType>
class TreeGrowth {
 public:
  using Leaf = LeafType;
  using Split = typename Leaf::Split;

  TreeGrowth(const Coding& coding, const BoostParams& params, std::uint64_t key)
      : coding_(coding), params_(params), columns_(coding, params, key) {
    nodes_.reserve(std::min<std::size_t>(2 * std::size_t{params.max_leaf_nodes}, most_nodes_foreseen));
    nodes_.resize(1);
  }

  bool may_split(const Leaf& leaf) const {
    const std::size_t fewest =
        std::max<std::size_t>(2 * std::max<Row>(1, params_.min_samples_leaf), params_.min_samples_split);
    return leaf.n() >= fewest && leaf.depth < params_.max_depth;
  }

  // The gain of the last split; 0 if leaves remain to be split. Leaves of the next tree with such gains will probably be
  // split.
  double least_gain() const {
    if (n_to_come() > 0) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const NodeRecord& node : nodes_)
      if (node.left != 0) least = std::min(least, node.split.gain);
    return least;
  }

  const DrawnColumns& columns() const { return columns_; }
  std::vector<std::uint8_t> columns_of(const Leaf& leaf) const {
    return columns_.of_node(leaf.depth, leaf.path, leaf.groups);
  }

 protected:
  static constexpr std::size_t most_nodes_foreseen = 128;

  struct NodeRecord {
    Split split;
    typename Leaf::SumsOfRows sums;
    Row n = 0;
    std::size_t left = 0, right = 0;  // 0: a leaf
    std::size_t begin = 0, end = 0;
    Bounds bounds;
    std::uint32_t name = 0;
    bool left_heavier = false;
  };

  ~TreeGrowth() = default;
  virtual void release(Leaf& leaf) = 0;  // frees its histograms
  virtual void rejoin(Leaf& leaf) = 0;   // undoes a speculative split of the leaf's rows
  virtual void describe(NodeRecord& node, BoostedTree& grown,
                        std::size_t at) = 0;  // fills in the node, except its children

  // ---- split order -----------------------------------------------------------------------------------

  bool later(const Leaf& a, const Leaf& b) const {
    if (params_.depth_wise && a.depth != b.depth) return a.depth > b.depth;
    return a.best.gain != b.best.gain ? a.best.gain < b.best.gain : a.made > b.made;
  }
  auto order() const {
    return [this](const auto& a, const auto& b) { return later(*a, *b); };
  }

  std::size_t n_to_come() const { return params_.max_leaf_nodes - n_leaves_; }
  bool is_done() const { return n_to_come() == 0 || heap_.empty(); }

  void place(Leaf& leaf) {
    leaf.made = n_made_++;
    leaf.is_placed = true;
    NodeRecord& node = nodes_[leaf.at];
    node.sums = leaf.sums;
    node.n = leaf.n();
    node.begin = leaf.begin;
    node.end = leaf.end;
    node.bounds = leaf.bounds;
    node.name = leaf.name;
  }

  // Adds a node to the tree; it is queued if it has a split.
  void push(std::unique_ptr<Leaf> leaf) {
    place(*leaf);
    if (!(leaf->best.gain > 0)) return finish(*leaf);
    heap_.push_back(std::move(leaf));
    std::push_heap(heap_.begin(), heap_.end(), order());
  }

  // Adds the splits that are made and next in order to the tree.
  void commit_splits() {
    while (!is_done() && heap_.front()->is_split()) {
      std::pop_heap(heap_.begin(), heap_.end(), order());
      std::unique_ptr<Leaf> leaf = std::move(heap_.back());
      heap_.pop_back();
      commit(std::move(leaf));
      ++n_leaves_;
    }
  }

  // Calls visit(leaf) for the first `most` leaves in split order, as far as it is known, until it returns false; `soon`
  // is scratch. Speculative splits are followed by those below them.
  template <class Visit>
  void for_each_turn(std::size_t most, std::vector<Leaf*>& soon, Visit&& visit) const {
    soon.clear();
    for (const auto& leaf : heap_) soon.push_back(leaf.get());
    for (; most > 0 && !soon.empty(); --most) {
      std::pop_heap(soon.begin(), soon.end(), order());
      Leaf* leaf = soon.back();
      soon.pop_back();
      if (!visit(leaf)) return;
      for (Leaf* child : {leaf->left.get(), leaf->right.get()})
        if (child != nullptr && child->best.gain > 0) {
          soon.push_back(child);
          std::push_heap(soon.begin(), soon.end(), order());
        }
    }
  }

  // Those of the first `most` leaves that are neither taken nor split.
  std::vector<Leaf*> next_leaves(std::size_t most) const {
    std::vector<Leaf*> soon, found;
    for_each_turn(most, soon, [&](Leaf* leaf) {
      if (!leaf->is_split() && !leaf->is_taken) found.push_back(leaf);
      return true;
    });
    return found;
  }

  // Makes a node a final leaf and discards speculative splits below it.
  void finish(Leaf& leaf) {
    release(leaf);
    if (!leaf.is_split()) return;
    finish(*leaf.left);
    finish(*leaf.right);
    rejoin(leaf);
  }

  // The leaf now has its children; or it has a worse split and moves back in the order, or no split at all.
  void settle(LeafSplit<Leaf>& split) {
    Leaf& leaf = *split.leaf;
    leaf.left = std::move(split.left);
    leaf.right = std::move(split.right);
    if (leaf.is_split()) return;
    leaf.best = std::move(split.recounted);
    if (!leaf.is_placed) return;
    std::erase_if(heap_, [&](const auto& other) {
      if (other.get() != &leaf || leaf.best.gain > 0) return false;
      finish(leaf);
      return true;
    });
    std::make_heap(heap_.begin(), heap_.end(), order());
  }

  // ---- splitting one leaf ----------------------------------------------------------------------------

  std::unique_ptr<Leaf> make_root(std::size_t n_rows) const {
    auto root = std::make_unique<Leaf>();
    root->end = n_rows;
    for (std::uint32_t g = 0; g < params_.interaction_cst.size(); ++g) root->groups.push_back(g);
    return root;
  }

  std::unique_ptr<Leaf> make_child(const Leaf& leaf, bool is_left, std::size_t n_left) const {
    auto child = std::make_unique<Leaf>();
    child->begin = is_left ? leaf.begin : leaf.begin + n_left;
    child->end = is_left ? leaf.begin + n_left : leaf.end;
    child->sums = is_left ? left_sums(leaf.best) : difference(leaf.sums, left_sums(leaf.best));
    child->depth = leaf.depth + 1;
    child->path = derive(leaf.path, is_left ? 1 : 2);
    child->bounds = leaf.bounds;
    for (const std::uint32_t g : leaf.groups) {
      const auto& group = params_.interaction_cst[g];
      if (std::find(group.begin(), group.end(), leaf.best.feature) != group.end()) child->groups.push_back(g);
    }
    return child;
  }

  bool has_too_few(const Leaf& leaf, std::size_t n_left) const {
    return std::min<std::size_t>(n_left, leaf.n() - n_left) < std::max<Row>(1, params_.min_samples_leaf);
  }

  // ---- the tree -------------------------------------------------------------------------------------

  void record_split(Leaf& leaf) {
    NodeRecord& node = nodes_[leaf.at];
    node.split = std::move(leaf.best);
    node.left_heavier = leaf.left->n() > leaf.right->n();
    node.left = leaf.left->at = nodes_.size();
    node.right = leaf.right->at = nodes_.size() + 1;
    nodes_.resize(nodes_.size() + 2);
  }

  // Makes the split of a leaf part of the tree.
  void commit(std::unique_ptr<Leaf> leaf) {
    record_split(*leaf);
    push(std::move(leaf->left));
    push(std::move(leaf->right));
  }

  BoostedTree assemble() {
    BoostedTree grown;
    grown.tree.reserve(nodes_.size(), 0);
    grown.cut.reserve(nodes_.size());
    grown.leaves.reserve(nodes_.size() / 2 + 1);
    struct Step {
      std::size_t node, parent;
    };
    std::vector<Step> stack;
    stack.reserve(nodes_.size());
    stack.push_back({0, SIZE_MAX});
    while (!stack.empty()) {
      const Step step = stack.back();
      stack.pop_back();
      NodeRecord& node = nodes_[step.node];
      const std::size_t at = grown.tree.add_leaf();
      grown.cut.push_back(0);
      if (step.parent != SIZE_MAX) grown.tree.right[step.parent] = static_cast<std::uint32_t>(at);
      describe(node, grown, at);
      if (node.left == 0) {
        grown.leaves.push_back({static_cast<std::uint32_t>(at), node.begin, node.end, node.bounds, node.name});
        continue;
      }
      stack.push_back({node.right, at});
      stack.push_back({node.left, SIZE_MAX});
    }
    return grown;
  }

  const Coding& coding_;
  const BoostParams& params_;
  const DrawnColumns columns_;
  std::vector<std::unique_ptr<Leaf>> heap_;  // leaves of the tree with a pending split
  std::vector<NodeRecord> nodes_;
  std::size_t n_made_ = 0, n_leaves_ = 1;
};

// A tree whose leaves have one value.
class GrowingTree : public TreeGrowth<GrowingLeaf> {
 public:
  using Terms = Units;
  GrowingTree(const Coding& coding, const BoostParams& params, std::uint64_t key, Units units)
      : TreeGrowth(coding, params, key), units_(units), search_(coding, params, units) {}

  const SplitSearch& search() const { return search_; }
  Units units() const { return units_; }
  NodeTerms terms_of(const Leaf& leaf) const { return search_.terms(leaf.sums, leaf.n(), leaf.bounds); }

 protected:
  ~GrowingTree() = default;

  void bound(const Leaf& leaf, Leaf& left, Leaf& right) const {
    if (params_.monotonic_cst.empty() || params_.monotonic_cst[leaf.best.feature] == 0) return;
    const double middle = (step_of(left) + step_of(right)) / 2;
    const bool rises = params_.monotonic_cst[leaf.best.feature] > 0;
    (rises ? left : right).bounds.high = std::min(leaf.bounds.high, middle);
    (rises ? right : left).bounds.low = std::max(leaf.bounds.low, middle);
  }

  double step_of(const Leaf& leaf) const {
    return search_.step(static_cast<double>(leaf.sums.gradient) * units_.gradient,
                        static_cast<double>(leaf.sums.hessian) * units_.hessian, leaf.bounds);
  }

  void describe(NodeRecord& node, BoostedTree& grown, std::size_t at) override {
    Tree& tree = grown.tree;
    const double g = static_cast<double>(node.sums.gradient) * units_.gradient;
    const double h = static_cast<double>(node.sums.hessian) * units_.hessian;
    tree.weight[at] = static_cast<double>(node.n);
    tree.n_rows[at] = node.n;
    // so that the decrease of weighted impurity equals the gain
    tree.impurity[at] =
        node.n == 0 ? 0.0 : -g * g / (h + params_.l2_regularization + 1e-300) / static_cast<double>(node.n);
    tree.value[at] = search_.step(g, h, node.bounds) * params_.learning_rate;
    if (node.left == 0) return;
    set_split(tree, at, coding_, node.split, node.left_heavier);
    grown.cut[at] = node.split.cut;
  }

  const Units units_;
  const SplitSearch search_;
};

}  // namespace spinney
