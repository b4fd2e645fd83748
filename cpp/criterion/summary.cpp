#include "criterion/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/any_order.h"
#include "base/math.h"
#include "criterion/entropy.h"
#include "criterion/median.h"
#include "criterion/misclassification.h"
#include "criterion/poisson.h"
#include "criterion/weighted_sum.h"

namespace spinney {

static double pair_impurity(const Target& target, const double* proba, std::size_t n_classes) {
  double sum = 0;
  for (std::size_t k = 1; k < n_classes; ++k)
    for (std::size_t other = 0; other < k; ++other)
      sum += target.pair_cost[k * n_classes + other] * proba[k] * proba[other];
  return 2 * sum;
}

static double class_impurity(const Target& target, const double* proba, std::size_t n_classes) {
  const Rule rule = target.rule;
  if (rule == Rule::generalised_gini) return pair_impurity(target, proba, n_classes);
  double sum = 0, most = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    const double p = proba[k];
    most = std::max(most, p);
    if (rule == Rule::entropy || rule == Rule::gain_ratio)
      sum -= p > 0 ? x_log_x(p) * bits_per_nat : 0.0;
    else
      sum += p * (1 - p);
  }
  return rule == Rule::misclassification ? 1 - most : sum;
}

static bool is_pure_class(const Target& target, const std::int64_t* stat) {
  if (target.is_two_class()) return stat[1] == 0 || stat[1] == stat[0];
  for (std::size_t k = 1; k <= target.value_width(); ++k)
    if (stat[k] != 0 && stat[k] != stat[0]) return false;
  return true;
}

bool is_pure(const Target& target, std::span<const Row> rows, const std::int64_t* stat) {
  if (is_class_rule(target.rule)) return is_pure_class(target, stat);
  const std::size_t p = target.input.n_outputs;
  const double* first = target.input.y + rows[0] * p;
  return std::all_of(rows.begin(), rows.end(),
                     [&](Row r) { return std::equal(first, first + p, target.input.y + r * p); });
}

// As below, for Gini of two classes: the most frequent case in small nodes of forests.
static Summary summarise_two_classes(const Target& target, const std::int64_t* stat, double* value) {
  Summary s;
  const auto all = static_cast<double>(stat[0]);
  s.weight = all * target.weight_unit;
  s.pure = stat[1] == 0 || stat[1] == stat[0];
  value[0] = static_cast<double>(stat[0] - stat[1]) / all;
  value[1] = static_cast<double>(stat[1]) / all;
  s.majority = std::max(value[0], value[1]);
  s.impurity = value[0] * (1 - value[0]) + value[1] * (1 - value[1]);
  return s;
}

static Summary summarise_classes(const Target& target, const std::int64_t* stat, double* value) {
  if (target.rule == Rule::gini && target.is_two_class() && target.input.n_classes[0] == 2)
    return summarise_two_classes(target, stat, value);
  Summary s;
  s.weight = static_cast<double>(stat[0]) * target.weight_unit;
  s.pure = is_pure_class(target, stat);
  s.majority = 1;
  const std::size_t n_outputs = target.input.n_outputs;
  const bool two_class = target.is_two_class();
  for (std::size_t o = 0; o < n_outputs; ++o) {
    const std::size_t begin = target.class_begin[o], end = target.class_begin[o + 1];
    double most = 0;
    for (std::size_t k = begin; k < end; ++k) {
      const std::int64_t count = !two_class ? stat[1 + k] : k == 1 ? stat[1] : stat[0] - stat[1];
      value[k] = static_cast<double>(count) / static_cast<double>(stat[0]);
      most = std::max(most, value[k]);
    }
    s.majority = std::min(s.majority, most);
    s.impurity += class_impurity(target, value + begin, end - begin) / static_cast<double>(n_outputs);
  }
  return s;
}

// Mean and squared (or Poisson) deviance of one output, relative to the lowest value: a pure leaf has exactly its rows'
// value. `y(i)` is a value, `i` of `places`; `sum(largest, term)` sums term(i), none larger than `largest`.
template <class Places, class Y, class Sum>
static double summarise_output(const Target& target, const Places& places, std::int64_t total, Y&& y, Sum&& sum,
                               double* value) {
  double low = y(places[0]), high = low;
  for (const auto i : places) {
    low = std::min(low, y(i));
    high = std::max(high, y(i));
  }
  *value = low;
  if (low == high && !counts_events(target.rule)) return 0;
  const auto weight = static_cast<double>(total);
  const double part = std::isfinite(high - low) ? 1 : 0.5;
  const double mean = *value =
      (part * low + sum(part * high - part * low, [&](auto i) { return part * y(i) - part * low; }) / weight) / part;
  if (!counts_events(target.rule)) {
    const double reach = high - low;
    return sum(reach * reach, [&](auto i) { return (y(i) - mean) * (y(i) - mean); }) / weight;
  }
  if (!(mean > 0)) return 0;
  const auto deviance = [&](auto i) { return y(i) > 0 ? y(i) * log_ieee(y(i) / mean) : 0.0; };
  const double largest = std::max(mean, std::abs(high * log_ieee(high / mean)));
  return std::max(0.0, sum(largest, deviance) / weight);
}

static double summarise_value(const Target& target, std::span<const Row> rows, std::size_t k, std::int64_t total,
                              double* value) {
  constexpr std::size_t few = 512;
  const std::size_t p = target.input.n_outputs;
  const double* y = target.input.y + k;
  if (target.fixed_weight.empty() && rows.size() <= few) {  // gathered once, not looked up in each pass
    std::array<double, few> near;
    near[0] = y[rows[0] * p];
    for (std::size_t i = 1; i < rows.size(); ++i) near[i] = y[rows[i] * p];
    const std::span<const double> values(near.data(), rows.size());
    const auto sum = [&](double largest, auto&& term) {
      if (!std::isfinite(largest)) return largest;
      AnyOrderSum all(largest, static_cast<double>(total));
      for (const double v : values) all.add(term(v));
      return all.value();
    };
    return summarise_output(target, values, total, [](double v) { return v; }, sum, value);
  }
  const auto sum = [&](double largest, auto&& term) { return weighted_sum(target, rows, total, largest, term); };
  return summarise_output(target, rows, total, [&](Row r) { return y[r * p]; }, sum, value);
}

static Summary summarise_values(const Target& target, std::span<const Row> rows, std::int64_t total, double* value) {
  Summary s;
  const std::size_t p = target.input.n_outputs;
  s.weight = static_cast<double>(total) * target.weight_unit;
  s.pure = is_pure(target, rows, nullptr);
  for (std::size_t k = 0; k < p; ++k)
    s.impurity += target.rule == Rule::absolute_error ? summarise_median(target, rows, k, value + k)
                                                      : summarise_value(target, rows, k, total, value + k);
  s.impurity = s.pure ? 0.0 : s.impurity / static_cast<double>(p);
  return s;
}

Summary summarise(const Target& target, std::span<const Row> rows, const std::int64_t* stat, double* value) {
  if (target.rule == Rule::user) return summarise_user(target, rows, value);
  return is_class_rule(target.rule) ? summarise_classes(target, stat, value)
                                    : summarise_values(target, rows, stat[0], value);
}

// The score of the unsplit node, for rules whose scores are sums over the two sides.
static double uncut_score(const Target& target, const std::int64_t* stat) {
  const double w = static_cast<double>(stat[0]);
  const std::size_t n_outputs = target.input.n_outputs;
  if (target.is_scalar()) {
    const double s = static_cast<double>(stat[1]);
    if (counts_events(target.rule)) return Poisson::term(s, w);
    return target.rule == Rule::misclassification ? Misclassification::majority(s, w) : Entropy::term(s, w);
  }
  double sum = 0;
  if (target.rule == Rule::misclassification) {
    for (std::size_t o = 0; o < n_outputs; ++o)
      sum += static_cast<double>(
          *std::max_element(stat + 1 + target.class_begin[o], stat + 1 + target.class_begin[o + 1]));
    return sum;
  }
  for (std::size_t k = 1; k <= target.value_width(); ++k) {
    const double s = static_cast<double>(stat[k]);
    sum += counts_events(target.rule) ? (s > 0 ? s * log_ieee(s / w) : 0.0) : x_log_x(s);
  }
  return counts_events(target.rule) ? sum : sum - static_cast<double>(n_outputs) * x_log_x(w);
}

static double pair_cost_of_two(const Target& target) { return target.pair_cost.size() > 1 ? target.pair_cost[1] : 0.0; }

double gain_of(const Target& target, double score, const std::int64_t* stat) {
  const double w = static_cast<double>(stat[0]);
  const double outputs = static_cast<double>(target.input.n_outputs);
  const double value_per_weight = target.value_unit / target.weight_unit;
  switch (target.rule) {
    case Rule::gini:
      return target.is_scalar() ? 2 * score / w : score / w / outputs;
    case Rule::generalised_gini:
      return target.is_scalar() ? 2 * pair_cost_of_two(target) * score / w : score / w;
    case Rule::chi2: {
      if (!target.is_scalar()) return score / outputs;
      const double s = static_cast<double>(stat[1]);
      return score * (1 / s + 1 / (w - s));
    }
    case Rule::entropy:
    case Rule::gain_ratio:
      return (score - uncut_score(target, stat)) * bits_per_nat / outputs;
    case Rule::misclassification:
      return (score - uncut_score(target, stat)) / outputs;
    case Rule::poisson:
    case Rule::rate:
      return (score - uncut_score(target, stat)) / outputs * value_per_weight;
    case Rule::absolute_error:
      return score * w;  // the scores are decreases
    case Rule::user:
      return score / target.weight_unit;  // in the user's units by contract
    case Rule::friedman_mse:
      return score / w * value_per_weight * value_per_weight;
    case Rule::squared_error:
      break;
  }
  return score / w * value_per_weight * value_per_weight / outputs;
}

}  // namespace spinney
