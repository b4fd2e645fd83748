// Shapley values of trees, forests and sums of trees.
#include "predict/shap.h"

#include <nanobind/ndarray.h>

#include <algorithm>
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

static nb::tuple explain(const SummedTrees& trees, const TableHandle& table, const TableHandle* background, bool pairs,
                         int n_jobs) {
  const Table* unknown = background == nullptr ? nullptr : &background->table;
  if (unknown != nullptr && categories_of(*unknown) != categories_of(table.table))
    throw nb::value_error("The background and the table have different columns.");
  if (unknown != nullptr && unknown->n_rows == 0) throw nb::value_error("The background has no rows.");
  if (trees.turns > 1 && trees.nodes.value_width != 1)
    throw nb::value_error("Trees with several outputs in turn must have one value per leaf.");
  const std::size_t n_values = table.table.n_rows * table.table.n_columns() * trees.n_outputs();
  std::vector<double> values(n_values, 0.0), matrices(pairs ? n_values * table.table.n_columns() : 0, 0.0);
  const int n_threads = resolve_threads(n_jobs);
  std::vector<double> base = run_interruptible([&](Interrupt& interrupt) {
    shap_values(trees, table.table, unknown, n_threads, interrupt, values.data(), pairs ? matrices.data() : nullptr);
    return shap_base_value(trees, unknown);
  });
  return nb::make_tuple(own(std::move(base)), own(std::move(values)), own(std::move(matrices)));
}

static nb::tuple explain_tree(const TreeHandle& self, const TableHandle& table, const TableHandle* background,
                              bool pairs, int n_jobs) {
  if (categories_of(table.table) != self.n_categories)
    throw nb::value_error("The table does not match the columns of the tree.");
  const std::uint32_t root[] = {0, static_cast<std::uint32_t>(self.tree.size())};
  return explain({self.tree, root, 1.0, 1}, table, background, pairs, n_jobs);
}

static nb::tuple explain_forest(const ForestHandle& self, const TableHandle& table, const TableHandle* background,
                                bool pairs, double scale, int n_jobs) {
  self.check(table);
  return explain({self.forest.nodes, self.forest.root, scale, 1}, table, background, pairs, n_jobs);
}

static nb::tuple explain_additive(const AdditiveHandle& self, const TableHandle& table, const TableHandle* background,
                                  bool pairs, int n_jobs) {
  self.check(table);
  const Forest& forest = self.additive.forest();
  return explain({forest.nodes, forest.root, 1.0, self.additive.n_outputs()}, table, background, pairs, n_jobs);
}

}  // namespace spinney

void init_shap(nb::module_& m) {
  using namespace spinney;
  m.def("shap_of_tree", &explain_tree, "tree"_a, "table"_a, "background"_a.none(), "pairs"_a, "n_jobs"_a,
        "Expected value by output; flat values by row, column, output; of pairs by row, column, column, output.");
  m.def("shap_of_forest", &explain_forest, "forest"_a, "table"_a, "background"_a.none(), "pairs"_a, "scale"_a,
        "n_jobs"_a, "As shap_of_tree, for the sum over the trees times scale.");
  m.def("shap_of_additive", &explain_additive, "additive"_a, "table"_a, "background"_a.none(), "pairs"_a, "n_jobs"_a,
        "As shap_of_tree, for sums of trees.");
}
