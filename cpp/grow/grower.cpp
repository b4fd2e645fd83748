#include "grow/grower.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "base/partition.h"
#include "base/pool.h"
#include "criterion/median.h"
#include "data/read.h"
#include "grow/block.h"
#include "grow/ranked_columns.h"
#include "grow/sorted_columns.h"
#include "grow/surrogates.h"

namespace spinney {

namespace {

// A node of the part of the tree that is still linked by indices; `assemble` lays it out in preorder.
struct LinkedNode {
  Summary summary;
  Row n = 0;
  std::vector<double> value;
  std::optional<SplitRecord> split;
  Ranking ranking;  // of the splits, if they are recorded
  std::size_t left = 0, right = 0;
  std::size_t subtree = SIZE_MAX;  // index of a subtree grown by a task
  std::size_t begin = 0, end = 0;  // rows that stop at this node, once the tree is grown
};

class Grower {
 public:
  Grower(const Rules& rules, Bins& bins, Workers workers, GrowBuffers& buffers, Interrupt& interrupt)
      : rules_(rules), bins_(bins), workers_(workers), buffers_(buffers), rows_(buffers.rows), interrupt_(interrupt) {}

  GrownTree grow() {
    OpenNode root = rules_.root();
    root.end = rows_.size();
    root.stat.assign(workers_[0]->stat_width(), 0);
    workers_[0]->add(with_weight(rows_), root.stat.data());
    counts_ranks_ = bins_.ranks.row_bytes > 0 && !surrogate_params().on && RankedColumns::fits(rules_.target, rows_);
    if (rules_.params.max_leaf_nodes > 0)
      grow_best_first(std::move(root));
    else
      grow_depth_first(std::move(root), task_rows());
    return assemble();
  }

 private:
  struct Open {
    OpenNode node;
    std::size_t at;  // its linked node
  };

  const SurrogateParams& surrogate_params() const { return rules_.params.surrogate_params; }

  // Presorting pays when every node tries every column.
  bool blocks_pay() const {
    constexpr std::size_t most_idle = 16;  // columns kept sorted for each column that is tried
    return !needs_medians() && !surrogate_params().on && !rules_.params.random_cuts &&
           rules_.table.n_columns() / most_idle <= rules_.params.max_features;
  }
  bool is_additive() const { return !needs_medians() && rules_.target.rule != Rule::user && !surrogate_params().on; }
  bool draws_from_keys() const { return is_additive() && bins_.keys.n_columns > 0; }
  bool reads_entries() const { return is_additive() && !bins_.entries.empty(); }
  bool needs_medians() const { return rules_.target.rule == Rule::absolute_error; }

  // Nodes with at most this many rows are tasks. Blocks are limited to a few megabytes.
  std::size_t task_rows() const {
    constexpr std::size_t max_block_rows = SortedBlock::max_rows;
    if (reads_entries()) return rows_.size();
    if (draws_from_keys() && rules_.table.spill) return max_block_rows;
    if (draws_from_keys() || counts_ranks_)
      return workers_.size() == 1 ? rows_.size() : rows_.size() / (4 * workers_.size());
    if (bins_.sorts_for_one_tree && bins_.presorted.n_rows > 0)
      return std::min(max_block_rows, bins_.presorted.n_rows / Bins::least_fraction);
    if (bins_.presorted.n_rows > 0 && blocks_pay()) return max_block_rows;  // one tree per thread, and nothing to sort
    constexpr std::size_t block_bytes = std::size_t{3} << 20, min_rows = 512, n_tasks = 4;
    if (!blocks_pay()) return std::clamp(block_bytes / workers_.size() / 512, min_rows, max_block_rows);
    // larger blocks, if each worker still gets some: nodes above the blocks are more expensive to search
    const std::size_t most = block_bytes / (4 * std::max<std::size_t>(1, rules_.table.n_columns()));
    const std::size_t rows =
        std::max(most / workers_.size(), std::min(most, rows_.size() / (n_tasks * workers_.size())));
    return std::clamp(rows, min_rows, max_block_rows);
  }

  std::span<Row> rows_of(const OpenNode& node) { return std::span(rows_).subspan(node.begin, node.n()); }

  std::size_t add_linked_node(const OpenNode& node) {
    LinkedNode s;
    s.n = node.n();
    s.value.resize(rules_.target.value_width());
    s.begin = node.begin;
    s.end = node.end;
    s.summary = summarise(rules_.target, with_weight(rows_of(node)), node.stat.data(), s.value.data());
    if (rules_.bounded()) rules_.clip_value(node, s.value.data());
    linked_nodes_.push_back(std::move(s));
    return linked_nodes_.size() - 1;
  }

  // Rows of weight 0 are kept where rows are counted; they are not part of statistics.
  std::span<const Row> with_weight(std::span<const Row> rows) {
    if (surrogate_params().rows.empty()) return rows;
    weighty_.clear();
    for (const Row r : rows)
      if (rules_.target.weight_of(r) > 0) weighty_.push_back(r);
    return weighty_;
  }

  std::optional<Choice> search(OpenNode& node, std::size_t at) {
    if (!rules_.may_split(node, linked_nodes_[at].summary)) return std::nullopt;
    node.impurity = linked_nodes_[at].summary.impurity;
    if (surrogate_params().price >= 0 && !is_worth_a_split(node, linked_nodes_[at])) return std::nullopt;
    if (surrogate_params().on) {
      Ranking ranking = SurrogateSearch(workers_, rules_, bins_, interrupt_).rank(node, rows_of(node));
      if (ranking.entries.empty() || !rules_.is_enough(ranking.entries[0].choice.gain)) return std::nullopt;
      Choice choice = ranking.entries[0].choice;
      linked_nodes_[at].ranking = std::move(ranking);
      return choice;
    }
    return find_split(workers_, rules_, bins_, node, rows_of(node), interrupt_);
  }

  // Returns whether the best splits can still be worth their complexity price. From the root down, each split costs its
  // price; the node cannot gain more than its risk. The caller, who evaluates the grown tree, decides the last digits.
  bool is_worth_a_split(OpenNode& node, const LinkedNode& linked_node) const {
    const std::vector<double>& class_risk = surrogate_params().class_risk;
    double risk = linked_node.summary.impurity * linked_node.summary.weight;
    if (!class_risk.empty()) {
      risk = std::numeric_limits<double>::infinity();
      const std::size_t n = linked_node.value.size();
      for (std::size_t j = 0; j < n; ++j) {
        double of_class = 0;
        for (std::size_t i = 0; i < n; ++i) of_class += linked_node.value[i] * class_risk[i * n + j];
        risk = std::min(risk, of_class * linked_node.summary.weight);
      }
    }
    node.max_gain = std::min(node.max_gain, risk);
    return node.max_gain > surrogate_params().price * (1 - 1e-6);
  }

  // Returns whether a node is known to be a leaf where columns are sorted for the whole subtree below a node.
  bool is_leaf(const OpenNode& node) const {
    return bins_.sorts_for_one_tree && rules_.too_small(node.n(), node.depth);
  }

  // Nodes with at most n_task_rows rows are left to tasks; 0: none.
  void grow_depth_first(OpenNode root, std::size_t n_task_rows) {
    std::vector<Open> stack, tasks;
    const auto place = [&](OpenNode node) {
      const bool is_task = node.n() <= n_task_rows && !is_leaf(node);
      const std::size_t at = is_task ? linked_nodes_.size() : add_linked_node(node);
      if (is_task) linked_nodes_.emplace_back().subtree = tasks.size();
      (is_task ? tasks : stack).push_back({std::move(node), at});
      return at;
    };
    place(std::move(root));
    while (!stack.empty()) {
      Open open = std::move(stack.back());
      stack.pop_back();
      interrupt_.check();
      const std::optional<Choice> choice = search(open.node, open.at);
      if (!choice) continue;
      auto [left, right] = split(open, *choice);
      const std::size_t right_at = place(std::move(right)), left_at = place(std::move(left));
      linked_nodes_[open.at].left = left_at;
      linked_nodes_[open.at].right = right_at;
    }
    if (!tasks.empty()) run_tasks(tasks);
  }

  void run_tasks(std::vector<Open>& tasks) {
    for (const auto& worker : workers_) worker->sorter = {};  // only the top of the tree needed it
    std::vector<std::uint8_t>().swap(bins_.coarse);           // "= {}" would keep the memory
    subtrees_.resize(tasks.size());
    std::vector<std::size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return tasks[a].node.n() > tasks[b].node.n(); });
    parallel_for(tasks.size(), static_cast<int>(workers_.size()), [&](std::size_t i, int worker) {
      subtrees_[order[i]] =
          grow_task(std::move(tasks[order[i]].node), workers_.subspan(static_cast<std::size_t>(worker), 1));
    });
  }

  GrownTree grow_task(OpenNode node, Workers worker) {
    if (const std::unique_ptr<BlockColumns> columns = block_columns(*worker[0])) {
      const std::span<Row> rows = rows_of(node);
      Tree tree = subtrees_.size() == 1 ? std::move(buffers_.tree) : Tree();
      grow_block(rules_, *columns, worker[0]->tried, std::move(node), rows, tree, interrupt_);
      return GrownTree{std::move(tree), {}};
    }
    Grower inner(rules_, bins_, worker, buffers_, interrupt_);
    inner.grow_depth_first(std::move(node), 0);
    return inner.assemble();
  }

  std::unique_ptr<BlockColumns> block_columns(Worker& worker) const {
    if (reads_entries()) return worker.sparse_columns(rules_, bins_);
    if (draws_from_keys()) return worker.drawn_columns(rules_, bins_);
    if (counts_ranks_) return worker.ranked_columns(rules_, bins_);
    return blocks_pay() ? worker.sorted_columns(rules_, bins_) : nullptr;
  }

  void grow_best_first(OpenNode root) {
    struct Ready {
      Open open;
      Choice choice;
      double improvement;
      bool operator<(const Ready& other) const {  // ties: the node created first
        return improvement != other.improvement ? improvement < other.improvement : open.at > other.open.at;
      }
    };
    std::vector<Ready> heap;
    const auto push = [&](OpenNode node) {
      const std::size_t at = add_linked_node(node);
      std::optional<Choice> choice = search(node, at);
      if (choice) {
        const double improvement = rules_.improvement(choice->merit);
        heap.push_back({{std::move(node), at}, std::move(*choice), improvement});
        std::push_heap(heap.begin(), heap.end());
      }
      return at;
    };
    push(std::move(root));
    for (std::size_t n_leaves = 1; !heap.empty() && n_leaves < rules_.params.max_leaf_nodes; ++n_leaves) {
      interrupt_.check();
      std::pop_heap(heap.begin(), heap.end());
      Ready next = std::move(heap.back());
      heap.pop_back();
      auto [left, right] = split(next.open, next.choice);
      const std::size_t left_at = push(std::move(left)), right_at = push(std::move(right));
      linked_nodes_[next.open.at].left = left_at;
      linked_nodes_[next.open.at].right = right_at;
    }
  }

  // Stable partition of the node's rows; returns its children.
  std::pair<OpenNode, OpenNode> split(const Open& open, const Choice& choice) {
    if (surrogate_params().on) return split_by_surrogates(open, choice);
    const OpenNode& node = open.node;
    const std::span<Row> rows = rows_of(node);
    if (has_steps(choice.feature))
      mark_sides(rules_, bins_.tiles, choice, rows, side_);
    else
      mark_sides(rules_, choice, rows, side_, codes_);
    OpenNode left, right;
    rules_.inherit(node, choice, left, right);
    spare_.resize(rows.size());
    const std::size_t n_left = partition_rest(rows.data(), rows.size(), spare_.data(), 0, 0, 0,
                                              [&](std::size_t i, Row) { return side_[i] != 0; });
    left.begin = node.begin;
    left.end = right.begin = node.begin + n_left;
    right.end = node.end;
    OpenNode& small = left.n() < right.n() ? left : right;
    OpenNode& large = left.n() < right.n() ? right : left;
    small.stat.assign(node.stat.size(), 0);
    workers_[0]->add(rows_of(small), small.stat.data());
    large.stat = node.stat;
    for (std::size_t k = 0; k < large.stat.size(); ++k) large.stat[k] -= small.stat[k];
    if (rules_.bounded()) rules_.bound_values(node, choice, mean_of(left), mean_of(right), left, right);
    linked_nodes_[open.at].split = describe_split(rules_, choice, left.stat[0] > right.stat[0], codes_);
    return {std::move(left), std::move(right)};
  }

  bool has_steps(std::uint32_t feature) const {
    return bins_.tiles.n_rows > 0 && bins_.tiles.lane_of[feature] != CoarseTiles::none;
  }

  // The same with surrogates for rows with a missing value; some rows may stop at the node.
  std::pair<OpenNode, OpenNode> split_by_surrogates(const Open& open, const Choice& choice) {
    const OpenNode& node = open.node;
    const std::span<Row> rows = rows_of(node);
    SurrogateSearch surrogate_search(workers_, rules_, bins_, interrupt_);
    const Ranking ranking = std::move(linked_nodes_[open.at].ranking);
    const bool reversed = ranking.entries[0].reversed;
    SplitRecord record = describe(choice, rows);
    std::vector<RankedSplit> surrogates;
    if (surrogate_params().present_only) {
      surrogate_search.mark(record, rows, side_);
      surrogates = surrogate_search.surrogates(node, record, reversed, rows, side_);
      surrogate_search.place(record, surrogates, reversed, rows, side_);
    } else {
      mark_sides(rules_, choice, rows, side_, codes_);
    }
    record.ranked_splits = rank_splits(ranking, rows);
    record.ranked_splits.insert(record.ranked_splits.end(), surrogates.begin(), surrogates.end());
    OpenNode left, right;
    rules_.inherit(node, choice, left, right);
    std::array<std::vector<Row>, 3> parts;  // left, right, stays
    for (std::size_t i = 0; i < rows.size(); ++i)
      parts[side_[i] == left_side ? 0 : side_[i] == right_side ? 1 : 2].push_back(rows[i]);
    std::size_t at = node.begin;
    for (const auto& part : parts) {
      std::copy(part.begin(), part.end(), rows_.begin() + static_cast<std::ptrdiff_t>(at));
      at += part.size();
    }
    left.begin = node.begin;
    left.end = right.begin = node.begin + parts[0].size();
    right.end = right.begin + parts[1].size();
    linked_nodes_[open.at].begin = right.end;
    for (OpenNode* child : {&left, &right}) {
      if (surrogate_params().price >= 0) child->max_gain = node.max_gain - surrogate_params().price * (1 - 1e-6);
      child->stat.assign(node.stat.size(), 0);
      workers_[0]->add(with_weight(rows_of(*child)), child->stat.data());
    }
    if (!surrogate_params().present_only) place_unknown(rules_, choice, left.stat[0] > right.stat[0], record);
    if (rules_.bounded()) rules_.bound_values(node, choice, mean_of(left), mean_of(right), left, right);
    linked_nodes_[open.at].split = std::move(record);
    return {std::move(left), std::move(right)};
  }

  // The split as the tree stores it, before the side of missing values is known.
  SplitRecord describe(const Choice& choice, std::span<const Row> rows) {
    const Column& column = rules_.table.columns[choice.feature];
    codes_.clear();
    if (column.is_category()) {
      read_rows(column, rows.data(), rows.size(), [&](std::size_t i, double v) {
        if (v == v && rules_.target.weight_of(rows[i]) > 0) codes_.push_back(static_cast<std::uint32_t>(v));
      });
      std::sort(codes_.begin(), codes_.end());
      codes_.erase(std::unique(codes_.begin(), codes_.end()), codes_.end());
    }
    return describe_split(rules_, choice, true, codes_);
  }

  std::vector<RankedSplit> rank_splits(const Ranking& ranking, std::span<const Row> rows) {
    std::vector<RankedSplit> splits;
    for (const Ranking::Entry& entry : ranking.entries) {
      SplitRecord record = describe(entry.choice, rows);
      RankedSplit split;
      split.role = splits.empty() ? SplitList::primary : SplitList::competitor;
      split.feature = record.feature;
      split.is_category = record.is_category;
      split.reversed = entry.reversed;
      split.threshold = record.threshold;
      split.left_codes = std::move(record.left_codes);
      split.right_codes = std::move(record.right_codes);
      split.count = entry.count;
      split.improve = entry.choice.merit * rules_.target.weight_unit;
      splits.push_back(std::move(split));
    }
    return splits;
  }

  double mean_of(const OpenNode& node) {
    if (!needs_medians()) return static_cast<double>(node.stat[1]) / static_cast<double>(node.stat[0]);
    double median = 0;
    const std::span<const Row> rows = rows_of(node);
    summarise_median(rules_.target, rows, 0, &median);
    return (median - rules_.target.offset[0]) * rules_.target.weight_unit / rules_.target.value_unit;
  }

  GrownTree assemble() {
    if (linked_nodes_[0].subtree != SIZE_MAX) return std::move(subtrees_[0]);
    GrownTree grown;
    Tree& tree = grown.tree;
    tree.value_width = static_cast<std::uint32_t>(rules_.target.value_width());
    std::size_t n_nodes = linked_nodes_.size(), n_set_words = 0;
    for (const GrownTree& s : subtrees_) {
      n_nodes += s.tree.size();
      n_set_words += s.tree.sets.size();
    }
    tree.reserve(n_nodes, n_set_words);
    struct Step {
      std::size_t linked_node, parent;
    };
    std::vector<Step> stack{{0, SIZE_MAX}};
    while (!stack.empty()) {
      const Step step = stack.back();
      stack.pop_back();
      if (step.parent != SIZE_MAX) tree.right[step.parent] = static_cast<std::uint32_t>(tree.size());
      LinkedNode& s = linked_nodes_[step.linked_node];
      if (s.subtree != SIZE_MAX) {
        tree.append(subtrees_[s.subtree].tree);
        grown.resting.insert(grown.resting.end(), subtrees_[s.subtree].resting.begin(),
                             subtrees_[s.subtree].resting.end());
        subtrees_[s.subtree] = {};
        continue;
      }
      const std::size_t at = tree.add_leaf();
      std::copy(s.value.begin(), s.value.end(), tree.value_of(at).begin());
      tree.impurity[at] = s.summary.impurity;
      tree.weight[at] = s.summary.weight;
      tree.n_rows[at] = s.n;
      if (surrogate_params().on) {
        grown.resting.emplace_back(s.begin, s.end);
        if (s.split)
          for (const RankedSplit& w : s.split->ranked_splits) add(tree.splits, w);
        tree.splits.end_node();
      }
      if (!s.split) continue;
      write_split(tree, at, *s.split);
      stack.push_back({s.right, at});
      stack.push_back({s.left, SIZE_MAX});
    }
    return grown;
  }

  const Rules& rules_;
  Bins& bins_;
  Workers workers_;
  GrowBuffers& buffers_;
  std::vector<Row>& rows_;
  Interrupt& interrupt_;
  bool counts_ranks_ = false;
  std::vector<LinkedNode> linked_nodes_;
  std::vector<GrownTree> subtrees_;
  std::vector<std::uint8_t> side_;
  std::vector<std::uint32_t> codes_;
  std::vector<Row> spare_, weighty_;
};

}  // namespace

GrownTree grow(const Rules& rules, Bins& bins, Workers workers, GrowBuffers& buffers, Interrupt& interrupt) {
  return Grower(rules, bins, workers, buffers, interrupt).grow();
}

}  // namespace spinney
