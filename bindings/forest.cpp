// Forests: growth, prediction, out-of-bag sums, and their trees.
#include "tree/forest.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "data/sample.h"
#include "forest_handle.h"
#include "growth_options.h"
#include "interrupt.h"
#include "learn/forest.h"
#include "module.h"
#include "table.h"
#include "tree/shrink.h"
#include "tree/true_class_proba.h"
#include "tree/validate.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

static SamplingHandle* make_sampling(bool replace, std::uint64_t seed, const Numbers1& unit_of_row,
                                     const std::vector<Numbers1>& strata, std::vector<std::uint32_t> n_drawn) {
  const auto copied = [](const Numbers1& units) { return std::vector(units.data(), units.data() + units.size()); };
  Sampling s{replace, seed, copied(unit_of_row), {}, std::move(n_drawn), 0};
  for (const Numbers1& stratum : strata) s.strata.push_back(copied(stratum));
  if (s.strata.size() != s.n_drawn.size()) throw nb::value_error("n_drawn must have one entry per stratum.");
  for (std::size_t i = 0; i < s.strata.size(); ++i) {
    if (s.strata[i].empty() || (!s.replace && s.n_drawn[i] > s.strata[i].size()))
      throw nb::value_error("A stratum has too few units.");
    for (const std::uint32_t u : s.strata[i]) {
      if (u == UINT32_MAX) throw nb::value_error("strata: a unit does not exist.");
      s.n_units = std::max(s.n_units, u + 1);
    }
  }
  for (const std::uint32_t u : s.unit_of_row)
    if (u != UINT32_MAX && u >= s.n_units) throw nb::value_error("unit_of_row: a unit does not exist.");
  return new SamplingHandle{std::move(s)};
}

static Array<std::uint32_t> counts_of(const SamplingHandle& self, std::uint32_t tree) {
  std::vector<std::uint32_t> units, counts(self.sampling.unit_of_row.size());
  draw_counts(self.sampling, tree, units, counts);
  return own(std::move(counts));
}

static ForestHandle* grow(const TableHandle& table, const std::string& criterion, const nb::object& target,
                          std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight,
                          const GrowthOptions& options, const SamplingHandle* sampling,
                          std::uint32_t max_features_per_tree, std::uint32_t first_tree, std::uint32_t n_trees,
                          const std::optional<Codes2>& balanced, const std::optional<Doubles1>& balance_weight,
                          double shrinkage) {
  const GrowthRequest request(table, criterion, target, std::move(n_classes), std::move(weight), options);
  if (request.params.surrogate_params.on)
    throw nb::value_error("A forest does not support surrogates or competing splits.");
  ForestParams params;
  params.tree = request.params;
  params.samples = sampling != nullptr;
  if (sampling != nullptr) {
    params.sampling = sampling->sampling;
    if (params.sampling.unit_of_row.size() != table.table.n_rows)
      throw nb::value_error("sampling and table have different numbers of rows.");
  }
  if (balanced) {
    if (balanced->shape(0) != table.table.n_rows)
      throw nb::value_error("balanced and table have different numbers of rows.");
    params.balanced = balanced->data();
    params.n_balanced.assign(balanced->shape(1), 0);
    for (std::size_t i = 0; i < balanced->size(); ++i) {
      const std::int32_t code = params.balanced[i];
      if (code < 0 || code >= (1 << 30)) throw nb::value_error("balanced: a class code is out of range.");
      std::uint32_t& n = params.n_balanced[i % balanced->shape(1)];
      n = std::max(n, static_cast<std::uint32_t>(code) + 1);
    }
  }
  if (balance_weight) {
    if (balance_weight->size() != table.table.n_rows)
      throw nb::value_error("balance_weight and table have different numbers of rows.");
    params.balance_weight = balance_weight->data();
  }
  params.max_bins = request.max_bins;
  params.max_features_per_tree = max_features_per_tree;
  if (!(shrinkage >= 0)) throw nb::value_error("shrinkage must be at least 0.");
  params.shrinkage = shrinkage;
  params.first_tree = first_tree;
  params.n_trees = n_trees;
  Forest forest = run_interruptible(
      [&](Interrupt& interrupt) { return grow_forest(table.table, request.input, request.rule, params, interrupt); });
  return new ForestHandle(std::move(forest), categories_of(table.table));
}

static Doubles2Out predict(const ForestHandle& self, const TableHandle& table, int n_jobs) {
  self.check(table);
  const std::size_t width = self.forest.nodes.value_width;
  std::vector<double> out(table.table.n_rows * width, 0.0);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    self.walker.sum(table.table, 0, self.forest.n_trees(), {}, n_threads, interrupt, out.data(), nullptr);
    const auto n = static_cast<double>(self.forest.n_trees());
    for (double& v : out) v /= n;
    return 0;
  });
  return own_rows(std::move(out), width);
}

// The sums of trees first … last - 1 over their out-of-bag rows, and the number of these trees by row.
static nb::tuple out_of_bag(const ForestHandle& self, const TableHandle& table, const SamplingHandle& sampling,
                            std::size_t first, std::size_t last, int n_jobs) {
  self.check(table);
  const std::size_t n_rows = table.table.n_rows, width = self.forest.nodes.value_width;
  if (first > last || last > self.forest.n_trees()) throw nb::index_error("There is no such tree.");
  if (sampling.sampling.unit_of_row.size() != n_rows)
    throw nb::value_error("sampling and table have different numbers of rows.");
  std::vector<double> sums(n_rows * width, 0.0);
  std::vector<std::uint32_t> n_used(n_rows, 0);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    const std::vector<std::uint64_t> in_bag = rows_in_bag(sampling.sampling, first, last, n_threads, interrupt);
    self.walker.sum(table.table, first, last, in_bag, n_threads, interrupt, sums.data(), n_used.data());
    return 0;
  });
  return nb::make_tuple(own_rows(std::move(sums), width), own(std::move(n_used)));
}

static nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<2>, nb::c_contig> apply(const ForestHandle& self,
                                                                              const TableHandle& table, int n_jobs) {
  self.check(table);
  const std::size_t n_trees = self.forest.n_trees();
  auto* leaf = new std::vector<std::uint32_t>(table.table.n_rows * n_trees);
  nb::capsule owner(leaf, [](void* p) noexcept { delete static_cast<std::vector<std::uint32_t>*>(p); });
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    self.walker.apply(table.table, n_threads, interrupt, leaf->data());
    return 0;
  });
  return nb::ndarray<nb::numpy, std::uint32_t, nb::ndim<2>, nb::c_contig>(leaf->data(), {table.table.n_rows, n_trees},
                                                                          owner);
}

// The mean over the trees for one row.
static void mean_of_row(const ForestHandle& self, const Doubles1& row, std::span<double> out) {
  if (row.shape(0) != self.n_categories.size())
    throw nb::value_error("The row does not match the columns of the forest.");
  std::fill(out.begin(), out.end(), 0.0);
  self.walker.sum_one(row.data(), out.data());
  const auto n = static_cast<double>(self.forest.n_trees());
  for (double& v : out) v /= n;
}

static Array<double> predict_one(const ForestHandle& self, const Doubles1& row) {
  std::vector<double> out(self.forest.nodes.value_width);
  mean_of_row(self, row, out);
  return own(std::move(out));
}

static double predict_one_number(const ForestHandle& self, const Doubles1& row) {
  if (self.forest.nodes.value_width != 1) throw nb::value_error("The forest predicts several numbers.");
  double out;
  mean_of_row(self, row, {&out, 1});
  return out;
}

static std::size_t predict_one_class(const ForestHandle& self, const Doubles1& row) {
  std::array<double, 64> few;
  std::vector<double> many;
  std::span<double> out = few;
  if (self.forest.nodes.value_width > few.size()) {
    many.resize(self.forest.nodes.value_width);
    out = many;
  }
  out = out.first(self.forest.nodes.value_width);
  mean_of_row(self, row, out);
  return static_cast<std::size_t>(std::max_element(out.begin(), out.end()) - out.begin());
}

static void prepare(const ForestHandle& self) {
  run_interruptible([&](Interrupt& interrupt) {
    self.walker.prepare(1, interrupt);
    return 0;
  });
}

static ForestHandle* from_trees(const std::vector<const TreeHandle*>& trees, std::vector<std::uint32_t> n_categories) {
  Forest forest;
  for (const TreeHandle* t : trees) {
    if (t->n_categories != n_categories) throw nb::value_error("The trees have different columns.");
    if (!t->tree.linear_leaves.empty()) throw nb::value_error("The trees of a forest must not have linear leaves.");
    forest.add(t->tree);
  }
  if (forest.n_trees() == 0) throw nb::value_error("A forest needs at least one tree.");
  return new ForestHandle(std::move(forest), std::move(n_categories));
}

// A forest with the same splits and values shrunk towards those of the ancestors.
static ForestHandle* shrunk(const ForestHandle& self, double strength) {
  if (!(strength >= 0 && std::isfinite(strength))) throw nb::value_error("The strength must be finite and at least 0.");
  Forest forest;
  forest.reserve(self.forest.nodes.size(), self.forest.nodes.sets.size(), self.forest.n_trees());
  run_interruptible([&](Interrupt& interrupt) {
    for (std::size_t t = 0; t < self.forest.n_trees(); ++t) {
      interrupt.check();
      Tree tree = self.forest.tree(t);
      shrink(tree, strength);
      forest.add(tree);
    }
    return 0;
  });
  return new ForestHandle(std::move(forest), self.n_categories);
}

using Numbers2 = nb::ndarray<const std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

static Doubles2Out true_class_proba_of(const ForestHandle& self, const Numbers2& leaf, const Doubles2& unseen,
                                       const Codes2& codes, std::vector<std::uint32_t> n_classes,
                                       const Doubles1& strengths, int n_jobs) {
  const std::size_t n_rows = codes.shape(0), n_trees = self.forest.n_trees();
  if (leaf.shape(0) != n_rows || leaf.shape(1) != n_trees || unseen.shape(0) != n_trees || unseen.shape(1) != n_rows)
    throw nb::value_error("Pass a leaf and a number for each row and tree.");
  if (n_classes.empty() || codes.shape(1) != n_classes.size())
    throw nb::value_error("codes must have one column per output.");
  if (std::reduce(n_classes.begin(), n_classes.end()) != self.forest.nodes.value_width)
    throw nb::value_error("The number of classes does not match the forest.");
  for (std::size_t i = 0; i < codes.size(); ++i)
    if (codes.data()[i] < 0 || static_cast<std::uint32_t>(codes.data()[i]) >= n_classes[i % n_classes.size()])
      throw nb::value_error("codes: a class code is out of range.");
  for (std::size_t i = 0; i < leaf.size(); ++i)
    if (leaf.data()[i] >= self.forest.root[i % n_trees + 1] - self.forest.root[i % n_trees])
      throw nb::value_error("There is no such leaf.");
  for (std::size_t i = 0; i < unseen.size(); ++i)
    if (!(unseen.data()[i] >= 0 && unseen.data()[i] <= 1)) throw nb::value_error("unseen must be between 0 and 1.");
  const EvaluatedLeaves rows{
      {leaf.data(), leaf.size()}, {unseen.data(), unseen.size()}, {codes.data(), codes.size()}, std::move(n_classes)};
  std::vector<double> out;
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    true_class_proba(self.forest, rows, {strengths.data(), strengths.size()}, n_threads, interrupt, out);
    return 0;
  });
  return own_rows(std::move(out), strengths.size());
}

// The trees of one forest, then those of the other.
static ForestHandle* extended(const ForestHandle& self, const ForestHandle& other) {
  if (self.n_categories != other.n_categories || self.forest.nodes.value_width != other.forest.nodes.value_width)
    throw nb::value_error("The forests have different columns or numbers of values.");
  Forest forest = self.forest;
  for (std::size_t t = 0; t < other.forest.n_trees(); ++t) forest.add(other.forest.tree(t));
  return new ForestHandle(std::move(forest), self.n_categories);
}

static TreeHandle* tree_at(const ForestHandle& self, std::size_t t) {
  if (t >= self.forest.n_trees()) throw nb::index_error("There is no such tree.");
  return new TreeHandle(self.forest.tree(t), self.n_categories);
}

template <class T, class Member>
static void def_array(nb::class_<ForestHandle>& c, const char* name, Member member, const char* doc) {
  c.def_prop_ro(
      name,
      [member](nb::handle_t<ForestHandle> self) {
        const auto& values = nb::cast<const ForestHandle&>(self).forest.nodes.*member;
        return Array<const T>(values.data(), {values.size()}, self);
      },
      doc);
}

}  // namespace spinney

void init_forest(nb::module_& m) {
  using namespace spinney;
  nb::class_<SamplingHandle>(m, "Sampling", "The rows each tree of a forest is grown on.")
      .def("counts", &counts_of, "tree"_a, "How often each row was drawn for a tree.");
  m.def("make_sampling", &make_sampling, "replace"_a, "seed"_a, "unit_of_row"_a, "strata"_a, "n_drawn"_a);
  nb::class_<ForestHandle> c(m, "Forest", "Trees in one set of read-only arrays, one after the other.");
  def_array<std::int32_t>(c, "feature", &Tree::feature, "Column split on; -1 in leaves.");
  def_array<double>(c, "threshold", &Tree::threshold, "Number splits: x <= threshold goes left.");
  def_array<std::uint32_t>(c, "right", &Tree::right, "Right child of each split; its left child is the next node.");
  def_array<double>(c, "impurity", &Tree::impurity, "Impurity of each node.");
  def_array<double>(c, "weight", &Tree::weight, "Weight of the training rows of each node.");
  def_array<std::uint32_t>(c, "n_rows", &Tree::n_rows, "Number of training rows of each node.");
  def_array<double>(c, "value", &Tree::value, "value_width numbers per node.");
  c.def_prop_ro("n_trees", [](const ForestHandle& f) { return f.forest.n_trees(); })
      .def_prop_ro("size", [](const ForestHandle& f) { return f.forest.nodes.size(); })
      .def_prop_ro("value_width", [](const ForestHandle& f) { return f.forest.nodes.value_width; })
      .def_prop_ro(
          "root",
          [](nb::handle_t<ForestHandle> self) {
            const auto& root = nb::cast<const ForestHandle&>(self).forest.root;
            return Array<const std::uint32_t>(root.data(), {root.size()}, self);
          },
          "First node of each tree, then the end.")
      .def("tree", &tree_at, "t"_a, "A copy of one tree.")
      .def("extended", &extended, "other"_a)
      .def("shrunk", &shrunk, "strength"_a, "The same splits with values shrunk towards those of the ancestors.")
      .def("true_class_proba", &true_class_proba_of, "leaf"_a, "unseen"_a, "codes"_a, "n_classes"_a, "strengths"_a,
           "n_jobs"_a, "Out-of-bag probability of each row's true class, (n_rows * n_outputs, n_strengths).")
      .def("predict", &predict, "table"_a, "n_jobs"_a, "Mean over the trees.")
      .def("predict_one", &predict_one, "row"_a)
      .def("predict_one_number", &predict_one_number, "row"_a, "The same for one output, without an array.")
      .def("predict_one_class", &predict_one_class, "row"_a, "The first index of the maximum of predict_one.")
      .def("prepare", &prepare, "Prepare predict_one for maximum speed.")
      .def("apply", &apply, "table"_a, "n_jobs"_a)
      .def("out_of_bag", &out_of_bag, "table"_a, "sampling"_a, "first"_a, "last"_a, "n_jobs"_a);
  m.def("forest_from_trees", &from_trees, "trees"_a, "n_categories"_a);
  m.def("grow_forest", &grow, "table"_a, "criterion"_a, "target"_a, "n_classes"_a, "weight"_a.none(), "options"_a,
        "sampling"_a.none(), "max_features_per_tree"_a, "first_tree"_a, "n_trees"_a, "balanced"_a = nb::none(),
        "balance_weight"_a = nb::none(), "shrinkage"_a = 0.0);
}
