#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>

#include "base/threads.h"
#include "boosting_handles.h"
#include "loss/row_loss.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

nb::dict losses() {
  nb::dict all;
  for (const LossTraits& loss : all_losses) {
    if (loss.is_outside) continue;
    nb::dict traits;
    traits["of_classes"] = loss.of_classes();
    traits["of_two_classes"] = loss.of_two_classes;
    traits["refits_leaves"] = loss.refits_leaves();
    traits["tempers_steps"] = loss.tempers_steps;
    all[loss.name] = traits;
  }
  return all;
}

// By part: name of the loss, its parameter, number of scores, weight in the sum.
using LossParts = std::vector<std::tuple<std::string, double, std::uint32_t, double>>;

std::vector<LossPart> read_parts(const LossParts& given) {
  std::vector<LossPart> parts;
  for (const auto& [name, parameter, n_scores, weight] : given) {
    const Loss loss = loss_named(name);
    if (n_scores < 1 || (n_scores > 1 && !traits_of(loss).has_scores() && !traits_of(loss).is_outside))
      throw nb::value_error("losses: this one has one score");
    parts.push_back({loss, parameter, n_scores, weight});
  }
  if (parts.empty()) throw nb::value_error("losses: at least one");
  return parts;
}

// By split: its column, threshold, categories that go left, and the places of the splits of its sides (0: none).
using ForcedSplits =
    std::vector<std::tuple<std::uint32_t, double, std::vector<std::uint32_t>, std::uint32_t, std::uint32_t>>;

std::vector<ForcedSplit> read_forced(const ForcedSplits& given) {
  std::vector<ForcedSplit> splits;
  for (const auto& [feature, threshold, codes, left, right] : given) {
    for (const std::uint32_t below : {left, right})  // each is named once at most, and after its parent
      if (below != 0 && (below <= splits.size() || below >= given.size()))
        throw nb::value_error("forced_splits: no such split");
    splits.push_back({feature, threshold, codes, left, right});
  }
  return splits;
}

void init_options(BoostingOptions* self, const LossParts& losses, std::uint32_t max_bins, double subsample,
                  bool draws_by_gradient, double top_share, std::uint32_t n_parallel_trees, double drop_rate,
                  double skip_drop, std::uint32_t max_drop, bool drops_by_weight, double learning_rate,
                  std::uint32_t steps_grow_after, std::uint32_t max_leaf_nodes, std::uint32_t max_depth,
                  bool depth_wise, bool symmetric, Row min_samples_split, Row min_samples_leaf, double min_hessian_leaf,
                  double min_gain, double l2_regularization, double l1_regularization, double max_step,
                  bool temper_steps, double longest_step, bool vector_leaves, double max_features_per_tree,
                  double max_features_per_level, double max_features, std::uint32_t max_one_hot,
                  double category_smoothing, double category_l2, std::vector<std::vector<std::int8_t>> monotonic_cst,
                  std::vector<std::vector<std::uint32_t>> interaction_cst, std::vector<double> feature_costs,
                  std::vector<double> feature_weights, const ForcedSplits& forced_splits, double hierarchical_shrinkage,
                  std::vector<std::uint8_t> linear_columns, double linear_l2, std::uint64_t seed, int n_jobs) {
  if (max_bins < 2 || max_bins > 65535) throw nb::value_error("max_bins: 2 to 65535");
  if (n_parallel_trees < 1) throw nb::value_error("n_parallel_trees: at least 1");
  BoostingParams p;
  p.parts = read_parts(losses);
  p.max_bins = max_bins;
  p.subsample = subsample;
  p.draws_by_gradient = draws_by_gradient;
  p.certain_share = top_share;
  p.n_parallel_trees = n_parallel_trees;
  p.drops = {drop_rate, skip_drop, max_drop, drops_by_weight};
  p.hierarchical_shrinkage = hierarchical_shrinkage;
  p.lines = {std::move(linear_columns), linear_l2};
  p.temper_steps = temper_steps;
  p.vector_leaves = vector_leaves;
  p.steps_grow_after = steps_grow_after;
  BoostParams& t = p.tree;
  t.learning_rate = learning_rate;
  t.max_leaf_nodes = max_leaf_nodes;
  t.max_depth = max_depth;
  t.depth_wise = depth_wise;
  t.symmetric = symmetric;
  t.min_samples_split = min_samples_split;
  t.min_samples_leaf = min_samples_leaf;
  t.min_hessian_leaf = min_hessian_leaf;
  t.min_gain = min_gain;
  t.l2_regularization = l2_regularization;
  t.l1_regularization = l1_regularization;
  t.max_step = max_step;
  t.longest_step = longest_step;
  t.max_features_per_tree = max_features_per_tree;
  t.max_features_per_level = max_features_per_level;
  t.max_features = max_features;
  t.max_one_hot = max_one_hot;
  t.category_smoothing = category_smoothing;
  t.category_l2 = category_l2;
  if (monotonic_cst.size() == 1)
    t.monotonic_cst = std::move(monotonic_cst[0]);
  else if (monotonic_cst.empty() || monotonic_cst.size() == p.n_scores())
    p.monotonic_cst = std::move(monotonic_cst);
  else
    throw nb::value_error("monotonic_cst: for all scores, or by score");
  t.interaction_cst = std::move(interaction_cst);
  t.feature_costs = std::move(feature_costs);
  t.feature_weights = std::move(feature_weights);
  t.forced_splits = read_forced(forced_splits);
  t.seed = seed;
  t.n_threads = resolve_threads(n_jobs);
  new (self) BoostingOptions{std::move(p)};
}

}  // namespace

void check_columns(const BoostingParams& params, std::size_t n_columns) {
  const BoostParams& t = params.tree;
  const auto check = [&](const std::vector<std::int8_t>& monotone) {
    if (monotone.size() != n_columns) throw nb::value_error("monotonic_cst: one entry per column");
  };
  if (!t.monotonic_cst.empty()) check(t.monotonic_cst);
  for (const auto& monotone : params.monotonic_cst) check(monotone);
  if (!t.feature_costs.empty() && t.feature_costs.size() != n_columns)
    throw nb::value_error("feature_costs: one entry per column");
  if (!t.feature_weights.empty() && t.feature_weights.size() != n_columns)
    throw nb::value_error("feature_weights: one entry per column");
  if (!params.lines.columns.empty() && params.lines.columns.size() != n_columns)
    throw nb::value_error("linear_columns: one entry per column");
  for (const ForcedSplit& split : t.forced_splits)
    if (split.feature >= n_columns) throw nb::value_error("forced_splits: no such column");
  for (const auto& group : t.interaction_cst)
    for (const std::uint32_t f : group)
      if (f >= n_columns) throw nb::value_error("interaction_cst: no such column");
}

}  // namespace spinney

void init_boosting_options(nb::module_& m) {
  using namespace spinney;
  // As for growing: by name alone and without defaults, so that an option that is misspelt or forgotten is an error.
  nb::class_<BoostingOptions>(m, "BoostingOptions", "How rounds of trees are to learn.")
      .def("__init__", &init_options, nb::kw_only(), "losses"_a, "max_bins"_a, "subsample"_a, "draws_by_gradient"_a,
           "top_share"_a, "n_parallel_trees"_a, "drop_rate"_a, "skip_drop"_a, "max_drop"_a, "drops_by_weight"_a,
           "learning_rate"_a, "steps_grow_after"_a, "max_leaf_nodes"_a, "max_depth"_a, "depth_wise"_a, "symmetric"_a,
           "min_samples_split"_a, "min_samples_leaf"_a, "min_hessian_leaf"_a, "min_gain"_a, "l2_regularization"_a,
           "l1_regularization"_a, "max_step"_a, "temper_steps"_a, "longest_step"_a, "vector_leaves"_a,
           "max_features_per_tree"_a, "max_features_per_level"_a, "max_features"_a, "max_one_hot"_a,
           "category_smoothing"_a, "category_l2"_a, "monotonic_cst"_a, "interaction_cst"_a, "feature_costs"_a,
           "feature_weights"_a, "forced_splits"_a, "hierarchical_shrinkage"_a, "linear_columns"_a, "linear_l2"_a,
           "seed"_a, "n_jobs"_a);
  m.def("losses", &losses, nb::sig("def losses() -> dict[str, dict[str, bool]]"),
        "Losses by name, and what they are like.");
}
