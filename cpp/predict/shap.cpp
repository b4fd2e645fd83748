#include "predict/shap.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/pool.h"
#include "data/read.h"
#include "predict/shap_prepare.h"
#include "predict/shap_tree.h"

namespace spinney {

static constexpr std::size_t max_prepared_bytes = std::size_t{256}
                                                  << 20;  // constants of all trees; above it, computed tree by tree
static constexpr std::size_t most_tree_bytes = std::size_t{32} << 20;  // of one tree; above it, computed split by split
static constexpr std::size_t most_table_bytes = std::size_t{128} << 10;  // of one tree: the size of a cache
static constexpr std::size_t least_table_rows = 64;  // with fewer rows, they are not worth computing
static constexpr std::size_t most_block_bytes = std::size_t{4} << 20, most_block_rows = 256;

static std::vector<double> mean_prediction(const SummedTrees& trees, const Table& background) {
  const Tree& nodes = trees.nodes;
  std::vector<double> base(trees.n_outputs(), 0.0);
  for (std::size_t r = 0; r < background.n_rows; ++r)
    for (std::size_t t = 0; t < trees.n_trees(); ++t) {
      std::uint32_t at = trees.root[t];
      for (std::uint32_t from = UINT32_MAX; from != at && !nodes.is_leaf(at);) {
        from = at;
        at =
            next_node(nodes, at, [&](std::uint32_t f) { return value_at(background.columns[f], static_cast<Row>(r)); });
      }
      if (nodes.linear_leaves.has(at)) {
        base[trees.output_of(t)] += nodes.linear_leaves.at(
            at, nodes.value[at], [&](std::uint32_t f) { return value_at(background.columns[f], static_cast<Row>(r)); });
        continue;
      }
      for (std::size_t v = 0; v < nodes.value_width; ++v) base[trees.output_of(t) + v] += nodes.value_of(at)[v];
    }
  for (double& b : base) b *= trees.scale / static_cast<double>(background.n_rows);
  return base;
}

std::vector<double> shap_base_value(const SummedTrees& trees, const Table* background) {
  if (background != nullptr) return mean_prediction(trees, *background);
  const Tree& nodes = trees.nodes;
  std::vector<double> base(trees.n_outputs(), 0.0), reach(nodes.size(), 0.0);
  for (std::size_t t = 0; t < trees.n_trees(); ++t) {
    reach[trees.root[t]] = 1;
    const auto add = [&](std::size_t node, double fraction) {
      if (nodes.linear_leaves.has(node)) {
        base[trees.output_of(t)] += fraction * nodes.linear_leaves.base[node];
        return;
      }
      for (std::size_t v = 0; v < nodes.value_width; ++v)
        base[trees.output_of(t) + v] += fraction * nodes.value_of(node)[v];
    };
    for (std::size_t node = trees.root[t]; node < trees.root[t + 1]; ++node) {
      if (nodes.is_leaf(node)) {
        add(node, reach[node]);
        continue;
      }
      const NodeFractions fractions = fractions_of(nodes, node);
      reach[node + 1] = reach[node] * fractions.left;
      reach[nodes.right[node]] = reach[node] * fractions.right;
      if (fractions.stop > 0) add(node, reach[node] * fractions.stop);
    }
  }
  for (double& b : base) b *= trees.scale;
  return base;
}

void ShapScratch::fit(const ShapTree& tree, bool pairs) {
  const auto grow = [](auto& v, std::size_t n) {
    if (v.size() < n) v.resize(n);
  };
  const std::size_t levels = tree.n_levels;
  grow(down, (levels + 1) * tree.n_points);
  grow(up, levels * tree.n_points * tree.n_values);
  grow(done, tree.n_points * tree.n_values);
  grow(edge, pairs ? levels * tree.n_points : 0);
  for (auto* masks : {&left, &right, &before, &alive}) grow(*masks, levels);
  grow(constants, ShapKernels::n_constants * tree.n_points);
  grow(places, tree.tables.empty() ? 0 : levels * shap_lanes);
  grow(open, levels);
  grow(hidden, levels);
  grow(terms, tree.n_terms);
  grow(due, tree.linear.begin == nullptr ? 0 : tree.n_points);
}

namespace {

struct Explanation {
  const SummedTrees& trees;
  const Table& table;
  const Table* background;
  const ShapPreparation& prepared;
  const std::vector<ShapTree>& prepared_trees;  // empty: each block prepares the trees
  double *values, *pairs;
  std::vector<double> background_values{};  // [row][slot]

  // A block of rows: their values, the contributions of the columns so far, and walking scratch.
  struct Block {
    std::size_t n_groups;
    std::vector<ShapLanes> x, sums, pair_sums;
    std::vector<ShapSides> sides;
    ShapScratch scratch;
  };

  std::size_t n_slots() const { return prepared.used.size(); }
  std::size_t value_lanes() const { return trees.n_outputs() * n_slots(); }
  std::size_t pair_lanes() const { return pairs == nullptr ? 0 : value_lanes() * n_slots(); }

  double scale() const {
    return background == nullptr ? trees.scale : trees.scale / static_cast<double>(background->n_rows);
  }
  void read_background();
  void explain(std::size_t begin, std::size_t end, Interrupt& interrupt) const;
  void walk(const ShapTree& tree, std::size_t output, Block& block) const;
  std::vector<ShapLanes> read(std::size_t begin, std::size_t end) const;
  void find_sides(const ShapTree& tree, const ShapLanes* x, std::vector<ShapSides>& sides) const;
  void write(std::size_t row, std::size_t lane, const ShapLanes* sums, const ShapLanes* pair_sums) const;
  void write_pairs(std::size_t row, std::size_t lane, const ShapLanes* pair_sums) const;
};

// [group of rows][slot]; lanes past the last row stay 0.
std::vector<ShapLanes> Explanation::read(std::size_t begin, std::size_t end) const {
  std::vector<ShapLanes> x((end - begin + shap_lanes - 1) / shap_lanes * n_slots(), ShapLanes{});
  std::vector<Row> rows(end - begin);
  std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
  for (std::size_t s = 0; s < n_slots(); ++s)
    read_rows(table.columns[prepared.used[s]], rows.data(), rows.size(),
              [&](std::size_t i, double v) { x[i / shap_lanes * n_slots() + s].of[i % shap_lanes] = v; });
  return x;
}

void Explanation::find_sides(const ShapTree& tree, const ShapLanes* x, std::vector<ShapSides>& sides) const {
  sides.assign(tree.looked_up.size(), {0, 0});
  for (std::size_t i = 0; i < sides.size(); ++i)
    for (std::size_t lane = 0; lane < shap_lanes; ++lane) {
      const std::uint32_t at = tree.looked_up[i];
      const std::uint32_t next =
          next_node(trees.nodes, at, [&](std::uint32_t f) { return x[prepared.slot[f]].of[lane]; });
      if (next == at) continue;
      (next == at + 1 ? sides[i].left : sides[i].right) |= static_cast<std::uint8_t>(1u << lane);
    }
}

void Explanation::read_background() {
  if (background == nullptr) return;
  background_values.resize(background->n_rows * n_slots());
  std::vector<Row> rows(background->n_rows);
  std::iota(rows.begin(), rows.end(), Row{0});
  for (std::size_t s = 0; s < n_slots(); ++s)
    read_rows(background->columns[prepared.used[s]], rows.data(), rows.size(),
              [&](std::size_t i, double v) { background_values[i * n_slots() + s] = v; });
}

void Explanation::walk(const ShapTree& tree, std::size_t output, Block& block) const {
  const std::size_t first = output * n_slots();
  for (std::size_t g = 0; g < block.n_groups; ++g) {
    const ShapLanes* x = block.x.data() + g * n_slots();
    if (!tree.looked_up.empty()) find_sides(tree, x, block.sides);
    shap_kernels().explain(tree, x, block.sides.data(), n_slots(), block.scratch,
                           block.sums.data() + g * value_lanes() + first,
                           pairs == nullptr ? nullptr : block.pair_sums.data() + g * pair_lanes() + first * n_slots());
  }
}

void Explanation::explain(std::size_t begin, std::size_t end, Interrupt& interrupt) const {
  const std::size_t n_groups = (end - begin + shap_lanes - 1) / shap_lanes;
  Block block{n_groups, read(begin, end), {}, {}, {}, {}};
  block.sums.resize(n_groups * value_lanes(), ShapLanes{});
  block.pair_sums.resize(n_groups * pair_lanes(), ShapLanes{});
  ShapTree made;
  for (std::size_t t = 0; t < trees.n_trees(); ++t) {
    interrupt.check();
    if (prepared_trees.empty()) made = prepared.tree(t, most_tree_bytes, 0);
    const ShapTree& tree = prepared_trees.empty() ? made : prepared_trees[t];
    if (tree.splits.empty()) continue;
    block.scratch.fit(tree, pairs != nullptr);
    if (background == nullptr) walk(tree, trees.output_of(t), block);
    for (std::size_t b = 0; background != nullptr && b < background->n_rows; ++b) {
      interrupt.check();
      const double* row = background_values.data() + b * n_slots();
      follow_row(made, trees.nodes, [&](std::uint32_t node) {
        return next_node(trees.nodes, node, [&](std::uint32_t f) { return row[prepared.slot[f]]; });
      });
      made.linear.background = row;
      walk(made, trees.output_of(t), block);
    }
  }
  for (std::size_t r = begin; r < end; ++r) {
    const std::size_t g = (r - begin) / shap_lanes, lane = (r - begin) % shap_lanes;
    write(r, lane, block.sums.data() + g * value_lanes(), block.pair_sums.data() + g * pair_lanes());
  }
}

void Explanation::write(std::size_t row, std::size_t lane, const ShapLanes* sums, const ShapLanes* pair_sums) const {
  const std::size_t n_outputs = trees.n_outputs();
  double* to = values + row * table.n_columns() * n_outputs;
  for (std::size_t v = 0; v < n_outputs; ++v)
    for (std::size_t s = 0; s < n_slots(); ++s)
      to[prepared.used[s] * n_outputs + v] = scale() * sums[v * n_slots() + s].of[lane];
  if (pairs != nullptr) write_pairs(row, lane, pair_sums);
}

void Explanation::write_pairs(std::size_t row, std::size_t lane, const ShapLanes* pair_sums) const {
  const std::size_t n_outputs = trees.n_outputs(), n_columns = table.n_columns(), n = n_slots();
  const double* value = values + row * n_columns * n_outputs;
  double* matrix = pairs + row * n_columns * n_columns * n_outputs;
  const auto at = [&](std::size_t a, std::size_t b, std::size_t v) -> double& {
    return matrix[(prepared.used[a] * n_columns + prepared.used[b]) * n_outputs + v];
  };
  for (std::size_t v = 0; v < n_outputs; ++v) {
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b)
        at(a, b, v) = at(b, a, v) = 0.5 * scale() * pair_sums[(v * n + a) * n + b].of[lane];
    for (std::size_t a = 0; a < n; ++a) {
      double rest = value[prepared.used[a] * n_outputs + v];
      for (std::size_t b = 0; b < n; ++b)
        if (b != a) rest -= at(a, b, v);
      at(a, a, v) = rest;
    }
  }
}

}  // namespace

static std::size_t rows_per_block(const Explanation& job, int n_threads) {
  const std::size_t lanes = job.n_slots() + job.value_lanes() + job.pair_lanes();
  const std::size_t groups = most_block_bytes / std::max<std::size_t>(1, lanes * sizeof(ShapLanes));
  const std::size_t fair = job.table.n_rows / (static_cast<std::size_t>(n_threads) * 4) / shap_lanes;  // groups
  return shap_lanes * std::clamp<std::size_t>(std::min(groups, fair), 1, most_block_rows / shap_lanes);
}

void shap_values(const SummedTrees& trees, const Table& table, const Table* background, int n_threads,
                 Interrupt& interrupt, double* values, double* pairs) {
  const ShapPreparation prepared(trees);
  std::vector<ShapTree> prepared_trees;
  if (background == nullptr && prepared.constant_bytes() <= max_prepared_bytes) {
    prepared_trees.resize(trees.n_trees());
    // tables take less than three times the memory of constants
    const bool with_tables = table.n_rows >= least_table_rows && prepared.constant_bytes() <= max_prepared_bytes / 4;
    const std::size_t table_bytes = with_tables ? most_table_bytes : 0;
    const double estimated_ns = 0.5 * static_cast<double>(prepared.constant_bytes());
    parallel_for_if_worth(estimated_ns, prepared_trees.size(), n_threads, [&](std::size_t t, int) {
      prepared_trees[t] = prepared.tree(t, most_tree_bytes, table_bytes);
    });
  }
  Explanation job{trees, table, background, prepared, prepared_trees, values, pairs};
  job.read_background();
  const std::size_t step = rows_per_block(job, n_threads), n_blocks = (table.n_rows + step - 1) / step;
  const double estimated_ns = 10.0 * static_cast<double>(table.n_rows) * static_cast<double>(trees.nodes.size()) *
                              static_cast<double>(background == nullptr ? 1 : background->n_rows);
  parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
    job.explain(block * step, std::min(table.n_rows, (block + 1) * step), interrupt);
  });
}

}  // namespace spinney
