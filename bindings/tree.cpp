// Trees: growth, walking, pruning, and their arrays as NumPy arrays.
#include "tree/tree.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays.h"
#include "base/threads.h"
#include "growth_options.h"
#include "interrupt.h"
#include "learn/cart.h"
#include "module.h"
#include "table.h"
#include "tree/container.h"
#include "tree/pack.h"
#include "tree/prune.h"
#include "tree/shrink.h"
#include "tree/validate.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

// The node of each training row is available if splits are recorded or there is an index.
static nb::tuple grow_tree(const TableHandle& table, const std::string& criterion, const nb::object& target,
                           std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight,
                           const GrowthOptions& options, CartIndex* index) {
  const GrowthRequest request(table, criterion, target, std::move(n_classes), std::move(weight), options);
  Cart cart = run_interruptible([&](Interrupt& interrupt) {
    return grow_cart(table.table, request.input, request.rule, request.params, request.max_bins, interrupt, index);
  });
  auto* handle = new TreeHandle(std::move(cart.tree), categories_of(table.table));
  nb::object tree = nb::cast(handle, nb::rv_policy::take_ownership);
  std::vector<std::uint32_t>& rest = cart.resting_node;
  // rows of weight 0 took no part, and are walked like new rows
  if (index != nullptr && !request.params.surrogate_params.on &&
      std::find(rest.begin(), rest.end(), UINT32_MAX) != rest.end())
    run_interruptible([&](Interrupt& interrupt) {
      handle->walker.apply(table.table, request.params.n_threads, interrupt, rest.data());
      return 0;
    });
  return nb::make_tuple(tree, own(std::move(rest)));
}

static void init_index(CartIndex* self, const TableHandle& table, int n_jobs) {
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) { new (self) CartIndex(table.table, n_threads, interrupt); });
}

// The recorded splits of the nodes, flat, by name; None if there are none.
static nb::object splits(nb::handle_t<TreeHandle> self) {
  const SplitList& s = nb::cast<const TreeHandle&>(self).tree.splits;
  if (s.empty()) return nb::none();
  nb::dict d;
  const auto view = [&]<class T>(const char* name, const std::vector<T>& values) {
    d[name] = Array<const T>(values.data(), {values.size()}, self);
  };
  view("begin", s.begin);
  view("role", s.role);
  view("flags", s.flags);
  view("feature", s.feature);
  view("threshold", s.threshold);
  view("set", s.set);
  view("sets", s.sets);
  view("count", s.count);
  view("improve", s.improve);
  view("adjusted", s.adjusted);
  return d;
}

// The linear leaves, flat, by name; None if all leaves are constant.
static nb::object linear_leaves(nb::handle_t<TreeHandle> self) {
  const LinearLeaves& l = nb::cast<const TreeHandle&>(self).tree.linear_leaves;
  if (l.empty()) return nb::none();
  nb::dict d;
  const auto view = [&]<class T>(const char* name, const std::vector<T>& values) {
    d[name] = Array<const T>(values.data(), {values.size()}, self);
  };
  view("begin", l.begin);
  view("base", l.base);
  view("feature", l.feature);
  view("slope", l.slope);
  view("middle", l.middle);
  view("low", l.low);
  view("high", l.high);
  return d;
}

static Array<std::uint32_t> apply(const TreeHandle& self, const TableHandle& table, int n_jobs) {
  if (categories_of(table.table) != self.n_categories)
    throw nb::value_error("The table does not match the columns of the tree.");
  std::vector<std::uint32_t> leaf(table.table.n_rows);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    self.walker.apply(table.table, n_threads, interrupt, leaf.data());
    return 0;
  });
  return own(std::move(leaf));
}

static std::uint32_t apply_one(const TreeHandle& self, const Doubles1& row) {
  if (row.shape(0) != self.n_categories.size())
    throw nb::value_error("The row does not match the columns of the tree.");
  return self.walker.apply_one(row.data());
}

static Array<std::int32_t> children(const TreeHandle& self, bool left) {
  const Tree& t = self.tree;
  std::vector<std::int32_t> out(t.size(), -1);
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i)) out[i] = static_cast<std::int32_t>(left ? i + 1 : t.right[i]);
  return own(std::move(out));
}

static Array<std::int32_t> depth(const TreeHandle& self) {
  const Tree& t = self.tree;
  std::vector<std::int32_t> out(t.size(), 0);
  for (std::size_t i = 0; i < t.size(); ++i)
    if (!t.is_leaf(i)) out[i + 1] = out[t.right[i]] = out[i] + 1;
  return own(std::move(out));
}

static std::vector<std::uint32_t> left_categories(const TreeHandle& self, std::size_t node) {
  const Tree& t = self.tree;
  std::vector<std::uint32_t> left;
  if (node >= t.size()) throw nb::index_error("There is no such node.");
  if (t.is_leaf(node) || !(t.flags[node] & Tree::category)) return left;
  const std::uint32_t n = self.n_categories[static_cast<std::size_t>(t.feature[node])];
  for (std::uint32_t code = 0; code < n; ++code)
    if (goes_left(t, node, code)) left.push_back(code);
  return left;
}

// The given risk of each node, or the impurity risks, which are stored in `computed`.
static std::span<const double> read_risk(const TreeHandle& self, const std::optional<Doubles1>& risk,
                                         std::vector<double>& computed) {
  if (!risk) return computed = impurity_risks(self.tree);
  if (risk->shape(0) != self.tree.size()) throw nb::value_error("Pass one risk per node.");
  const std::span<const double> given{risk->data(), self.tree.size()};
  if (std::any_of(given.begin(), given.end(), [](double r) { return std::isnan(r); }))
    throw nb::value_error("A risk is not a number.");
  return given;
}

static nb::tuple pruning_path(const TreeHandle& self, const std::optional<Doubles1>& given, int n_jobs) {
  std::vector<double> computed;
  const std::span<const double> risk = read_risk(self, given, computed);
  const int n_threads = resolve_threads(n_jobs);
  PruningPath path = run_interruptible([&](Interrupt&) { return weakest_links(self.tree, risk, n_threads); });
  return nb::make_tuple(own(std::move(path.node)), own(std::move(path.alpha)), own(std::move(path.risk)),
                        own(std::move(path.n_leaves)), own(std::move(path.complexity)));
}

static Array<std::uint32_t> first_cuts_of(const TreeHandle& self, const Doubles1& given, const Doubles1& limits) {
  std::vector<double> computed;
  const std::span<const double> risk = read_risk(self, given, computed);
  return own(
      run_interruptible([&](Interrupt&) { return first_cuts(self.tree, risk, {limits.data(), limits.shape(0)}); }));
}

static nb::tuple pruning_turns_of(const TreeHandle& self, const Numbers1& rest, const Numbers1& first_cut,
                                  std::uint32_t n_cuts) {
  if (first_cut.shape(0) != self.tree.size()) throw nb::value_error("Pass one cut per node.");
  const std::span<const std::uint32_t> nodes{rest.data(), rest.shape(0)};
  for (const std::uint32_t node : nodes)
    if (node >= self.tree.size()) throw nb::value_error("There is no such node.");
  Turns turns = run_interruptible(
      [&](Interrupt&) { return pruning_turns(self.tree, nodes, {first_cut.data(), first_cut.shape(0)}, n_cuts); });
  return nb::make_tuple(own(std::move(turns.row)), own(std::move(turns.node)), own(std::move(turns.begin)),
                        own(std::move(turns.until)));
}

static TreeHandle* pruned(const TreeHandle& self, double alpha, const std::optional<Doubles1>& given) {
  std::vector<double> computed;
  const std::span<const double> risk = read_risk(self, given, computed);
  Tree tree = run_interruptible([&](Interrupt&) { return prune(self.tree, risk, alpha); });
  return new TreeHandle(std::move(tree), self.n_categories);
}

static TreeHandle* collapsed(const TreeHandle& self, nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig> leaf) {
  if (leaf.shape(0) != self.tree.size()) throw nb::value_error("Pass one mark per node.");
  return new TreeHandle(collapse(self.tree, std::vector<std::uint8_t>(leaf.data(), leaf.data() + leaf.shape(0))),
                        self.n_categories);
}

// A tree with the same splits and values shrunk towards those of the ancestors.
static TreeHandle* shrunk(const TreeHandle& self, double strength) {
  if (!(strength >= 0 && std::isfinite(strength))) throw nb::value_error("The strength must be finite and at least 0.");
  if (!self.tree.linear_leaves.empty()) throw nb::value_error("Linear leaves cannot be shrunk.");
  Tree tree = self.tree;
  shrink(tree, strength);
  return new TreeHandle(std::move(tree), self.n_categories);
}

// A tree with the same splits and other values, weights and impurities.
static TreeHandle* with_values(const TreeHandle& self, const Doubles2& value, const Doubles1& weight,
                               const Doubles1& impurity) {
  Tree tree = self.tree;
  const std::size_t n = tree.size();
  if (value.shape(0) != n || value.shape(1) == 0 || weight.shape(0) != n || impurity.shape(0) != n)
    throw nb::value_error("Pass one row of values, one weight and one impurity per node.");
  tree.value_width = static_cast<std::uint32_t>(value.shape(1));
  tree.value.assign(value.data(), value.data() + value.size());
  tree.weight.assign(weight.data(), weight.data() + n);
  tree.impurity.assign(impurity.data(), impurity.data() + n);
  tree.shrinkage = 0;
  const std::string fault = find_fault(tree, self.n_categories);
  if (!fault.empty()) throw nb::value_error(fault.c_str());
  return new TreeHandle(std::move(tree), self.n_categories);
}

// ---- state: as in a model file, with the columns' kinds --------------------------------------------

static nb::tuple to_state(const TreeHandle& self) {
  std::vector<StoredArray> arrays;
  pack(self.tree, 0, arrays);
  const std::string file = write_model({}, arrays);
  return nb::make_tuple(self.n_categories, nb::bytes(file.data(), file.size()));
}

static void from_state(TreeHandle& self, const std::pair<std::vector<std::uint32_t>, nb::bytes>& state) {
  const auto& [n_categories, file] = state;
  Tree t = unpack(read_model({reinterpret_cast<const unsigned char*>(file.c_str()), file.size()}).arrays_of(0));
  const std::string fault = find_fault(t, n_categories);
  if (!fault.empty()) throw nb::value_error(("The tree is invalid: " + fault).c_str());
  new (&self) TreeHandle(std::move(t), n_categories);
}

template <class T, class Member>
static void def_array(nb::class_<TreeHandle>& c, const char* name, Member member, const char* doc) {
  c.def_prop_ro(
      name,
      [member](nb::handle_t<TreeHandle> self) {
        const auto& values = nb::cast<const TreeHandle&>(self).tree.*member;
        return Array<const T>(values.data(), {values.size()}, self);
      },
      doc);
}

}  // namespace spinney

void init_tree(nb::module_& m) {
  using namespace spinney;
  nb::class_<TreeHandle> c(m, "Tree", "A finished tree: flat read-only arrays, nodes in preorder.");
  def_array<std::int32_t>(c, "feature", &Tree::feature, "Column split on; -1 in leaves.");
  def_array<double>(c, "threshold", &Tree::threshold, "Number splits: x <= threshold goes left.");
  def_array<double>(c, "impurity", &Tree::impurity, "Impurity of each node.");
  def_array<double>(c, "weight", &Tree::weight, "Weight of the training rows of each node.");
  def_array<std::uint32_t>(c, "n_rows", &Tree::n_rows, "Number of training rows of each node.");
  def_array<std::uint8_t>(c, "flags", &Tree::flags, "Bits: 1 missing goes left, 2 category split, 4 other goes left.");
  def_array<double>(c, "value", &Tree::value, "value_width numbers per node.");
  c.def_prop_ro("size", [](const TreeHandle& t) { return t.tree.size(); })
      .def_prop_ro("value_width", [](const TreeHandle& t) { return t.tree.value_width; })
      .def("children_left", [](const TreeHandle& t) { return children(t, true); })
      .def("children_right", [](const TreeHandle& t) { return children(t, false); })
      .def("depth", &depth)
      .def("left_categories", &left_categories, "node"_a)
      .def("apply", &apply, "table"_a, "n_jobs"_a)
      .def("apply_one", &apply_one, "row"_a)
      .def("pruning_path", &pruning_path, "risk"_a = nb::none(), "n_jobs"_a = 1)
      .def("collapsed", &collapsed, "leaf"_a)
      .def("splits", &splits)
      .def("linear_leaves", &linear_leaves)
      .def("with_values", &with_values, "value"_a, "weight"_a, "impurity"_a)
      .def("shrunk", &shrunk, "strength"_a)
      .def("first_cuts", &first_cuts_of, "risk"_a, "limits"_a)
      .def("pruning_turns", &pruning_turns_of, "rest"_a, "first_cut"_a, "n_cuts"_a)
      .def("pruned", &pruned, "alpha"_a, "risk"_a = nb::none())
      .def("__getstate__", &to_state)
      .def("__setstate__", &from_state);
  m.attr("alpha_rounding") = alpha_rounding;
  nb::class_<CartIndex>(m, "TreeIndex", "Presorted columns of a table, for trees with different weights or targets.")
      .def("__init__", &init_index, "table"_a, "n_jobs"_a);
  m.def("grow_tree", &grow_tree, "table"_a, "criterion"_a, "target"_a, "n_classes"_a, "weight"_a.none(), "options"_a,
        "index"_a.none() = nb::none());
}
