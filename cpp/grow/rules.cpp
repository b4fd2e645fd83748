#include "grow/rules.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/math.h"
#include "base/random.h"
#include "criterion/fixed_weights.h"

namespace spinney {

Rules::Rules(const Table& t, const Target& y, const GrowParams& p)
    : table(t), target(y), params(p), root_weight_(y.total_weight()) {
  const SurrogateParams& surrogate_params = params.surrogate_params;
  if (surrogate_params.case_weight == nullptr) return;
  if (surrogate_params.rpart) {
    case_weight_.assign(surrogate_params.case_weight, surrogate_params.case_weight + table.n_rows);
    return;
  }
  // integers whose sums are exact in doubles
  const FixedWeights fixed(surrogate_params.case_weight, table.n_rows, target.rows, 52);
  case_weight_.assign(fixed.by_row.begin(), fixed.by_row.end());
  two_lightest_ = INFINITY;
  for (const Row r : target.rows) two_lightest_ = std::min(two_lightest_, 2 * case_weight_[r]);
}

OpenNode Rules::root() const {
  OpenNode node;
  node.end = target.rows.size();
  node.key = derive(params.seed, 0);
  for (std::uint32_t g = 0; g < params.interaction_cst.size(); ++g) node.groups.push_back(g);
  std::vector<bool> allowed(table.n_columns(), params.interaction_cst.empty());
  for (const auto& group : params.interaction_cst)
    for (const std::uint32_t f : group) allowed[f] = true;
  if (!params.columns.empty())
    for (std::uint32_t f = 0; f < table.n_columns(); ++f)
      if (!std::binary_search(params.columns.begin(), params.columns.end(), f)) allowed[f] = false;
  for (std::uint32_t f = 0; f < table.n_columns(); ++f)
    if (allowed[f]) node.features.push_back(f);
  return node;
}

bool Rules::too_small(Row n, std::uint32_t depth) const {
  return depth >= params.max_depth || n < params.min_samples_split || n / 2 < params.min_samples_leaf;
}

bool Rules::may_split(const OpenNode& node, const Summary& summary) const {
  return !too_small(node.n(), node.depth) && !summary.pure && summary.weight >= 2 * params.min_weight_leaf &&
         summary.majority < params.min_purity;
}

Limits Rules::limits(const OpenNode& node, std::uint32_t feature) const {
  Limits limits;
  limits.min_leaf = params.min_samples_leaf;
  limits.min_weight = params.min_weight_leaf / target.weight_unit;
  limits.bounded =
      bounded() && params.monotonic_cst[feature] != 0;  // the children of other columns are clipped instead
  if (limits.bounded) {
    limits.lower = node.lower;
    limits.upper = node.upper;
    limits.direction = params.monotonic_cst[feature];
  }
  limits.from_highest = params.surrogate_params.rpart && target.is_two_class();
  limits.enumerate_all = params.surrogate_params.rpart;
  limits.watch_ties = params.surrogate_params.response != nullptr;
  return limits;
}

// One cut captures one direction in which rows differ: K classes differ in K - 1 directions, several outputs in the sum
// of theirs.
static double n_directions(const Target& target, const std::int64_t* stat) {
  if (target.is_scalar()) return 1;
  if (!is_class_rule(target.rule)) return static_cast<double>(target.input.n_outputs);
  std::size_t n_present = 0;
  for (std::size_t k = 1; k <= target.value_width(); ++k) n_present += stat[k] > 0;
  return static_cast<double>(std::max(n_present, target.input.n_outputs + 1) - target.input.n_outputs);
}

// The best of all sets of k uninformative categories gains up to (k - 1) / (n - 1) of the node's impurity: all of it,
// if each category has one row. The best cut of an uninformative number column gains some of it too, so few categories
// are not charged.
void Rules::charge(const OpenNode& node, Candidate& candidate) const {
  constexpr double n_free = 10;
  const double k = candidate.n_ordered;
  if (!params.charge_categories || !candidate.found() || k <= n_free) return;
  const double counted = params.row_weight > 0
                             ? static_cast<double>(node.stat[0]) * target.weight_unit / params.row_weight
                             : static_cast<double>(node.n());
  const double fraction = (k - n_free) / (std::max(counted, k) - 1) / n_directions(target, node.stat.data());
  const double impurity = target.rule == Rule::chi2 ? 1.0 : node.impurity;
  candidate.charge = fraction * impurity * static_cast<double>(node.stat[0]);
  if (!(net_gain(candidate, node) > 0)) candidate.score = no_score;
}

double Rules::net_gain(const Candidate& candidate, const OpenNode& node) const {
  return gain_of(target, candidate.score, node.stat.data()) - candidate.charge;
}

std::optional<Choice> Rules::choose(std::span<const std::uint32_t> features, std::vector<Candidate>& candidates,
                                    const OpenNode& node) const {
  std::size_t best = candidates.size();
  if (target.rule == Rule::gain_ratio) {
    std::vector<CutGain> gains(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].found()) gains[i] = {net_gain(candidates[i], node), static_cast<double>(node.stat[0])};
    best = choose_by_gain_ratio(features, candidates, gains);
  } else if (!params.feature_costs.empty()) {
    best = choose_by_cost(features, candidates, node);
  } else {
    const bool charged = std::any_of(candidates.begin(), candidates.end(), [](auto& c) { return c.charge > 0; });
    const auto worth = [&](std::size_t i) { return charged ? net_gain(candidates[i], node) : candidates[i].score; };
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].found() && (best == candidates.size() || worth(i) > worth(best))) best = i;
  }
  if (best == candidates.size()) return std::nullopt;
  Choice choice;
  choice.feature = features[best];
  choice.gain = net_gain(candidates[best], node);
  choice.merit = per_cost(choice.gain, choice.feature);
  if (!is_enough(choice.gain)) return std::nullopt;
  choice.candidate = std::move(candidates[best]);
  return choice;
}

bool Rules::is_enough(double gain) const {
  constexpr double slack = 2.220446049250313e-16;  // as scikit-learn: a decrease of exactly the minimum is enough
  const bool required =
      params.min_impurity_decrease > 0;  // otherwise rounding below 0 must not prevent a split without gain
  return !required || improvement(gain) + slack >= params.min_impurity_decrease;
}

// A gain divided by the column's cost; a negative gain (by rounding, or under a non-concave criterion) is multiplied.
double Rules::per_cost(double gain, std::uint32_t feature) const {
  if (params.feature_costs.empty()) return gain;
  return gain > 0 ? gain / params.feature_costs[feature] : gain * params.feature_costs[feature];
}

// The largest gain per cost; ties go to the cheaper column, then to the first.
std::size_t Rules::choose_by_cost(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                                  const OpenNode& node) const {
  std::size_t best = candidates.size();
  std::pair<double, double> most;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].found()) continue;
    const double merit = per_cost(net_gain(candidates[i], node), features[i]);
    const std::pair<double, double> rank{merit, -params.feature_costs[features[i]]};
    if (best != candidates.size() && rank <= most) continue;
    most = rank;
    best = i;
  }
  return best;
}

// C4.5: among the columns with at least average gain (per cost), the largest gain per bit of split information.
std::size_t Rules::choose_by_gain_ratio(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                                        std::span<const CutGain> gains) const {
  double sum = 0, heaviest = 0;
  std::size_t n_found = 0, best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].found()) continue;
    sum += per_cost(gains[i].gain, features[i]);
    heaviest = std::max(heaviest, gains[i].weight);
    ++n_found;
  }
  const double slack = 1e-12 * heaviest;
  double best_ratio = no_score;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].found()) continue;
    const double gain = per_cost(gains[i].gain, features[i]);
    if (gain < sum / static_cast<double>(n_found) - slack) continue;
    const double fraction = candidates[i].w_left / gains[i].weight;
    const double information = -(x_log_x(fraction) + x_log_x(1 - fraction)) * bits_per_nat;
    const double ratio = gain / information;
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = i;
    }
  }
  return best;
}

std::size_t Rules::choose_by_gains(std::span<const std::uint32_t> features, std::span<const Candidate> candidates,
                                   std::span<const CutGain> gains) const {
  if (target.rule == Rule::gain_ratio) return choose_by_gain_ratio(features, candidates, gains);
  std::size_t best = candidates.size();
  std::tuple<double, double, double> most;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].found()) continue;
    const double price = params.feature_costs.empty() ? 1.0 : params.feature_costs[features[i]];
    // gains that are equal only by rounding are compared by their scores
    const std::tuple<double, double, double> rank{per_cost(gains[i].gain, features[i]), -price, candidates[i].score};
    if (best != candidates.size() && rank <= most) continue;
    most = rank;
    best = i;
  }
  return best;
}

void Rules::inherit(const OpenNode& parent, const Choice& choice, OpenNode& left, OpenNode& right) const {
  inherit(parent, choice, parent.features, left, right);
}

void Rules::inherit(const OpenNode& parent, const Choice& choice, std::vector<std::uint32_t> features, OpenNode& left,
                    OpenNode& right) const {
  std::vector<std::uint32_t> groups;
  if (!params.interaction_cst.empty()) {
    std::vector<bool> allowed(table.n_columns(), false);
    for (const std::uint32_t g : parent.groups) {
      const auto& group = params.interaction_cst[g];
      if (std::find(group.begin(), group.end(), choice.feature) == group.end()) continue;
      groups.push_back(g);
      for (const std::uint32_t f : group) allowed[f] = true;
    }
    std::erase_if(features, [&](std::uint32_t f) { return !allowed[f]; });
  }
  for (OpenNode* child : {&left, &right}) {
    child->depth = parent.depth + 1;
    child->key = derive(parent.key, child == &left ? 1 : 2);
    child->lower = parent.lower;
    child->upper = parent.upper;
    if (!groups.empty()) child->groups = groups;
  }
  if (!features.empty()) left.features = features;
  right.features = std::move(features);
}

void Rules::bound_values(const OpenNode& parent, const Choice& choice, double left_mean, double right_mean,
                         OpenNode& left, OpenNode& right) const {
  const int direction = params.monotonic_cst[choice.feature];
  if (direction == 0) return;
  const auto within = [&](double v) { return std::clamp(v, parent.lower, parent.upper); };
  const double middle = within(left_mean) / 2 + within(right_mean) / 2;
  (direction > 0 ? left.upper : left.lower) = middle;
  (direction > 0 ? right.lower : right.upper) = middle;
}

// Siblings share a bound, so values on either side of it cannot cross.
void Rules::clip_value(const OpenNode& node, double* value) const {
  if (is_class_rule(target.rule)) {
    value[1] = std::clamp(value[1], node.lower, node.upper);
    value[0] = 1 - value[1];
    return;
  }
  const double unit = target.value_unit / target.weight_unit;
  const auto in_users_units = [&](double bound) { return bound * unit + target.offset[0]; };
  value[0] = std::clamp(value[0], in_users_units(node.lower), in_users_units(node.upper));
}

void write_split(Tree& tree, std::size_t node, const SplitRecord& split) {
  tree.feature[node] = static_cast<std::int32_t>(split.feature);
  tree.flags[node] = static_cast<std::uint8_t>((split.missing_left ? Tree::missing_left : 0) |
                                               (split.is_category ? Tree::category : 0) |
                                               (split.default_left ? Tree::default_left : 0) |
                                               (split.stops ? Tree::stops : 0) | (split.alone ? Tree::alone : 0));
  if (split.is_category)
    tree.set[node] = add_set(tree.sets, split.left_codes, split.right_codes, split.default_left);
  else
    tree.threshold[node] = split.threshold;
}

}  // namespace spinney
