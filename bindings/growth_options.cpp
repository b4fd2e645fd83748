#include "growth_options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/threads.h"
#include "module.h"
#include "user_criterion.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

std::vector<std::uint32_t> categories_of(const Table& table) {
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
  throw nb::value_error(("Unknown criterion: " + name).c_str());
}

static SurrogateParams::Fallback fallback_named(const std::string& name) {
  if (name == "majority") return SurrogateParams::Fallback::majority;
  if (name == "stop") return SurrogateParams::Fallback::stop;
  if (name == "ignore") return SurrogateParams::Fallback::ignore;
  throw nb::value_error(("Unknown missing_fallback: " + name).c_str());
}

static void init_surrogates(SurrogateOptions* self, bool present_only, std::uint32_t max_competitors,
                            std::uint32_t max_surrogates, bool absent_disagrees, const std::string& missing_fallback,
                            std::optional<Doubles1> case_weight, const RpartOptions* rpart) {
  SurrogateParams w;
  w.on = true;
  w.present_only = present_only;
  w.max_competitors = max_competitors;
  w.max_surrogates = max_surrogates;
  w.absent_disagrees = absent_disagrees;
  w.missing_fallback = fallback_named(missing_fallback);
  std::optional<Doubles1> response, exposure;
  if (rpart != nullptr) {
    w.rpart = true;
    w.quirks = rpart->quirks;
    w.fold = rpart->fold;
    w.closed_cuts = rpart->closed_cuts;
    w.rows = rpart->rows;
    if (rpart->price) w.price = *rpart->price;
    w.class_risk = rpart->class_risk;
    w.class_factor = rpart->class_factor;
    response = rpart->response;
    exposure = rpart->exposure;
    if (response && (!case_weight || !present_only)) throw nb::value_error("response needs case weights.");
  }
  new (self) SurrogateOptions{std::move(w), std::move(case_weight), std::move(response), std::move(exposure)};
}

static void init_rpart(RpartOptions* self, bool quirks, bool fold, std::vector<std::uint8_t> closed_cuts,
                       std::vector<Row> rows, std::optional<double> price, std::vector<double> class_risk,
                       std::optional<Doubles1> response, std::optional<Doubles1> exposure,
                       std::vector<double> class_factor) {
  new (self) RpartOptions{quirks,
                          fold,
                          std::move(closed_cuts),
                          std::move(rows),
                          price,
                          std::move(class_risk),
                          std::move(response),
                          std::move(exposure),
                          std::move(class_factor)};
}

static void init_options(GrowthOptions* self, std::uint32_t max_depth, Row min_samples_split, Row min_samples_leaf,
                         double min_weight_leaf, double min_impurity_decrease, double min_purity,
                         std::uint32_t max_features, std::vector<double> feature_weights,
                         std::vector<std::uint32_t> always_try, std::uint32_t max_leaf_nodes, bool random_cuts,
                         bool random_ties, bool charge_categories, double row_weight, std::uint64_t seed,
                         std::vector<std::int8_t> monotonic_cst,
                         std::vector<std::vector<std::uint32_t>> interaction_cst, std::vector<double> feature_costs,
                         std::optional<Doubles2> cost, std::uint32_t max_bins, int n_jobs,
                         std::optional<SurrogateOptions> surrogate_params, const UserCriterionHandle* user) {
  if (max_bins > 65535) throw nb::value_error("max_bins must be at most 65535.");
  GrowParams p;
  p.max_depth = max_depth;
  p.min_samples_split = min_samples_split;
  p.min_samples_leaf = min_samples_leaf;
  p.min_weight_leaf = min_weight_leaf;
  p.min_impurity_decrease = min_impurity_decrease;
  p.min_purity = min_purity;
  p.max_features = max_features;
  for (std::uint32_t f = 0; f < feature_weights.size(); ++f)
    if (feature_weights[f] > 0) p.columns.push_back(f);
  p.feature_weights = std::move(feature_weights);
  p.always_try = std::move(always_try);
  p.max_leaf_nodes = max_leaf_nodes;
  p.random_cuts = random_cuts;
  p.random_ties = random_ties;
  p.charge_categories = charge_categories;
  p.row_weight = row_weight;
  p.seed = seed;
  p.monotonic_cst = std::move(monotonic_cst);
  p.feature_costs = std::move(feature_costs);
  p.interaction_cst = std::move(interaction_cst);
  p.n_threads = resolve_threads(n_jobs);
  nb::object criterion = user == nullptr ? nb::none() : nb::find(user);
  new (self) GrowthOptions{std::move(p), max_bins, std::move(cost), std::move(surrogate_params), std::move(criterion)};
}

// The pointer to numbers by row that the engine reads; null if there are none.
static const double* by_row(const std::optional<Doubles1>& array, std::size_t n_rows) {
  if (!array) return nullptr;
  if (array->shape(0) != n_rows) throw nb::value_error("An array by row and the table have different numbers of rows.");
  return array->data();
}

static SurrogateParams read_surrogates(const SurrogateOptions& options, Rule rule, const TargetInput& input,
                                       std::size_t n_columns) {
  SurrogateParams w = options.surrogate_params;
  if (w.rpart && w.closed_cuts.size() != n_columns)
    throw nb::value_error("closed_cuts must have one entry per column.");
  for (const Row r : w.rows)
    if (r >= input.n_rows) throw nb::value_error("rows: a row does not exist.");
  w.case_weight = by_row(options.case_weight, input.n_rows);
  w.response = by_row(options.response, input.n_rows);
  w.exposure = by_row(options.exposure, input.n_rows);
  const std::size_t n_classes = is_class_rule(rule) ? input.n_classes[0] : 0;
  if (w.response != nullptr && w.class_factor.size() != n_classes)
    throw nb::value_error("class_factor must have one entry per class.");
  if (w.price >= 0 && w.class_risk.size() != n_classes * n_classes)
    throw nb::value_error("class_risk must have one entry per pair of classes.");
  return w;
}

static void check_params(const GrowParams& p, std::size_t n_columns) {
  if (!p.monotonic_cst.empty() && p.monotonic_cst.size() != n_columns)
    throw nb::value_error("monotonic_cst must have one entry per column.");
  if (!p.feature_costs.empty() && p.feature_costs.size() != n_columns)
    throw nb::value_error("feature_costs must have one entry per column.");
  if (std::any_of(p.feature_costs.begin(), p.feature_costs.end(), [](double c) { return !(c > 0); }))
    throw nb::value_error("feature_costs must be positive.");
  if (!p.feature_weights.empty() && (p.feature_weights.size() != n_columns || p.columns.empty()))
    throw nb::value_error("feature_weights must have one entry per column and not all be 0.");
  for (std::size_t i = 0; i < p.always_try.size(); ++i) {
    const std::uint32_t f = p.always_try[i];
    if (f >= n_columns || (i > 0 && f <= p.always_try[i - 1]))
      throw nb::value_error("always_try must hold ascending columns.");
    if (!p.feature_weights.empty() && !(p.feature_weights[f] > 0))
      throw nb::value_error("always_try: a column has weight 0.");
  }
  for (const auto& group : p.interaction_cst)
    for (const std::uint32_t f : group)
      if (f >= n_columns) throw nb::value_error("interaction_cst: a column does not exist.");
}

// The user's criterion, which the options keep alive; null for the other criteria.
static const UserCriterion* read_user(Rule rule, const GrowthOptions& options, std::size_t n_columns_of_y) {
  if (rule != Rule::user) return nullptr;
  const UserCriterion* user = nb::cast<const UserCriterionHandle&>(options.user).criterion.get();
  if (user->n_columns != n_columns_of_y) throw nb::value_error("The criterion is for another number of columns of y.");
  if (!options.params.monotonic_cst.empty())
    throw nb::value_error("A user-defined criterion does not support monotonic constraints.");
  return user;
}

void GrowthRequest::read_classes(Codes2 codes, std::vector<std::uint32_t> n_classes,
                                 const std::optional<Doubles2>& cost) {
  codes_ = std::move(codes);
  input.n_rows = codes_->shape(0);
  input.n_outputs = codes_->shape(1);
  input.codes = codes_->data();
  if (n_classes.size() != input.n_outputs) throw nb::value_error("n_classes must have one entry per output.");
  for (std::size_t k = 0; k < input.n_outputs; ++k) {
    std::uint32_t most = 0;  // negative codes become large
    for (std::size_t i = k; i < input.n_rows * input.n_outputs; i += input.n_outputs)
      most = std::max(most, static_cast<std::uint32_t>(input.codes[i]));
    if (input.n_rows > 0 && most >= n_classes[k]) throw nb::value_error("A class code is out of range.");
  }
  input.n_classes = std::move(n_classes);
  if (rule != Rule::generalised_gini) return;
  cost_ = cost;
  if (!cost_ || input.n_outputs != 1 || cost_->shape(0) != input.n_classes[0] || cost_->shape(1) != input.n_classes[0])
    throw nb::value_error("cost must have one row and one column per class.");
  input.cost = cost_->data();
}

void GrowthRequest::read_values(Doubles2 values) {
  values_ = std::move(values);
  input.n_rows = values_->shape(0);
  input.n_outputs = values_->shape(1);
  input.y = values_->data();
}

GrowthRequest::GrowthRequest(const TableHandle& table, const std::string& criterion, const nb::object& target,
                             std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight,
                             const GrowthOptions& options)
    : rule(rule_named(criterion)),
      params(options.params),
      max_bins(options.max_bins),
      weight_(std::move(weight)),
      weighing_(options.surrogate_params) {
  if (is_class_rule(rule))
    read_classes(nb::cast<Codes2>(target), std::move(n_classes), options.cost);
  else
    read_values(nb::cast<Doubles2>(target));
  if (input.n_rows != table.table.n_rows || input.n_outputs == 0)
    throw nb::value_error("target and table have different numbers of rows.");
  if (weight_) {
    if (weight_->shape(0) != input.n_rows) throw nb::value_error("weights and table have different numbers of rows.");
    input.weight = weight_->data();
    if (std::none_of(input.weight, input.weight + input.n_rows, [](double w) { return w > 0; }))
      throw nb::value_error("No row has a positive weight.");
  }
  if (input.n_rows == 0) throw nb::value_error("The table has no rows.");
  if (weighing_) params.surrogate_params = read_surrogates(*weighing_, rule, input, table.table.n_columns());
  check_params(params, table.table.n_columns());
  input.user = read_user(rule, options, input.n_outputs);
  if (input.user != nullptr && !input.user->runs_in_parallel()) params.n_threads = 1;
}

// A user-defined criterion may be part of a reference cycle with its handle.
static int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<GrowthOptions>(self)->user.ptr());
  return 0;
}

static int clear(PyObject* self) {
  nb::inst_ptr<GrowthOptions>(self)->user.reset();
  return 0;
}

static PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace spinney

// Options are keyword-only and without defaults, so that a misspelt or forgotten one is an error.
void init_growing(nb::module_& m) {
  using namespace spinney;
  nb::class_<RpartOptions>(m, "RpartOptions", "Options of rpart's conventions.")
      .def("__init__", &init_rpart, nb::kw_only(), "quirks"_a, "fold"_a, "closed_cuts"_a, "rows"_a, "price"_a.none(),
           "class_risk"_a, "response"_a.none(), "exposure"_a.none(), "class_factor"_a);
  nb::class_<SurrogateOptions>(m, "SurrogateOptions", "Options of surrogates and competing splits.")
      .def("__init__", &init_surrogates, nb::kw_only(), "present_only"_a, "max_competitors"_a, "max_surrogates"_a,
           "absent_disagrees"_a, "missing_fallback"_a, "case_weight"_a.none(), "rpart"_a.none());
  nb::class_<GrowthOptions>(m, "GrowthOptions", nb::type_slots(slots), "Options of tree growth.")
      .def("__init__", &init_options, nb::kw_only(), "max_depth"_a, "min_samples_split"_a, "min_samples_leaf"_a,
           "min_weight_leaf"_a, "min_impurity_decrease"_a, "min_purity"_a, "max_features"_a, "feature_weights"_a,
           "always_try"_a, "max_leaf_nodes"_a, "random_cuts"_a, "random_ties"_a, "charge_categories"_a, "row_weight"_a,
           "seed"_a, "monotonic_cst"_a, "interaction_cst"_a, "feature_costs"_a, "cost"_a.none(), "max_bins"_a,
           "n_jobs"_a, "surrogates"_a.none(), "user"_a.none());
}
