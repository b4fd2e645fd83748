#include "learn/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/draw.h"
#include "base/pool.h"
#include "base/random.h"
#include "cells/class_counts.h"
#include "learn/grow_tree.h"
#include "tree/shrink.h"

namespace spinney {

Bins make_bins(const Table& table, const std::vector<Row>& rows, const double* weight, std::uint32_t max_bins,
               int n_threads, Interrupt& interrupt) {
  Bins bins;
  bins.columns.resize(table.n_columns());
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  const double estimated_ns = 20.0 * static_cast<double>(table.n_columns()) * static_cast<double>(rows.size());
  constexpr std::size_t sorted_bytes = 32;  // per sorted row
  const std::size_t n_sorted = table.spill ? table.spill->budget() / sorted_bytes / sorters.size() : 0;
  parallel_for_if_worth(estimated_ns, table.n_columns(), n_threads, [&](std::size_t f, int worker) {
    interrupt.check();
    const Column& column = table.columns[f];
    ColumnSorter& sorter = sorters[static_cast<std::size_t>(worker)];
    if (column.is_category()) return;
    bins.columns[f] =
        table.spill ? bin_spilled_column(column, table.n_rows, rows, weight, max_bins, n_sorted, table.spill, sorter)
                    : bin_column(column, table.n_rows, rows, weight, max_bins, sorter);
  });
  return bins;
}

Presorted presort_columns(const Table& table, const Bins& bins, int n_threads, Interrupt& interrupt) {
  constexpr std::size_t most_entries = std::size_t{1} << 26, most_rows = Presorted::new_value;
  Presorted found;
  if (table.n_rows >= most_rows || table.n_rows > most_entries / std::max<std::size_t>(1, table.n_columns()))
    return found;
  std::vector<Row> rows(table.n_rows);
  std::iota(rows.begin(), rows.end(), Row{0});
  found.entries.resize(table.n_rows * table.n_columns());
  found.n_present.resize(table.n_columns());
  found.n_rows = table.n_rows;
  std::vector<ColumnSorter> sorters(static_cast<std::size_t>(n_threads));
  parallel_for(table.n_columns(), n_threads, [&](std::size_t f, int worker) {
    interrupt.check();
    ColumnSorter& sorter = sorters[static_cast<std::size_t>(worker)];
    found.fill(f, sort_rows(sorter, table, bins, static_cast<std::uint32_t>(f), rows, false));
  });
  return found;
}

namespace {

// Scratch of one thread.
struct Sample {
  std::vector<std::uint32_t> units, counts;
  std::vector<double> weight;
};

// Weights the rows of a sample so that the classes present have equal total weight, for each output.
void balance(const ForestParams& params, Sample& sample) {
  const std::size_t n_outputs = params.n_balanced.size(), n_rows = sample.counts.size();
  for (std::size_t k = 0; k < n_outputs; ++k) {
    const auto code_of = [&](std::size_t r) { return static_cast<std::size_t>(params.balanced[r * n_outputs + k]); };
    std::vector<double> factor(params.n_balanced[k], 0.0);
    double total = 0;
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double amount = params.balance_weight == nullptr ? 1.0 : params.balance_weight[r];
      factor[code_of(r)] += sample.counts[r] * amount;
      total += sample.counts[r] * amount;
    }
    const auto n_present =
        static_cast<double>(factor.size()) - static_cast<double>(std::count(factor.begin(), factor.end(), 0.0));
    for (double& f : factor) f = f > 0 ? total / (n_present * f) : 1.0;
    for (std::size_t r = 0; r < n_rows; ++r) sample.weight[r] *= factor[code_of(r)];
  }
}

// The weight of each row in a sample: the number of times it was drawn, times its weight and that of its class.
void weight_rows(const double* weight, const ForestParams& params, Sample& sample) {
  if (weight == nullptr && params.balanced == nullptr) {
    std::copy(sample.counts.begin(), sample.counts.end(), sample.weight.begin());
    return;
  }
  const std::size_t n_rows = sample.counts.size();
  for (std::size_t r = 0; r < n_rows; ++r) sample.weight[r] = weight == nullptr ? 1.0 : weight[r];
  if (params.balanced != nullptr) balance(params, sample);
  for (std::size_t r = 0; r < n_rows; ++r) sample.weight[r] *= sample.counts[r];
}

// The columns a tree may use: those that are always tried, and n_drawn of the others.
std::vector<std::uint32_t> draw_columns(const GrowParams& params, std::size_t n_columns, std::size_t n_drawn,
                                        std::uint64_t key) {
  std::vector<std::uint32_t> columns = params.columns;
  if (columns.empty()) {
    columns.resize(n_columns);
    std::iota(columns.begin(), columns.end(), std::uint32_t{0});
  }
  const auto& always = params.always_try;
  std::erase_if(columns, [&](std::uint32_t f) { return std::binary_search(always.begin(), always.end(), f); });
  n_drawn = std::min(n_drawn, columns.size());
  shuffle_columns(columns, n_drawn, params.feature_weights, RandomStream(derive(key, 4)));
  columns.resize(n_drawn);
  columns.insert(columns.end(), always.begin(), always.end());
  std::sort(columns.begin(), columns.end());
  return columns;
}

// The keys of a dense table are seldom more than a few times the table; those of a sparse one may be.
bool keys_pay(const Table& table) {
  constexpr std::size_t most_entries = std::size_t{1} << 26;
  const bool sparse = std::any_of(table.columns.begin(), table.columns.end(), [](auto& c) { return c.is_sparse(); });
  return !sparse || table.n_rows <= most_entries / std::max<std::size_t>(1, table.n_columns());
}

// Nodes that try few of many columns count their ranks instead of keeping all columns sorted.
bool ranks_pay(const Table& table, const TargetInput& input, Rule rule, const ForestParams& params) {
  constexpr std::size_t most_ranks = std::size_t{1} << 27, most_read = std::size_t{1} << 25, least_idle = 2;
  if (!is_class_rule(rule) || input.n_outputs != 1 || input.n_classes[0] <= 2) return false;
  if (input.n_classes[0] > ClassCounts::most_classes || params.balanced != nullptr) return false;
  if (params.tree.max_leaf_nodes > 0 || params.tree.max_features > table.n_columns() / least_idle) return false;
  if (table.n_rows > most_ranks / table.n_columns()) return false;
  if (table.n_rows > most_read / params.tree.max_features) return false;
  const bool whole = input.weight == nullptr || std::all_of(input.weight, input.weight + table.n_rows,
                                                            [](double w) { return w == std::floor(w) && w <= 0xffff; });
  return whole && std::none_of(table.columns.begin(), table.columns.end(), [](auto& c) { return c.is_category(); });
}

// Presorted columns, if the trees would sort them repeatedly and there is enough memory.
void presort(const Table& table, const TargetInput& input, Rule rule, Bins& bins, const ForestParams& params,
             Interrupt& interrupt) {
  if (params.max_bins == 0) bins.entries = find_entries(table, rule, params.tree, interrupt);
  if (!bins.entries.empty()) return;
  if (params.tree.random_cuts) {
    if (keys_pay(table)) bins.keys = make_row_keys(table, params.tree.n_threads, interrupt);
    return;
  }
  if (table.spill) return;
  if (ranks_pay(table, input, rule, params)) {
    const std::uint32_t most_values = ClassCounts::most_values(input.n_classes[0]);
    bins.ranks = make_row_ranks(table, bins.columns, most_values, params.tree.n_threads, interrupt);
    if (bins.ranks.row_bytes > 0) return;
  }
  if (params.n_trees >= 3) bins.presorted = presort_columns(table, bins, params.tree.n_threads, interrupt);
}

std::vector<BufferedTree> grow_trees(const Table& table, const TargetInput& input, Rule rule,
                                     const ForestParams& params, Interrupt& interrupt) {
  const int n_threads = params.tree.n_threads;
  Bins bins;
  if (params.max_bins > 0) {
    const Target all(input, rule);
    bins = make_bins(table, all.rows, all.input.weight, params.max_bins, n_threads, interrupt);
  }
  presort(table, input, rule, bins, params, interrupt);
  // A table in files has many rows: trees are grown one at a time by all threads, so that memory does not grow with
  // their number.
  const auto n_at_once = table.spill ? std::size_t{1} : static_cast<std::size_t>(n_threads);
  std::vector<BufferedTree> trees(params.n_trees);
  std::vector<Sample> samples(n_at_once);
  std::vector<GrowBuffers> buffers(n_at_once);
  std::vector<TreeBuffer> buffers_by_worker(n_at_once);
  const auto grow_one = [&](std::size_t i, int worker) {
    interrupt.check();
    const auto t = params.first_tree + static_cast<std::uint32_t>(i);
    GrowParams tree_params = params.tree;
    tree_params.n_threads = table.spill ? n_threads : 1;
    tree_params.seed = tree_key(params.tree.seed, t);
    if (params.max_features_per_tree < table.n_columns()) {
      tree_params.columns =
          draw_columns(params.tree, table.n_columns(), params.max_features_per_tree, tree_params.seed);
      tree_params.max_features = std::min(tree_params.max_features, params.max_features_per_tree);
    }
    TargetInput tree_input = input;
    Sample& sample = samples[static_cast<std::size_t>(worker)];
    if (params.samples) {
      sample.counts.resize(table.n_rows);
      sample.weight.resize(table.n_rows);
      draw_counts(params.sampling, t, sample.units, sample.counts);
      weight_rows(input.weight, params, sample);
      tree_input.weight = sample.weight.data();
    }
    Target target(tree_input, rule);
    if (target.rows.empty()) throw std::invalid_argument("The sample of a tree has no row of positive weight.");
    GrowBuffers& buffer = buffers[static_cast<std::size_t>(worker)];
    GrownTree grown = grow_tree(table, target, tree_params, bins, buffer, interrupt);
    if (params.shrinkage > 0) shrink(grown.tree, params.shrinkage);
    trees[i] = buffers_by_worker[static_cast<std::size_t>(worker)].add(grown.tree);
    buffer.tree = std::move(grown.tree);
  };
  if (table.spill)
    for (std::size_t i = 0; i < params.n_trees; ++i) grow_one(i, 0);
  else
    parallel_for(params.n_trees, n_threads, grow_one);
  return trees;
}

}  // namespace

Forest grow_forest(const Table& table, const TargetInput& input, Rule rule, const ForestParams& params,
                   Interrupt& interrupt) {
  return Forest::join(grow_trees(table, input, rule, params, interrupt), params.tree.n_threads);
}

}  // namespace spinney
