#include "grow/block.h"

#include <algorithm>
#include <utility>

namespace spinney {

namespace {

class BlockGrower {
 public:
  BlockGrower(const Rules& rules, BlockColumns& columns, TriedColumns& tried, Interrupt& interrupt)
      : rules_(rules), columns_(columns), tried_(tried), interrupt_(interrupt) {}

  void grow(OpenNode root, std::span<Row> rows, Tree& tree) {
    tree.clear();
    std::swap(tree_, tree);
    tree_.value_width = static_cast<std::uint32_t>(rules_.target.value_width());
    rows_ = rows;
    reserve(rows.size());
    columns_.start(root, rows);
    root.end -= root.begin;
    root.begin = 0;
    stack_.push_back({std::move(root), no_parent});
    interrupt_.check();
    while (!stack_.empty()) {
      Pending next = std::move(stack_.back());
      stack_.pop_back();
      do check_now_and_then(next.node.n());
      while (grow_node(next));
    }
    columns_.cut_now(tree_);
    std::swap(tree_, tree);
  }

 private:
  static constexpr std::size_t no_parent = SIZE_MAX;
  struct Pending {
    OpenNode node;
    std::size_t parent;  // the parent of this right child
  };

  // Reserves memory for the largest possible tree, because growing arrays are copied. Trees of classes seldom need a
  // quarter of it, but memory that an earlier tree has written to does count.
  void reserve(std::size_t n_rows) {
    constexpr std::size_t most_numbers = std::size_t{1} << 24;
    const std::size_t most = 2 * (n_rows / std::max<Row>(1, rules_.params.min_samples_leaf)) + 1;
    const std::size_t n_nodes = is_class_rule(rules_.target.rule) ? most / 4 + 1 : most;
    if (n_nodes * tree_.value_width < most_numbers) tree_.reserve(n_nodes, 0);
  }

  // Reading the clock costs as much as a small node.
  void check_now_and_then(Row n_rows) {
    constexpr std::size_t often = std::size_t{1} << 14;  // rows; a node costs about as much as 16 more
    unchecked_ += n_rows + std::size_t{16};
    if (unchecked_ < often) return;
    unchecked_ = 0;
    interrupt_.check();
  }

  // If the node is split, its left child is next and its right child waits.
  bool grow_node(Pending& pending) {
    OpenNode& node = pending.node;
    const std::size_t at = tree_.add_leaf();
    if (pending.parent != no_parent) tree_.right[pending.parent] = static_cast<std::uint32_t>(at);
    const std::span<const Row> rows = rows_.subspan(node.begin, node.n());
    const Summary summary = summarise(rules_.target, rows, node.stat.data(), tree_.value_of(at).data());
    if (rules_.bounded()) rules_.clip_value(node, tree_.value_of(at).data());
    tree_.impurity[at] = node.impurity = summary.impurity;
    tree_.weight[at] = summary.weight;
    tree_.n_rows[at] = node.n();
    std::optional<Choice> choice;
    if (rules_.may_split(node, summary)) choice = find_split(node);
    if (!choice) {
      spare_stats_.push_back(std::move(node.stat));
      return false;
    }
    pending = {split(node, *choice, at), no_parent};
    return true;
  }

  std::optional<Choice> find_split(OpenNode& node) {
    search_drawn_columns(
        rules_, node, tried_, [&](auto columns, auto candidates) { columns_.search(node, columns, candidates); },
        columns_.finds_constants(node));
    return rules_.choose(tried_.columns, tried_.candidates, node);
  }

  OpenNode split(OpenNode& node, const Choice& choice, std::size_t at) {
    OpenNode left, right;
    left.begin = node.begin;
    left.end = right.begin = columns_.partition(node, choice);
    right.end = node.end;
    left.depth = right.depth = node.depth + 1;
    divide_stat(node, left, right);
    const bool leaves = is_leaf(left) && is_leaf(right);
    // the children of a node that needs no list are smaller and need none either
    if (leaves || is_unlisted(rules_, columns_.finds_constants(node))) node.features.clear();
    rules_.inherit(node, choice, std::move(node.features), left, right);
    if (rules_.bounded()) rules_.bound_values(node, choice, mean_of(left), mean_of(right), left, right);
    write_split(tree_, at, columns_.describe(choice, left.stat[0] > right.stat[0]));
    columns_.cut_later(choice, tree_, at);
    if (!leaves) columns_.follow(node, left, right);
    stack_.push_back({std::move(right), at});
    return left;
  }

  static double mean_of(const OpenNode& n) { return static_cast<double>(n.stat[1]) / static_cast<double>(n.stat[0]); }

  void divide_stat(OpenNode& node, OpenNode& left, OpenNode& right) {
    OpenNode& small = left.n() < right.n() ? left : right;
    OpenNode& large = left.n() < right.n() ? right : left;
    if (!spare_stats_.empty()) {
      small.stat = std::move(spare_stats_.back());
      spare_stats_.pop_back();
    }
    small.stat.assign(node.stat.size(), 0);
    columns_.add(small.begin, small.end, small.stat.data());
    large.stat = std::move(node.stat);
    for (std::size_t k = 0; k < large.stat.size(); ++k) large.stat[k] -= small.stat[k];
  }

  bool is_leaf(const OpenNode& node) const {
    return rules_.too_small(node.n(), node.depth) ||
           is_pure(rules_.target, rows_.subspan(node.begin, node.n()), node.stat.data());
  }

  const Rules& rules_;
  BlockColumns& columns_;
  TriedColumns& tried_;
  Interrupt& interrupt_;
  Tree tree_;
  std::span<Row> rows_;  // row index of the block
  std::vector<Pending> stack_;
  // of leaves, for nodes to come: allocating memory takes time
  std::vector<std::vector<std::int64_t>> spare_stats_;
  std::size_t unchecked_ = 0;  // work since the last interruption check
};

}  // namespace

void grow_block(const Rules& rules, BlockColumns& columns, TriedColumns& tried, OpenNode root, std::span<Row> rows,
                Tree& tree, Interrupt& interrupt) {
  BlockGrower(rules, columns, tried, interrupt).grow(std::move(root), rows, tree);
}

}  // namespace spinney
