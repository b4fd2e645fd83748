// Predictions of trees for rows with some columns replaced.
#include "predict/replaced.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "additive_handle.h"
#include "arrays.h"
#include "base/threads.h"
#include "forest_handle.h"
#include "growth_options.h"
#include "interrupt.h"
#include "module.h"
#include "table.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

using Columns = std::vector<std::uint32_t>;
using Groups = std::vector<Columns>;
using Numbers2 = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

static void check(const SummedTrees& trees, const std::vector<std::uint32_t>& n_categories, const TableHandle& table,
                  const TableHandle& points, const Columns& columns) {
  if (categories_of(table.table) != n_categories || categories_of(points.table) != n_categories)
    throw nb::value_error("The table does not match the columns of the trees.");
  if (!trees.nodes.splits.empty()) throw nb::value_error("The trees must not have surrogates.");
  if (!trees.nodes.linear_leaves.empty()) throw nb::value_error("The trees must not have linear leaves.");
  if (trees.turns > 1 && trees.nodes.value_width != 1)
    throw nb::value_error("Trees with several outputs in turn must have one value per leaf.");
  for (const std::uint32_t f : columns)
    if (f >= n_categories.size()) throw nb::index_error("There is no such column.");
}

// Rows of points by outputs: those of the first row, then of the second …
static Doubles2Out replaced(const SummedTrees& trees, const std::vector<std::uint32_t>& n_categories,
                            const TableHandle& table, const TableHandle& points, const Columns& columns, int n_jobs) {
  check(trees, n_categories, table, points, columns);
  std::vector<double> sums(table.table.n_rows * points.table.n_rows * trees.n_outputs(), 0.0);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    sum_replaced(trees, table.table, points.table, columns, n_threads, interrupt, sums.data());
    return 0;
  });
  return own_rows(std::move(sums), trees.n_outputs());
}

static Doubles2Out replaced_in_tree(const TreeHandle& self, const TableHandle& table, const TableHandle& points,
                                    const Columns& columns, int n_jobs) {
  const std::uint32_t root[] = {0, static_cast<std::uint32_t>(self.tree.size())};
  return replaced({self.tree, root, 1.0, 1}, self.n_categories, table, points, columns, n_jobs);
}

static Doubles2Out replaced_in_forest(const ForestHandle& self, const TableHandle& table, const TableHandle& points,
                                      const Columns& columns, int n_jobs) {
  return replaced({self.forest.nodes, self.forest.root, 1.0, 1}, self.n_categories, table, points, columns, n_jobs);
}

// Rows by group and draw, by outputs: those of the first row, then of the second …
static Doubles2Out exchanged(const SummedTrees& trees, const std::vector<std::uint32_t>& n_categories,
                             const TableHandle& table, const Numbers2& others, const Groups& groups, int n_jobs) {
  check(trees, n_categories, table, table, {});
  const std::span<const Row> rows(others.data(), others.size());
  if (others.shape(1) != table.table.n_rows) throw nb::value_error("others and table have different numbers of rows.");
  if (others.shape(0) > 64) throw nb::value_error("There are more than 64 draws.");
  for (const Row row : rows)
    if (row >= table.table.n_rows) throw nb::index_error("There is no such row.");
  std::vector<std::uint32_t> group_of(n_categories.size(), no_group);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t f : groups[g]) {
      if (f >= group_of.size()) throw nb::index_error("There is no such column.");
      if (group_of[f] != no_group) throw nb::value_error("A column is in two groups.");
      group_of[f] = static_cast<std::uint32_t>(g);
    }
  std::vector<double> sums(rows.size() * groups.size() * trees.n_outputs(), 0.0);
  const Exchange exchange{rows, others.shape(0), group_of, groups.size()};
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    sum_exchanged(trees, table.table, exchange, n_threads, interrupt, sums.data());
    return 0;
  });
  return own_rows(std::move(sums), trees.n_outputs());
}

static Doubles2Out exchanged_in_tree(const TreeHandle& self, const TableHandle& table, const Numbers2& others,
                                     const Groups& groups, int n_jobs) {
  const std::uint32_t root[] = {0, static_cast<std::uint32_t>(self.tree.size())};
  return exchanged({self.tree, root, 1.0, 1}, self.n_categories, table, others, groups, n_jobs);
}

static Doubles2Out exchanged_in_forest(const ForestHandle& self, const TableHandle& table, const Numbers2& others,
                                       const Groups& groups, int n_jobs) {
  return exchanged({self.forest.nodes, self.forest.root, 1.0, 1}, self.n_categories, table, others, groups, n_jobs);
}

static Doubles2Out exchanged_in_additive(const AdditiveHandle& self, const TableHandle& table, const Numbers2& others,
                                         const Groups& groups, int n_jobs) {
  const Forest& forest = self.additive.forest();
  return exchanged({forest.nodes, forest.root, 1.0, self.additive.n_outputs()}, self.n_categories, table, others,
                   groups, n_jobs);
}

static nb::object replaced_in_additive(const AdditiveHandle& self, const TableHandle& table, const TableHandle& points,
                                       const Columns& columns, int n_jobs) {
  const Forest& forest = self.additive.forest();
  const SummedTrees trees{forest.nodes, forest.root, 1.0, self.additive.n_outputs()};
  check(trees, self.n_categories, table, points, columns);
  std::vector<double> sums(table.table.n_rows * points.table.n_rows * trees.n_outputs(), 0.0);
  const int n_threads = resolve_threads(n_jobs);
  const bool by_masks = run_interruptible([&](Interrupt& interrupt) {
    return self.additive.add_replaced(table.table, points.table, columns, n_threads, interrupt, sums.data());
  });
  if (!by_masks) return nb::none();
  return nb::cast(own_rows(std::move(sums), trees.n_outputs()));
}

static Doubles2Out walked_in_additive(const AdditiveHandle& self, const TableHandle& table, const TableHandle& points,
                                      const Columns& columns, int n_jobs) {
  const Forest& forest = self.additive.forest();
  return replaced({forest.nodes, forest.root, 1.0, self.additive.n_outputs()}, self.n_categories, table, points,
                  columns, n_jobs);
}

}  // namespace spinney

void init_replaced(nb::module_& m) {
  using namespace spinney;
  m.def("replaced_in_tree", &replaced_in_tree, "tree"_a, "table"_a, "points"_a, "columns"_a, "n_jobs"_a,
        "Leaf values of each row with columns replaced by those of each point: by point, row and output.");
  m.def("replaced_in_forest", &replaced_in_forest, "forest"_a, "table"_a, "points"_a, "columns"_a, "n_jobs"_a,
        "As replaced_in_tree, summed over the trees.");
  m.def("exchanged_in_tree", &exchanged_in_tree, "tree"_a, "table"_a, "others"_a, "groups"_a, "n_jobs"_a,
        "Leaf values of each row with a group's columns from another row: by row, group, draw and output.");
  m.def("exchanged_in_forest", &exchanged_in_forest, "forest"_a, "table"_a, "others"_a, "groups"_a, "n_jobs"_a,
        "As exchanged_in_tree, summed over the trees.");
  m.def("exchanged_in_additive", &exchanged_in_additive, "additive"_a, "table"_a, "others"_a, "groups"_a, "n_jobs"_a,
        "As exchanged_in_tree, for sums of trees.");
  m.def("replaced_in_additive", &replaced_in_additive, "additive"_a, "table"_a, "points"_a, "columns"_a, "n_jobs"_a,
        "For sums of trees: by row, point and output; None if the trees have too many leaves.");
  m.def("walked_in_additive", &walked_in_additive, "additive"_a, "table"_a, "points"_a, "columns"_a, "n_jobs"_a,
        "As replaced_in_tree, for sums of trees of any size.");
}
