// Trees: growing, walking, pruning, and their arrays as NumPy sees them.
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

#include "base/threads.h"
#include "interrupt.h"
#include "learn/cart.h"
#include "module.h"
#include "table.h"
#include "tree/container.h"
#include "tree/pack.h"
#include "tree/prune.h"
#include "tree/validate.h"
#include "tree_handle.h"
#include "user_criterion.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
using Doubles1 = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers1 = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes2 = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
static Array<T> own(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array<T>(kept->data(), {kept->size()}, owner);
}

static std::vector<std::uint32_t> categories_of(const Table& table) {
  std::vector<std::uint32_t> n;
  for (const Column& c : table.columns) n.push_back(c.n_categories);
  return n;
}

static Rule rule_named(const std::string& name) {
  static constexpr std::pair<const char*, Rule> rules[] = {{"gini", Rule::gini},
                                                           {"entropy", Rule::entropy},
                                                           {"misclassification", Rule::misclassification},
                                                           {"chi2", Rule::chi2},
                                                           {"generalised_gini", Rule::generalised_gini},
                                                           {"gain_ratio", Rule::gain_ratio},
                                                           {"squared_error", Rule::squared_error},
                                                           {"friedman_mse", Rule::friedman_mse},
                                                           {"poisson", Rule::poisson},
                                                           {"rate", Rule::rate},
                                                           {"absolute_error", Rule::absolute_error},
                                                           {"user", Rule::user}};
  for (const auto& [known, rule] : rules)
    if (name == known) return rule;
  throw nb::value_error(("unknown criterion: " + name).c_str());
}

template <class T>
static T option(const nb::dict& options, const char* name) {
  return nb::cast<T>(options[name]);
}

static GrowParams read_params(const nb::dict& o) {
  GrowParams p;
  p.max_depth = option<std::uint32_t>(o, "max_depth");
  p.min_samples_split = option<Row>(o, "min_samples_split");
  p.min_samples_leaf = option<Row>(o, "min_samples_leaf");
  p.min_weight_leaf = option<double>(o, "min_weight_leaf");
  p.min_impurity_decrease = option<double>(o, "min_impurity_decrease");
  p.min_purity = option<double>(o, "min_purity");
  p.max_features = option<std::uint32_t>(o, "max_features");
  p.max_leaf_nodes = option<std::uint32_t>(o, "max_leaf_nodes");
  p.random_cuts = option<bool>(o, "random_cuts");
  p.seed = option<std::uint64_t>(o, "seed");
  p.monotone = option<std::vector<std::int8_t>>(o, "monotone");
  p.feature_costs = option<std::vector<double>>(o, "feature_costs");
  p.groups = option<std::vector<std::vector<std::uint32_t>>>(o, "groups");
  p.n_threads = resolve_threads(option<int>(o, "n_jobs"));
  return p;
}

// The caller's numbers by row, which a Weighing borrows.
struct WeighingArrays {
  std::optional<Doubles1> case_weight, response, exposure;

  const double* read(const nb::dict& o, const char* name, std::optional<Doubles1>& array, std::size_t n_rows) {
    if (!o.contains(name) || o[name].is_none()) return nullptr;
    array = option<Doubles1>(o, name);
    if (array->shape(0) != n_rows) throw nb::value_error("numbers by row and table differ in rows");
    return array->data();
  }
};

// What rpart's rounding is copied from; rules out what it was not written for.
static void read_rounding(const nb::dict& o, std::size_t n_rows, WeighingArrays& arrays, Weighing& w) {
  w.response = arrays.read(o, "response", arrays.response, n_rows);
  if (w.response == nullptr) return;
  w.exposure = arrays.read(o, "exposure", arrays.exposure, n_rows);
  w.class_factor = option<std::vector<double>>(o, "class_factor");
  if (w.case_weight == nullptr || !w.present_only) throw nb::value_error("response: needs case weights");
}

// `o` is None where splits are not weighed.
static Weighing read_weighing(const nb::object& object, std::size_t n_rows, std::size_t n_columns,
                              WeighingArrays& arrays) {
  Weighing w;
  if (object.is_none()) return w;
  const auto o = nb::cast<nb::dict>(object);
  w.on = true;
  w.present_only = option<bool>(o, "present_only");
  w.max_competitors = option<std::uint32_t>(o, "max_competitors");
  w.max_surrogates = option<std::uint32_t>(o, "max_surrogates");
  w.absent_disagrees = option<bool>(o, "absent_disagrees");
  const auto fallback = option<std::string>(o, "fallback");
  w.fallback = fallback == "stop"     ? Weighing::Fallback::stop
               : fallback == "ignore" ? Weighing::Fallback::ignore
                                      : Weighing::Fallback::majority;
  w.rpart = option<bool>(o, "rpart");
  w.quirks = option<bool>(o, "quirks");
  w.fold = option<bool>(o, "fold");
  w.closed_cuts = option<std::vector<std::uint8_t>>(o, "closed_cuts");
  if (w.rpart && w.closed_cuts.size() != n_columns) throw nb::value_error("closed_cuts: one entry per column");
  w.rows = option<std::vector<Row>>(o, "rows");
  for (const Row r : w.rows)
    if (r >= n_rows) throw nb::value_error("rows: no such row");
  if (o.contains("price")) {
    w.price = option<double>(o, "price");
    w.class_risk = option<std::vector<double>>(o, "class_risk");
  }
  w.case_weight = arrays.read(o, "case_weight", arrays.case_weight, n_rows);
  read_rounding(o, n_rows, arrays, w);
  return w;
}

static void check_params(const GrowParams& p, std::size_t n_columns) {
  if (!p.monotone.empty() && p.monotone.size() != n_columns) throw nb::value_error("monotone: one entry per column");
  if (!p.feature_costs.empty() && p.feature_costs.size() != n_columns)
    throw nb::value_error("feature_costs: one entry per column");
  if (std::any_of(p.feature_costs.begin(), p.feature_costs.end(), [](double c) { return !(c > 0); }))
    throw nb::value_error("feature_costs are positive");
  for (const auto& group : p.groups)
    for (const std::uint32_t f : group)
      if (f >= n_columns) throw nb::value_error("groups: no such column");
}

// The user's criterion, which Python keeps alive in the options; null for the other rules.
static const UserCriterion* read_user(Rule rule, const nb::dict& options, std::size_t n_columns_of_y) {
  if (rule != Rule::user) return nullptr;
  const UserCriterion* user = nb::cast<const UserCriterionHandle&>(options["user"]).criterion.get();
  if (user->n_columns != n_columns_of_y) throw nb::value_error("the criterion is for another number of columns of y");
  if (!option<std::vector<std::int8_t>>(options, "monotone").empty())
    throw nb::value_error("a user's criterion knows no monotone constraint");
  return user;
}

static nb::tuple grow_tree(const TableHandle& table, const std::string& criterion, nb::object target,
                           std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight,
                           const nb::dict& options) {
  const Rule rule = rule_named(criterion);
  TargetInput input;
  std::optional<Codes2> codes;
  std::optional<Doubles2> values, cost;
  if (is_class_rule(rule)) {
    codes = nb::cast<Codes2>(target);
    input.n_rows = codes->shape(0);
    input.n_outputs = codes->shape(1);
    input.codes = codes->data();
    if (n_classes.size() != input.n_outputs) throw nb::value_error("n_classes: one entry per output");
    for (std::size_t i = 0; i < input.n_rows * input.n_outputs; ++i)
      if (input.codes[i] < 0 || static_cast<std::uint32_t>(input.codes[i]) >= n_classes[i % input.n_outputs])
        throw nb::value_error("a class code is out of range");
    input.n_classes = std::move(n_classes);
    if (rule == Rule::generalised_gini) {
      cost = nb::cast<Doubles2>(options["cost"]);
      if (input.n_outputs != 1 || cost->shape(0) != input.n_classes[0] || cost->shape(1) != input.n_classes[0])
        throw nb::value_error("cost: one row and one column per class");
      input.cost = cost->data();
    }
  } else {
    values = nb::cast<Doubles2>(target);
    input.n_rows = values->shape(0);
    input.n_outputs = values->shape(1);
    input.y = values->data();
  }
  if (input.n_rows != table.table.n_rows || input.n_outputs == 0)
    throw nb::value_error("target and table differ in rows");
  if (weight) {
    if (weight->shape(0) != input.n_rows) throw nb::value_error("weights and table differ in rows");
    input.weight = weight->data();
    if (std::none_of(input.weight, input.weight + input.n_rows, [](double w) { return w > 0; }))
      throw nb::value_error("no row has a positive weight");
  }
  if (input.n_rows == 0) throw nb::value_error("the table has no rows");
  GrowParams params = read_params(options);
  WeighingArrays arrays;
  params.weighing = read_weighing(options["weighing"], input.n_rows, table.table.n_columns(), arrays);
  const std::size_t n_factors = params.weighing.class_factor.size();
  if (params.weighing.response != nullptr && n_factors != (is_class_rule(rule) ? input.n_classes[0] : 0))
    throw nb::value_error("class_factor: one entry per class");
  const std::size_t n_risks = is_class_rule(rule) ? std::size_t{input.n_classes[0]} * input.n_classes[0] : 0;
  if (params.weighing.price >= 0 && params.weighing.class_risk.size() != n_risks)
    throw nb::value_error("class_risk: one entry per pair of classes");
  check_params(params, table.table.n_columns());
  input.user = read_user(rule, options, input.n_outputs);
  if (input.user != nullptr && !input.user->runs_in_parallel()) params.n_threads = 1;
  const auto max_bins = option<std::uint32_t>(options, "max_bins");
  if (max_bins > 65535) throw nb::value_error("max_bins is at most 65535");
  Cart cart = run_interruptible(
      [&](Interrupt& interrupt) { return grow_cart(table.table, input, rule, params, max_bins, interrupt); });
  nb::object tree =
      nb::cast(new TreeHandle(std::move(cart.tree), categories_of(table.table)), nb::rv_policy::take_ownership);
  return nb::make_tuple(tree, own(std::move(cart.resting_node)));
}

// The splits weighed at the nodes, flat, by name; None where none were kept.
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

static Array<std::uint32_t> apply(const TreeHandle& self, const TableHandle& table, int n_jobs) {
  if (categories_of(table.table) != self.n_categories) throw nb::value_error("the table does not fit the tree");
  std::vector<std::uint32_t> leaf(table.table.n_rows);
  const int n_threads = resolve_threads(n_jobs);
  run_interruptible([&](Interrupt& interrupt) {
    self.walker.apply(table.table, n_threads, interrupt, leaf.data());
    return 0;
  });
  return own(std::move(leaf));
}

static std::uint32_t apply_one(const TreeHandle& self, const Doubles1& row) {
  if (row.shape(0) != self.n_categories.size()) throw nb::value_error("the row does not have the tree's columns");
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
  if (node >= t.size()) throw nb::index_error("no such node");
  if (t.is_leaf(node) || !(t.flags[node] & Tree::category)) return left;
  const std::uint32_t n = self.n_categories[static_cast<std::size_t>(t.feature[node])];
  for (std::uint32_t code = 0; code < n; ++code)
    if (goes_left(t, node, code)) left.push_back(code);
  return left;
}

// The given risk of each node, or the impurities', which `kept` then holds.
static std::span<const double> read_risk(const TreeHandle& self, const std::optional<Doubles1>& risk,
                                         std::vector<double>& kept) {
  if (!risk) return kept = impurity_risks(self.tree);
  if (risk->shape(0) != self.tree.size()) throw nb::value_error("one risk per node");
  const std::span<const double> given{risk->data(), self.tree.size()};
  if (std::any_of(given.begin(), given.end(), [](double r) { return std::isnan(r); }))
    throw nb::value_error("a risk is not a number");
  return given;
}

static nb::tuple pruning_path(const TreeHandle& self, const std::optional<Doubles1>& given, int n_jobs) {
  std::vector<double> kept;
  const std::span<const double> risk = read_risk(self, given, kept);
  const int n_threads = resolve_threads(n_jobs);
  PruningPath path = run_interruptible([&](Interrupt&) { return weakest_links(self.tree, risk, n_threads); });
  return nb::make_tuple(own(std::move(path.node)), own(std::move(path.alpha)), own(std::move(path.risk)),
                        own(std::move(path.n_leaves)), own(std::move(path.complexity)));
}

static Array<std::uint32_t> first_cuts_of(const TreeHandle& self, const Doubles1& given, const Doubles1& limits) {
  std::vector<double> kept;
  const std::span<const double> risk = read_risk(self, given, kept);
  return own(
      run_interruptible([&](Interrupt&) { return first_cuts(self.tree, risk, {limits.data(), limits.shape(0)}); }));
}

static nb::tuple pruning_turns_of(const TreeHandle& self, const Numbers1& rest, const Numbers1& first_cut,
                                  std::uint32_t n_cuts) {
  if (first_cut.shape(0) != self.tree.size()) throw nb::value_error("one cut per node");
  const std::span<const std::uint32_t> nodes{rest.data(), rest.shape(0)};
  for (const std::uint32_t node : nodes)
    if (node >= self.tree.size()) throw nb::value_error("no such node");
  Turns turns = run_interruptible(
      [&](Interrupt&) { return pruning_turns(self.tree, nodes, {first_cut.data(), first_cut.shape(0)}, n_cuts); });
  return nb::make_tuple(own(std::move(turns.row)), own(std::move(turns.node)), own(std::move(turns.begin)),
                        own(std::move(turns.until)));
}

static nb::tuple bottom_up_complexity(const TreeHandle& self, const Doubles1& given, double alpha) {
  std::vector<double> kept;
  const std::span<const double> risk = read_risk(self, given, kept);
  BottomUp found = run_interruptible([&](Interrupt&) { return bottom_up_complexities(self.tree, risk, alpha); });
  return nb::make_tuple(own(std::move(found.complexity)), own(std::move(found.split)));
}

static TreeHandle* pruned(const TreeHandle& self, double alpha, const std::optional<Doubles1>& given) {
  std::vector<double> kept;
  const std::span<const double> risk = read_risk(self, given, kept);
  Tree tree = run_interruptible([&](Interrupt&) { return prune(self.tree, risk, alpha); });
  return new TreeHandle(std::move(tree), self.n_categories);
}

static TreeHandle* collapsed(const TreeHandle& self, nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig> leaf) {
  if (leaf.shape(0) != self.tree.size()) throw nb::value_error("one mark per node");
  return new TreeHandle(collapse(self.tree, std::vector<std::uint8_t>(leaf.data(), leaf.data() + leaf.shape(0))),
                        self.n_categories);
}

// A tree of the same splits that says other things of its nodes.
static TreeHandle* with_values(const TreeHandle& self, const Doubles2& value, const Doubles1& weight,
                               const Doubles1& impurity) {
  Tree tree = self.tree;
  const std::size_t n = tree.size();
  if (value.shape(0) != n || value.shape(1) == 0 || weight.shape(0) != n || impurity.shape(0) != n)
    throw nb::value_error("one row of values, one weight and one impurity per node");
  tree.value_width = static_cast<std::uint32_t>(value.shape(1));
  tree.value.assign(value.data(), value.data() + value.size());
  tree.weight.assign(weight.data(), weight.data() + n);
  tree.impurity.assign(impurity.data(), impurity.data() + n);
  const std::string fault = find_fault(tree, self.n_categories);
  if (!fault.empty()) throw nb::value_error(fault.c_str());
  return new TreeHandle(std::move(tree), self.n_categories);
}

// ---- state: as in a model file, and the columns' kinds ---------------------------------------------

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
  if (!fault.empty()) throw nb::value_error(("this is not a usable tree: " + fault).c_str());
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
      .def("with_values", &with_values, "value"_a, "weight"_a, "impurity"_a)
      .def("first_cuts", &first_cuts_of, "risk"_a, "limits"_a)
      .def("pruning_turns", &pruning_turns_of, "rest"_a, "first_cut"_a, "n_cuts"_a)
      .def("bottom_up_complexity", &bottom_up_complexity, "risk"_a, "alpha"_a)
      .def("pruned", &pruned, "alpha"_a, "risk"_a = nb::none())
      .def("__getstate__", &to_state)
      .def("__setstate__", &from_state);
  m.attr("alpha_rounding") = alpha_rounding;
  m.def("grow_tree", &grow_tree, "table"_a, "criterion"_a, "target"_a, "n_classes"_a, "weight"_a.none(), "options"_a);
}
