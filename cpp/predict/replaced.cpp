#include "predict/replaced.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include "base/pool.h"
#include "data/read.h"

namespace spinney {

namespace {

// Up to 64 points go down a tree together with a row: a mask marks the points at a node.
constexpr std::size_t points_at_once = 64, rows_at_once = 64, columns_copied = 512;
using PointMask = std::uint64_t;

PointMask first_points(std::size_t n) { return n == points_at_once ? ~PointMask{0} : (PointMask{1} << n) - 1; }

// Some points, as masks of those that go left at the splits on replaced columns.
class SamePoints {
 public:
  SamePoints(const SummedTrees& trees, const std::vector<std::uint8_t>& is_replaced, const Table& points,
             std::size_t begin, std::size_t end)
      : all(first_points(end - begin)), left_(trees.nodes.size(), 0) {
    std::vector<Row> rows(end - begin);
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    std::vector<double> values(points.n_columns() * points_at_once);
    for (std::size_t f = 0; f < points.n_columns(); ++f)
      if (is_replaced[f]) read_values(points.columns[f], rows.data(), rows.size(), values.data() + f * points_at_once);
    for (std::size_t i = 0; i < trees.nodes.size(); ++i) {
      if (trees.nodes.is_leaf(i) || !is_replaced[static_cast<std::size_t>(trees.nodes.feature[i])]) continue;
      const double* x = values.data() + static_cast<std::size_t>(trees.nodes.feature[i]) * points_at_once;
      for (std::size_t p = 0; p < rows.size(); ++p) left_[i] |= PointMask{goes_left(trees.nodes, i, x[p])} << p;
    }
  }
  PointMask left_at(std::size_t node, PointMask here) const { return here & left_[node]; }

  const PointMask all;

 private:
  std::vector<PointMask> left_;
};

// Adds a leaf's values to those of its points, which are usually contiguous.
void add_leaf(std::span<const double> value, PointMask points, std::size_t n_outputs, double* sums) {
  const auto first = static_cast<std::size_t>(std::countr_zero(points)),
             n = static_cast<std::size_t>(std::popcount(points));
  if (n_outputs == 1 && points >> first == first_points(n)) {
    for (std::size_t p = first; p < first + n; ++p) sums[p] += value[0];
    return;
  }
  for (; points != 0; points &= points - 1) {
    double* of_point = sums + static_cast<std::size_t>(std::countr_zero(points)) * n_outputs;
    for (std::size_t k = 0; k < value.size(); ++k) of_point[k] += value[k];
  }
}

// Walks a row down one tree for all points; where these separate, one side waits.
template <class IsReplaced, class Points, class ValueOf>
void walk_points(const Tree& nodes, std::uint32_t root, const IsReplaced& is_replaced, const Points& points,
                 ValueOf&& value_of, std::size_t n_outputs, double* sums) {
  struct Waiting {
    std::uint32_t node;
    PointMask points;
  };
  std::array<Waiting, points_at_once> waiting;
  waiting[0] = {root, points.all};
  for (std::size_t n_waiting = 1; n_waiting > 0;) {
    auto [at, here] = waiting[--n_waiting];
    while (!nodes.is_leaf(at)) {
      const auto f = static_cast<std::uint32_t>(nodes.feature[at]);
      if (!is_replaced(f)) {
        at = goes_left(nodes, at, value_of(f)) ? at + 1 : nodes.right[at];
        continue;
      }
      const PointMask left = points.left_at(at, here), right = here & ~left;
      if (left != 0 && right != 0) waiting[n_waiting++] = {nodes.right[at], right};
      here = left != 0 ? left : right;
      at = left != 0 ? at + 1 : nodes.right[at];
    }
    add_leaf(nodes.value_of(at), here, n_outputs, sums);
  }
}

// Values of a block of rows, row by row; for very wide tables each value is read on demand.
class Block {
 public:
  Block(const Table& table, std::size_t begin)
      : n(std::min(rows_at_once, table.n_rows - begin)),
        table_(table),
        n_columns_(table.n_columns()),
        begin_(begin),
        values_(n_columns_ <= columns_copied ? n * n_columns_ : 0) {
    std::array<Row, rows_at_once> rows;
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    for (std::size_t f = 0; !values_.empty() && f < n_columns_; ++f)
      read_rows(table.columns[f], rows.data(), n, [&](std::size_t i, double v) { values_[i * n_columns_ + f] = v; });
  }
  double value(std::size_t i, std::uint32_t f) const {
    return values_.empty() ? value_at(table_.columns[f], static_cast<Row>(begin_ + i)) : values_[i * n_columns_ + f];
  }

  const std::size_t n;

 private:
  const Table& table_;
  std::size_t n_columns_, begin_;
  std::vector<double> values_;
};

// The values of each draw for one row in the columns of a group.
struct OwnPoints {
  const Tree& nodes;
  const double* values;  // by column and draw
  std::size_t n_draws;
  PointMask all;

  PointMask left_at(std::size_t node, PointMask here) const {
    const double* x = values + static_cast<std::size_t>(nodes.feature[node]) * n_draws;
    PointMask left = 0;
    for (PointMask rest = here; rest != 0; rest &= rest - 1) {
      const int p = std::countr_zero(rest);
      left |= PointMask{goes_left(nodes, node, x[p])} << p;
    }
    return left;
  }
};

// The column groups tested on a row's path down a tree, each with its first node.
class GroupPath {
 public:
  explicit GroupPath(std::size_t n_groups) : first_node_(n_groups), met_(n_groups, 0) {}

  template <class ValueOf>
  std::uint32_t down(const Tree& nodes, std::uint32_t at, std::span<const std::uint32_t> group_of, ValueOf&& value_of) {
    ++walk_;
    while (!nodes.is_leaf(at)) {
      const auto f = static_cast<std::uint32_t>(nodes.feature[at]);
      const std::uint32_t group = group_of[f];
      if (group != no_group && met_[group] != walk_) {
        met_[group] = walk_;
        first_node_[group] = at;
      }
      at = goes_left(nodes, at, value_of(f)) ? at + 1 : nodes.right[at];
    }
    return at;
  }
  bool is_tested(std::size_t group) const { return met_[group] == walk_; }
  std::uint32_t first_node(std::size_t group) const { return first_node_[group]; }

 private:
  std::vector<std::uint32_t> first_node_;
  std::vector<std::uint64_t> met_;  // number of the walk that tested the group last
  std::uint64_t walk_ = 0;
};

}  // namespace

void sum_replaced(const SummedTrees& trees, const Table& table, const Table& points,
                  std::span<const std::uint32_t> columns, int n_threads, Interrupt& interrupt, double* sums) {
  const std::size_t n_outputs = trees.n_outputs();
  std::vector<std::uint8_t> is_replaced(table.n_columns(), 0);
  for (const std::uint32_t f : columns) is_replaced[f] = 1;
  const auto replaced = [&](std::uint32_t f) { return is_replaced[f] != 0; };
  for (std::size_t first = 0; first < points.n_rows; first += points_at_once) {
    const std::size_t last = std::min(points.n_rows, first + points_at_once);
    const SamePoints some(trees, is_replaced, points, first, last);
    const std::size_t n_blocks = (table.n_rows + rows_at_once - 1) / rows_at_once;
    const double estimated_ns = 60.0 * static_cast<double>(table.n_rows) * static_cast<double>(trees.n_trees());
    parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
      interrupt.check();
      const std::size_t begin = block * rows_at_once;
      const Block rows(table, begin);
      for (std::size_t t = 0; t < trees.n_trees(); ++t)
        for (std::size_t i = 0; i < rows.n; ++i) {
          double* of_row = sums + ((begin + i) * points.n_rows + first) * n_outputs + trees.output_of(t);
          const auto value_of = [&](std::uint32_t f) { return rows.value(i, f); };
          walk_points(trees.nodes, trees.root[t], replaced, some, value_of, n_outputs, of_row);
        }
    });
  }
}

void sum_exchanged(const SummedTrees& trees, const Table& table, const Exchange& exchange, int n_threads,
                   Interrupt& interrupt, double* sums) {
  const std::size_t n_outputs = trees.n_outputs(), n_draws = exchange.n_draws, n_columns = table.n_columns();
  const std::size_t of_group = n_draws * n_outputs, of_row = exchange.n_groups * of_group;
  const std::size_t n_blocks = (table.n_rows + rows_at_once - 1) / rows_at_once;
  const double estimated_ns = 100.0 * static_cast<double>(table.n_rows) * static_cast<double>(trees.n_trees());
  parallel_for_if_worth(estimated_ns, n_blocks, n_threads, [&](std::size_t block, int) {
    interrupt.check();
    const std::size_t begin = block * rows_at_once;
    const Block rows(table, begin);
    std::vector<double> drawn(rows.n * n_columns * n_draws);  // by row, column and draw
    for (std::size_t f = 0; f < n_columns; ++f)
      for (std::size_t p = 0; exchange.group_of[f] != no_group && p < n_draws; ++p)
        read_rows(table.columns[f], exchange.others.data() + p * table.n_rows + begin, rows.n,
                  [&](std::size_t i, double v) { drawn[(i * n_columns + f) * n_draws + p] = v; });
    GroupPath group_path(exchange.n_groups);
    for (std::size_t t = 0; t < trees.n_trees(); ++t)
      for (std::size_t i = 0; i < rows.n; ++i) {
        const auto value_of = [&](std::uint32_t f) { return rows.value(i, f); };
        const OwnPoints own{trees.nodes, drawn.data() + i * n_columns * n_draws, n_draws, first_points(n_draws)};
        const std::uint32_t leaf = group_path.down(trees.nodes, trees.root[t], exchange.group_of, value_of);
        const std::span<const double> value = trees.nodes.value_of(leaf);
        double* sum = sums + (begin + i) * of_row + trees.output_of(t);
        for (std::size_t g = 0; g < exchange.n_groups; ++g, sum += of_group) {
          if (!group_path.is_tested(g)) {
            add_leaf(value, own.all, n_outputs, sum);
            continue;
          }
          const auto is_replaced = [&](std::uint32_t f) { return exchange.group_of[f] == g; };
          walk_points(trees.nodes, group_path.first_node(g), is_replaced, own, value_of, n_outputs, sum);
        }
      }
  });
}

}  // namespace spinney
