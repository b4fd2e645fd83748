#include "predict/importance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/pool.h"
#include "base/random.h"
#include "data/read.h"
#include "predict/compact.h"

namespace spinney {

namespace {

// A row (by its position among a tree's out-of-bag rows) and the first node on its path that tests a column.
struct Visit {
  std::uint32_t place, node;
};

// The out-of-bag rows of one tree, with the values of the tree's columns. Scratch of one thread.
class TreeRows {
 public:
  TreeRows(const Forest& forest, const EvaluationRows& evaluated)
      : forest_(forest), evaluated_(evaluated), slot_(evaluated.table.n_columns(), unused) {}

  static constexpr std::uint32_t unused = UINT32_MAX;
  std::vector<Row> rows;
  std::vector<std::uint32_t> leaf;  // by position

  std::uint32_t slot(std::uint32_t column) const { return slot_[column]; }
  const std::vector<Visit>& visits(std::uint32_t slot) const { return visits_[slot]; }

  void enter(std::uint32_t tree) {
    counts_.resize(evaluated_.table.n_rows);
    draw_counts(evaluated_.sampling, tree, units_, counts_);
    rows.clear();
    for (Row r = 0; r < evaluated_.table.n_rows; ++r)
      if (counts_[r] == 0 && evaluated_.weight_of(r) > 0) rows.push_back(r);
    root_ = forest_.root[tree];
    copy_nodes(forest_.root[tree + 1]);
    read_values();
  }

  // Finds every row's leaf; with `keep_visits`, also where each column is first tested.
  template <bool keep_visits>
  void walk() {
    if (visits_.size() < width_) visits_.resize(width_);
    for (std::size_t s = 0; s < width_; ++s) visits_[s].clear();
    leaf.resize(rows.size());
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      std::uint32_t at = root_;
      for (const TreeNode* node = &nodes_[0]; node->left_step; node = &nodes_[at - root_]) {
        auto& seen = visits_[node->slot];
        if (keep_visits && (seen.empty() || seen.back().place != i)) seen.push_back({i, at});
        at = step<true>(forest_.nodes, *node, at, values_[node->slot * rows.size() + i]);
      }
      leaf[i] = at;
    }
  }

  // The leaves of rows that continue from their visits with the columns marked in `swapped` (by slot) taken from other
  // rows. Several rows at a time, so that memory latencies overlap.
  void walk_swapped(std::span<const Visit> visits, const std::vector<std::uint32_t>& other,
                    const std::vector<std::uint8_t>& swapped, std::uint32_t* found) const {
    if (has_categories_)
      walk_swapped_as<true>(visits, other, swapped, found);
    else
      walk_swapped_as<false>(visits, other, swapped, found);
  }

  std::size_t width() const { return width_; }

 private:
  static constexpr std::size_t lanes = 8;
  struct TreeNode {  // like a CompactNode, but with the columns of one tree
    double threshold;
    std::uint32_t right, slot;
    std::uint8_t left_step, flags;
  };

  template <bool categories>
  void walk_swapped_as(std::span<const Visit> visits, const std::vector<std::uint32_t>& other,
                       const std::vector<std::uint8_t>& swapped, std::uint32_t* found) const {
    for (std::size_t begin = 0; begin < visits.size(); begin += lanes) {
      const std::size_t n = std::min(lanes, visits.size() - begin);
      std::array<std::uint32_t, lanes> at;
      std::array<std::array<std::uint32_t, 2>, lanes>
          place;  // the row's position, and that of the row its values come from
      for (std::size_t k = 0; k < lanes; ++k) {
        const Visit& visit = visits[begin + std::min(k, n - 1)];
        at[k] = visit.node;
        place[k] = {visit.place, other[visit.place]};
      }
      bool moving = true;
      while (moving) {
        moving = false;
        for (std::size_t k = 0; k < lanes; ++k) {
          const TreeNode& node = nodes_[at[k] - root_];
          const double x = values_[node.slot * rows.size() + place[k][swapped[node.slot]]];
          const std::uint32_t next = step<categories>(forest_.nodes, node, at[k], x);
          moving |= next != at[k];
          at[k] = next;
        }
      }
      std::copy_n(at.begin(), n, found + begin);
    }
  }

  void copy_nodes(std::uint32_t end) {
    const Tree& all = forest_.nodes;
    for (const std::uint32_t f : used_) slot_[f] = unused;
    used_.clear();
    nodes_.resize(end - root_);
    has_categories_ = false;
    for (std::uint32_t i = root_; i < end; ++i) {
      if (all.is_leaf(i)) {
        nodes_[i - root_] = {0.0, i, 0, 0, 0};
        continue;
      }
      const auto f = static_cast<std::uint32_t>(all.feature[i]);
      if (slot_[f] == unused) {
        slot_[f] = static_cast<std::uint32_t>(used_.size());
        used_.push_back(f);
      }
      nodes_[i - root_] = {all.threshold[i], all.right[i], slot_[f], 1, all.flags[i]};
      has_categories_ = has_categories_ || (all.flags[i] & Tree::category);
    }
  }

  void read_values() {
    width_ = used_.size();
    values_.resize(rows.size() * width_);
    for (std::size_t s = 0; s < width_; ++s)
      spinney::read_values(evaluated_.table.columns[used_[s]], rows.data(), rows.size(),
                           values_.data() + s * rows.size());
  }

  const Forest& forest_;
  const EvaluationRows& evaluated_;
  std::vector<std::uint32_t> slot_;  // by column
  std::vector<std::uint32_t> used_;  // column by slot
  std::uint32_t root_ = 0;
  std::vector<TreeNode> nodes_;
  bool has_categories_ = false;
  std::size_t width_ = 0;
  std::vector<double> values_;              // by slot and position: rows are in order, so neighbours share cache lines
  std::vector<std::vector<Visit>> visits_;  // by slot, positions ascending
  std::vector<std::uint32_t> units_, counts_;
};

double class_loss(LeafLoss loss, std::span<const double> proba, std::size_t actual) {
  double squares = 0, largest = 0;
  for (std::size_t k = 0; k < proba.size(); ++k) {
    const double off = proba[k] - (k == actual ? 1.0 : 0.0);
    squares += off * off;
    if (k != actual) largest = std::max(largest, proba[k]);
  }
  return loss == LeafLoss::squared_proba ? squares : largest - proba[actual];
}

double loss_at(const Forest& forest, const EvaluationRows& evaluated, const PermutationRequest& request,
               std::uint32_t node, Row r) {
  const std::span<const double> value = forest.nodes.value_of(node);
  double total = 0;
  for (std::size_t k = 0; k < evaluated.n_outputs; ++k) {
    const std::size_t at = r * evaluated.n_outputs + k;
    if (request.loss == LeafLoss::wrong_class) {
      total += request.node_class[node * evaluated.n_outputs + k] != evaluated.codes[at];
    } else if (evaluated.codes != nullptr) {
      const std::size_t begin = evaluated.first_class[k], end = evaluated.first_class[k + 1];
      total +=
          class_loss(request.loss, value.subspan(begin, end - begin), static_cast<std::size_t>(evaluated.codes[at]));
    } else {
      const double off = value[k] - evaluated.numbers[at];
      const double loss = request.loss == LeafLoss::squared_error ? off * off : std::abs(off);
      total += request.output_scale.empty() ? loss : loss * request.output_scale[k];
    }
  }
  return total / static_cast<double>(evaluated.n_outputs);
}

// The contribution of one tree to single rows.
struct RowRises {
  struct Rise {
    Row row;
    std::uint32_t group;
    double rise;
  };
  std::vector<Row> rows;  // all out-of-bag rows of the tree
  std::vector<Rise> rises;
};

class Permuter {
 public:
  Permuter(const Forest& forest, const EvaluationRows& evaluated, const PermutationRequest& request)
      : forest_(forest), evaluated_(evaluated), request_(request), tree_rows_(forest, evaluated) {}

  // Computes the tree's loss and its increases by group, and those of rows on request.
  void evaluate(std::uint32_t tree, double& loss, double* rise, RowRises& by_row, Interrupt& interrupt) {
    tree_rows_.enter(tree);
    tree_rows_.walk<true>();
    const std::vector<Row>& rows = tree_rows_.rows;
    by_row.rises.clear();
    by_row.rows.clear();
    if (request_.by_row) by_row.rows = rows;
    loss_.resize(rows.size());
    double total = 0, weight = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      loss_[i] = loss_at(forest_, evaluated_, request_, tree_rows_.leaf[i], rows[i]);
      total += evaluated_.weight_of(rows[i]) * loss_[i];
      weight += evaluated_.weight_of(rows[i]);
    }
    const double missing = std::numeric_limits<double>::quiet_NaN();
    loss = rows.empty() ? missing : total / weight;
    const std::uint64_t key = derive(derive(request_.seed, 103), tree);
    for (std::uint32_t g = 0; g < request_.groups.size(); ++g)
      rise[g] = rows.empty() ? missing : permute(g, derive(key, request_.groups[g][0]), by_row, interrupt) / weight;
  }

 private:
  // The sum of the weighted loss increases of a group, averaged over the repeats.
  double permute(std::uint32_t g, std::uint64_t key, RowRises& by_row, Interrupt& interrupt) {
    find_visits(request_.groups[g]);
    if (visits_.empty()) return 0;
    row_rise_.assign(visits_.size(), 0.0);
    new_leaf_.resize(visits_.size());
    for (std::uint32_t repeat = 0; repeat < request_.n_repeats; ++repeat) {
      interrupt.check();
      shuffle(RandomStream(derive(key, repeat)));
      tree_rows_.walk_swapped(visits_, other_, swapped_, new_leaf_.data());
      for (std::size_t v = 0; v < visits_.size(); ++v) {
        const std::uint32_t i = visits_[v].place;
        if (new_leaf_[v] != tree_rows_.leaf[i])
          row_rise_[v] += loss_at(forest_, evaluated_, request_, new_leaf_[v], tree_rows_.rows[i]) - loss_[i];
      }
    }
    double total = 0;
    for (std::size_t v = 0; v < visits_.size(); ++v) {
      const Row r = tree_rows_.rows[visits_[v].place];
      const double rise = row_rise_[v] / request_.n_repeats;
      total += evaluated_.weight_of(r) * rise;
      if (request_.by_row && rise != 0) by_row.rises.push_back({r, g, rise});
    }
    return total;
  }

  // The rows whose path tests a column of the group, with the first such node; marks the group's slots.
  void find_visits(const std::vector<std::uint32_t>& group) {
    visits_.clear();
    swapped_.assign(tree_rows_.width(), 0);
    for (const std::uint32_t f : group) {
      const std::uint32_t s = tree_rows_.slot(f);
      if (s == TreeRows::unused) continue;
      swapped_[s] = 1;
      const std::vector<Visit>& more = tree_rows_.visits(s);
      visits_.insert(visits_.end(), more.begin(), more.end());
    }
    if (group.size() == 1) return;
    std::sort(visits_.begin(), visits_.end(), [](const Visit& a, const Visit& b) {
      return std::pair(a.place, a.node) < std::pair(b.place, b.node);  // on one path, the upper node comes first
    });
    const auto end =
        std::unique(visits_.begin(), visits_.end(), [](const Visit& a, const Visit& b) { return a.place == b.place; });
    visits_.erase(end, visits_.end());
  }

  void shuffle(RandomStream random) {
    other_.resize(tree_rows_.rows.size());
    std::iota(other_.begin(), other_.end(), std::uint32_t{0});
    for (std::size_t i = 0; i + 1 < other_.size(); ++i)
      std::swap(other_[i], other_[i + random.below(other_.size() - i)]);
  }

  const Forest& forest_;
  const EvaluationRows& evaluated_;
  const PermutationRequest& request_;
  TreeRows tree_rows_;
  std::vector<double> loss_;           // by place
  std::vector<std::uint32_t> other_;   // by position: the row whose values it takes
  std::vector<std::uint8_t> swapped_;  // by slot
  std::vector<Visit> visits_;
  std::vector<double> row_rise_;         // by visit
  std::vector<std::uint32_t> new_leaf_;  // by visit
};

}  // namespace

NodeSums out_of_bag_sums(const Forest& forest, const EvaluationRows& evaluated, int n_threads, Interrupt& interrupt) {
  const std::size_t width = evaluated.target_width();
  NodeSums sums{std::vector<double>(forest.nodes.size(), 0.0), std::vector<double>(forest.nodes.size() * width, 0.0)};
  std::vector<TreeRows> scratch(static_cast<std::size_t>(n_threads), TreeRows(forest, evaluated));
  parallel_for(forest.n_trees(), n_threads, [&](std::size_t t, int worker) {
    interrupt.check();
    TreeRows& tree_rows = scratch[static_cast<std::size_t>(worker)];
    tree_rows.enter(static_cast<std::uint32_t>(t));
    tree_rows.walk<false>();
    for (std::size_t i = 0; i < tree_rows.rows.size(); ++i) {
      const Row r = tree_rows.rows[i];
      const double weight = evaluated.weight_of(r);
      double* sum = sums.sum.data() + tree_rows.leaf[i] * width;
      sums.weight[tree_rows.leaf[i]] += weight;
      for (std::size_t k = 0; k < evaluated.n_outputs; ++k) {
        const std::size_t at = r * evaluated.n_outputs + k;
        if (evaluated.codes != nullptr)
          sum[evaluated.first_class[k] + static_cast<std::uint32_t>(evaluated.codes[at])] += weight;
        else
          sum[k] += weight * evaluated.numbers[at];
      }
    }
    for (std::uint32_t node = forest.root[t + 1]; node-- > forest.root[t];) {  // children come after their parent
      if (forest.nodes.is_leaf(node)) continue;
      const std::uint32_t left = node + 1, right = forest.nodes.right[node];
      sums.weight[node] = sums.weight[left] + sums.weight[right];
      for (std::size_t k = 0; k < width; ++k)
        sums.sum[node * width + k] = sums.sum[left * width + k] + sums.sum[right * width + k];
    }
  });
  return sums;
}

PermutationRises permutation_increases(const Forest& forest, const EvaluationRows& evaluated,
                                       const PermutationRequest& request, int n_threads, Interrupt& interrupt) {
  const std::size_t n_trees = forest.n_trees(), n_groups = request.groups.size(), n_rows = evaluated.table.n_rows;
  PermutationRises found;
  found.loss.resize(n_trees);
  found.rise.resize(n_trees * n_groups);
  if (request.by_row) {
    found.row_rise.assign(n_rows * n_groups, 0.0);
    found.row_trees.assign(n_rows, 0);
  }
  std::vector<Permuter> permuters(static_cast<std::size_t>(n_threads), Permuter(forest, evaluated, request));
  // Rows are summed tree by tree, so the sums do not depend on the number of threads.
  const std::size_t batch = request.by_row ? 4 * static_cast<std::size_t>(n_threads) : n_trees;
  std::vector<RowRises> by_row(std::min(batch, n_trees));
  for (std::size_t first = 0; first < n_trees; first += batch) {
    const std::size_t n = std::min(batch, n_trees - first);
    parallel_for(n, n_threads, [&](std::size_t i, int worker) {
      const std::size_t t = first + i;
      permuters[static_cast<std::size_t>(worker)].evaluate(static_cast<std::uint32_t>(t), found.loss[t],
                                                           found.rise.data() + t * n_groups, by_row[i], interrupt);
    });
    for (std::size_t i = 0; i < n; ++i) {
      for (const Row r : by_row[i].rows) ++found.row_trees[r];
      for (const auto& [row, group, rise] : by_row[i].rises) found.row_rise[row * n_groups + group] += rise;
    }
  }
  return found;
}

}  // namespace spinney
