#include "growing.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/threads.h"
#include "user_criterion.h"

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
  throw nb::value_error(("unknown criterion: " + name).c_str());
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
  p.column_weights = option<std::vector<double>>(o, "feature_weights");
  p.always = option<std::vector<std::uint32_t>>(o, "always_try");
  for (std::uint32_t f = 0; f < p.column_weights.size(); ++f)
    if (p.column_weights[f] > 0) p.columns.push_back(f);
  p.max_leaf_nodes = option<std::uint32_t>(o, "max_leaf_nodes");
  p.random_cuts = option<bool>(o, "random_cuts");
  p.seed = option<std::uint64_t>(o, "seed");
  p.monotone = option<std::vector<std::int8_t>>(o, "monotone");
  p.feature_costs = option<std::vector<double>>(o, "feature_costs");
  p.groups = option<std::vector<std::vector<std::uint32_t>>>(o, "groups");
  p.n_threads = resolve_threads(option<int>(o, "n_jobs"));
  return p;
}

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
  if (!p.column_weights.empty() && (p.column_weights.size() != n_columns || p.columns.empty()))
    throw nb::value_error("feature_weights: one entry per column, and not all 0");
  for (std::size_t i = 0; i < p.always.size(); ++i) {
    const std::uint32_t f = p.always[i];
    if (f >= n_columns || (i > 0 && f <= p.always[i - 1])) throw nb::value_error("always_try: ascending columns");
    if (!p.column_weights.empty() && !(p.column_weights[f] > 0)) throw nb::value_error("always_try: of weight 0");
  }
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

GrowthRequest::GrowthRequest(const TableHandle& table, const std::string& criterion, const nb::object& target,
                             std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight,
                             const nb::dict& options)
    : rule(rule_named(criterion)), weight_(std::move(weight)) {
  if (is_class_rule(rule)) {
    codes_ = nb::cast<Codes2>(target);
    input.n_rows = codes_->shape(0);
    input.n_outputs = codes_->shape(1);
    input.codes = codes_->data();
    if (n_classes.size() != input.n_outputs) throw nb::value_error("n_classes: one entry per output");
    for (std::size_t i = 0; i < input.n_rows * input.n_outputs; ++i)
      if (input.codes[i] < 0 || static_cast<std::uint32_t>(input.codes[i]) >= n_classes[i % input.n_outputs])
        throw nb::value_error("a class code is out of range");
    input.n_classes = std::move(n_classes);
    if (rule == Rule::generalised_gini) {
      cost_ = nb::cast<Doubles2>(options["cost"]);
      if (input.n_outputs != 1 || cost_->shape(0) != input.n_classes[0] || cost_->shape(1) != input.n_classes[0])
        throw nb::value_error("cost: one row and one column per class");
      input.cost = cost_->data();
    }
  } else {
    values_ = nb::cast<Doubles2>(target);
    input.n_rows = values_->shape(0);
    input.n_outputs = values_->shape(1);
    input.y = values_->data();
  }
  if (input.n_rows != table.table.n_rows || input.n_outputs == 0)
    throw nb::value_error("target and table differ in rows");
  if (weight_) {
    if (weight_->shape(0) != input.n_rows) throw nb::value_error("weights and table differ in rows");
    input.weight = weight_->data();
    if (std::none_of(input.weight, input.weight + input.n_rows, [](double w) { return w > 0; }))
      throw nb::value_error("no row has a positive weight");
  }
  if (input.n_rows == 0) throw nb::value_error("the table has no rows");
  params = read_params(options);
  params.weighing = read_weighing(options["weighing"], input.n_rows, table.table.n_columns(), arrays_);
  const std::size_t n_factors = params.weighing.class_factor.size();
  if (params.weighing.response != nullptr && n_factors != (is_class_rule(rule) ? input.n_classes[0] : 0))
    throw nb::value_error("class_factor: one entry per class");
  const std::size_t n_risks = is_class_rule(rule) ? std::size_t{input.n_classes[0]} * input.n_classes[0] : 0;
  if (params.weighing.price >= 0 && params.weighing.class_risk.size() != n_risks)
    throw nb::value_error("class_risk: one entry per pair of classes");
  check_params(params, table.table.n_columns());
  input.user = read_user(rule, options, input.n_outputs);
  if (input.user != nullptr && !input.user->runs_in_parallel()) params.n_threads = 1;
  max_bins = option<std::uint32_t>(options, "max_bins");
  if (max_bins > 65535) throw nb::value_error("max_bins is at most 65535");
}

}  // namespace spinney
