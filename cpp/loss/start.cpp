#include "loss/start.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/log_exp.h"
#include "base/pairwise.h"
#include "loss/distribution_rows.h"

namespace spinney {

namespace {

using Values = std::vector<double>;

constexpr int most_steps = 100, n_halvings = 60;
constexpr double close = 1e-12, far = 700, narrow = 0x1p-50;
constexpr double rounded = 1e-13;  // relative to the size of terms: exceeds the error of pairwise sums

template <class Term>
Values each_row(std::size_t n, Term term) {
  Values found(n);
  for (std::size_t r = 0; r < n; ++r) found[r] = term(r);
  return found;
}

// ---- means ----------------------------------------------------------------------------------------------

template <class Term>
double mean_of(const StartRows& rows, Term term) {
  const std::size_t n = rows.target.size();
  if (rows.weight == nullptr) return pairwise_sum(0, n, term) / static_cast<double>(n);
  return pairwise_sum(0, n, [&](std::size_t r) { return term(r) * rows.weight[r]; }) / pairwise_sum({rows.weight, n});
}

double offset_of(const StartRows& rows, std::size_t r) { return rows.offset == nullptr ? 0.0 : rows.offset[r]; }

// The mean of the targets minus their offsets, accurate to the last digit even far from 0.
double mean_residual(const StartRows& rows) {
  const auto residual = [&](std::size_t r) { return rows.target[r] - offset_of(rows, r); };
  const double first = mean_of(rows, residual);
  if (!std::isfinite(first)) return first;
  return first + mean_of(rows, [&](std::size_t r) { return residual(r) - first; });
}

double log_mean(const StartRows& rows, double power) {
  const double above =
      mean_of(rows, [&](std::size_t r) { return rows.target[r] * exp_of((1 - power) * offset_of(rows, r)); });
  const double below = mean_of(rows, [&](std::size_t r) { return exp_of((2 - power) * offset_of(rows, r)); });
  return log_of(above / below);
}

double quantile(const StartRows& rows, double level, bool is_relative) {
  std::vector<std::pair<double, double>> residuals;
  residuals.reserve(rows.target.size());
  for (std::size_t r = 0; r < rows.target.size(); ++r) {
    const double y = rows.target[r], weight = rows.weight == nullptr ? 1.0 : rows.weight[r];
    residuals.emplace_back(y - offset_of(rows, r), is_relative ? weight * relative_weight(y) : weight);
  }
  return weighted_quantile(residuals, level);
}

Values of_normal(const StartRows& rows) {
  const double mean = mean_residual(rows), least = least_deviation * std::max(1.0, std::abs(mean));
  const double* spread = rows.offset == nullptr ? nullptr : rows.offset + rows.target.size();
  const double variance = mean_of(rows, [&](std::size_t r) {
    const double off = (rows.target[r] - offset_of(rows, r) - mean) * (spread == nullptr ? 1.0 : exp_of(-spread[r]));
    return off * off;
  });
  return {mean, log_of(std::max(variance, least * least)) / 2};
}

Values of_log_normal(const StartRows& rows) {
  const Values logs = each_row(rows.target.size(), [&](std::size_t r) { return log_of(rows.target[r]); });
  return of_normal({logs, rows.weight, rows.offset, rows.n_scores});
}

// ---- distributions --------------------------------------------------------------------------------------

// Scores near those of least loss, from moments without offsets.
Values first_scores(Loss loss, const StartRows& rows) {
  const double mean = mean_of(rows, [&](std::size_t r) { return rows.target[r]; });
  const double spread = mean_of(rows, [&](std::size_t r) { return (rows.target[r] - mean) * (rows.target[r] - mean); });
  const double variance = std::max(spread, 1e-12 * mean * mean + 1e-300);
  if (loss == Loss::student_t) {
    const double median = quantile({rows.target, rows.weight, nullptr, 1}, 0.5, false);
    const Values sizes = each_row(rows.target.size(), [&](std::size_t r) { return std::abs(rows.target[r] - median); });
    const double middle = 1.4 * quantile({sizes, rows.weight, nullptr, 1}, 0.5, false);
    const double scale = middle > 0 ? middle : std::sqrt(variance);
    return {median, log_of(std::max(scale, least_deviation * std::max(1.0, std::abs(median)))), log_of(4.0)};
  }
  if (loss == Loss::gamma_distribution) return {log_of(mean), log_of(mean * mean / variance)};
  if (loss == Loss::negative_binomial)
    return {log_of(mean), log_of(mean * mean / std::max(variance - mean, 1e-3 * mean))};
  if (loss == Loss::beta) return {log_of(mean / (1 - mean)), log_of(std::max(mean * (1 - mean) / variance - 1, 0.01))};
  const double zeros = mean_of(rows, [&](std::size_t r) { return rows.target[r] > 0 ? 0.0 : 1.0; });
  const double counted = mean / (1 - zeros), additional = std::clamp(zeros - exp_of(-counted), 0.01, 0.99);
  return {log_of(counted), log_of(additional / (1 - additional))};
}

// Fisher scoring with the diagonal of the information; steps are halved until the loss does not rise.
Values of_distribution(Loss loss, const StartRows& rows) {
  constexpr int most_rounds = 100, most_halvings = 12;
  const std::size_t n = rows.target.size();
  Values constants = first_scores(loss, rows);
  const std::size_t width = constants.size();
  const NamedLoss named{loss, exp_of(2 * constants[1]), {}};  // the parameter is read if the loss has a location
  const double unit = named.traits().has_location ? std::sqrt(named.parameter) : 1.0;
  Values scores(width * n);
  const auto place = [&](const Values& at) {
    for (std::size_t i = 0; i < scores.size(); ++i)
      scores[i] = at[i / n] + (rows.offset == nullptr ? 0.0 : rows.offset[i]);
  };
  const ScoredRows scored{rows.target, scores.data(), rows.n_scores};
  const auto loss_at = [&](const Values& at) {
    place(at);
    const Values losses = row_losses(named, scored);
    return mean_of(rows, [&](std::size_t r) { return losses[r]; });
  };
  double least = loss_at(constants);
  for (int round = 0; round < most_rounds; ++round) {
    place(constants);
    const RowGradients found = row_gradients(named, scored);
    Values step(width);
    double longest = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const double g = mean_of(rows, [&](std::size_t r) { return found.gradients[k * n + r]; });
      const double h = mean_of(rows, [&](std::size_t r) { return found.hessians[k * n + r]; });
      const double most = k == 0 ? unit : 1.0;
      step[k] = std::clamp(-g / std::max(h, 1e-300), -most, most);
      longest = std::max(longest, std::abs(step[k]) / most);
    }
    if (longest < 1e-10) break;
    double factor = 1;
    bool is_lower = false;
    for (int i = 0; i < most_halvings && !is_lower; ++i, factor /= 2) {
      Values next(width);
      for (std::size_t k = 0; k < width; ++k)
        next[k] = bounded_score(loss, static_cast<std::uint32_t>(k), named.parameter, constants[k] + factor * step[k]);
      const double at_next = loss_at(next);
      is_lower = at_next < least;
      if (!is_lower) continue;
      constants = next;
      least = at_next;
    }
    if (!is_lower) break;
  }
  return constants;
}

// ---- classes --------------------------------------------------------------------------------------------

bool has_offset(const StartRows& rows) {
  return rows.offset != nullptr &&
         std::any_of(rows.offset, rows.offset + rows.target.size(), [](double v) { return v != 0; });
}

// Newton's method if there is an offset, with bounded steps.
double log_odds(const StartRows& rows) {
  const double fraction = mean_of(rows, [&](std::size_t r) { return rows.target[r]; });
  double constant = log_of(fraction / (1 - fraction));
  for (int i = 0; has_offset(rows) && i < most_steps; ++i) {
    const Values p = each_row(rows.target.size(), [&](std::size_t r) {
      return 1 / (1 + exp_of(-std::clamp(constant + rows.offset[r], -500.0, 500.0)));
    });
    const double slope = mean_of(rows, [&](std::size_t r) { return p[r] * (1 - p[r]); });
    const double found = mean_of(rows, [&](std::size_t r) { return p[r]; });
    const double step = std::clamp((fraction - found) / std::max(slope, 1e-300), -1.0, 1.0);
    constant += step;
    if (std::abs(step) <= close * (1 + std::abs(constant))) break;
  }
  return constant;
}

double half_log_odds(const StartRows& rows) {
  const double second = mean_of(rows, [&](std::size_t r) { return rows.target[r] * exp_of(-offset_of(rows, r)); });
  const double first = mean_of(rows, [&](std::size_t r) { return (1 - rows.target[r]) * exp_of(offset_of(rows, r)); });
  return log_of(second / first) / 2;
}

double largest_size(const Values& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

// Mean class probabilities at constants plus offsets.
Values mean_proba(const StartRows& rows, const Values& constants) {
  const std::size_t n = rows.target.size(), width = constants.size();
  Values proba(width * n);
  for (std::size_t r = 0; r < n; ++r) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t k = 0; k < width; ++k) most = std::max(most, constants[k] + rows.offset[k * n + r]);
    for (std::size_t k = 0; k < width; ++k)
      sum += proba[k * n + r] = exp_of(constants[k] + rows.offset[k * n + r] - most);
    for (std::size_t k = 0; k < width; ++k) proba[k * n + r] /= sum;
  }
  Values means(width);
  for (std::size_t k = 0; k < width; ++k) means[k] = mean_of(rows, [&](std::size_t r) { return proba[k * n + r]; });
  return means;
}

// Log frequencies of the classes, or the constants that reproduce them with an offset.
Values log_proba(const StartRows& rows) {
  Values proba(rows.n_scores, 0.0);
  for (std::size_t r = 0; r < rows.target.size(); ++r)
    proba[static_cast<std::size_t>(rows.target[r])] += rows.weight == nullptr ? 1.0 : rows.weight[r];
  const double total = pairwise_sum(proba);
  for (double& fraction : proba) fraction /= total;
  Values constants = each_row(proba.size(), [&](std::size_t k) { return log_of(proba[k]); });
  if (rows.offset == nullptr) return constants;
  for (int i = 0; i < most_steps; ++i) {
    const Values found = mean_proba(rows, constants);
    const Values step =
        each_row(proba.size(), [&](std::size_t k) { return log_of(proba[k] / std::max(found[k], 1e-300)); });
    for (std::size_t k = 0; k < step.size(); ++k) constants[k] += step[k];
    if (largest_size(step) <= close * (1 + largest_size(constants))) break;
  }
  const double mean = pairwise_sum(constants) / static_cast<double>(constants.size());
  for (double& constant : constants) constant -= mean;
  return constants;
}

// ---- roots of gradient sums ------------------------------------------------------------------------------

// Sign of the exact sum: non-overlapping partial sums, as in Shewchuk's "Adaptive precision floating-point arithmetic".
int exact_sign(const Values& terms) {
  Values parts;
  for (double x : terms) {
    std::size_t n = 0;
    for (double y : parts) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) parts[n++] = low;
      x = high;
    }
    parts.resize(n);
    parts.push_back(x);
  }
  for (std::size_t i = parts.size(); i-- > 0;)
    if (parts[i] != 0) return parts[i] > 0 ? 1 : -1;
  return 0;
}

struct Balance {
  double sum = 0;
  int sign = 0;
};

Balance balance_of(const Values& terms) {
  const double sum = pairwise_sum(terms);
  const double size = pairwise_sum(each_row(terms.size(), [&](std::size_t r) { return std::abs(terms[r]); }));
  if (std::abs(sum) <= rounded * size) return {sum, exact_sign(terms)};
  return {sum, (sum > 0) - (sum < 0)};
}

struct Bracket {
  double low, high;
};

// Close points at which the sum has different signs: false position with the Illinois modification.
template <class At>
Bracket narrowed(At balance_at, Bracket at) {
  auto [low, high] = at;
  const Balance first = balance_at(low), second = balance_at(high);
  if (first.sign >= 0 || second.sign < 0) return at;
  double at_low = first.sum, at_high = second.sum;
  int last = 0;
  for (int i = 0; i < most_steps && high - low > narrow; ++i) {
    const double fraction = at_low < at_high ? at_low / (at_low - at_high) : 0.5;
    const double middle = low + (high - low) * std::min(std::max(fraction, close), 1 - close);
    if (!(low < middle && middle < high)) break;
    const Balance found = balance_at(middle);
    if (found.sign < 0) {
      low = middle;
      at_low = std::min(found.sum, -0.0);
      if (last < 0) at_high /= 2;
      last = -1;
    } else {
      high = middle;
      at_high = std::max(found.sum, 0.0);
      if (last > 0) at_low /= 2;
      last = 1;
    }
  }
  return {low, high};
}

double balance(const NamedLoss& loss, const StartRows& rows) {
  const std::size_t n = rows.target.size();
  Values target(rows.target.begin(), rows.target.end()), offset(n, 0.0);
  double base = 0, scale = 1, reach = 0;
  if (loss.traits().is_shift_invariant) {
    for (std::size_t r = 0; r < n; ++r) target[r] -= offset_of(rows, r);
    base = mean_residual(rows);
    for (const double y : target) reach = std::max(reach, std::abs(y - base));
    scale = reach > 0 ? reach : 1;
    reach = 0;
  } else if (rows.offset != nullptr) {
    offset.assign(rows.offset, rows.offset + n);
    reach = largest_size(offset);
  }
  const TermsAt terms_at = [&](double at) {
    const Values scores = each_row(n, [&](std::size_t r) { return at + offset[r]; });
    Values terms = row_gradients(loss, {target, scores.data(), 1}).gradients;
    for (std::size_t r = 0; rows.weight != nullptr && r < n; ++r) terms[r] *= rows.weight[r];
    return terms;
  };
  return root_of_sum(terms_at, reach, base, scale);
}

}  // namespace

double root_of_sum(const TermsAt& terms_at, double reach, double base, double scale) {
  std::map<double, Balance> known;
  const auto balance_at = [&](double at) {
    const double place = base + scale * at;
    const auto found = known.find(place);
    return found != known.end() ? found->second : known.emplace(place, balance_of(terms_at(place))).first->second;
  };
  double high = 1 + reach / scale, low = -high;
  while (balance_at(high).sign < 0 && high < far) {
    low = high;
    high *= 2;
  }
  while (balance_at(low).sign > 0 && low > -far) {
    high = low;
    low *= 2;
  }
  const Bracket near = narrowed(balance_at, {low, high});
  for (int i = 0; i < n_halvings; ++i) {
    const double middle = (low + high) / 2;
    const bool is_below = middle <= near.low || (middle < near.high && balance_at(middle).sign < 0);
    (is_below ? low : high) = middle;
  }
  return base + scale * (low + high) / 2;
}

std::vector<double> best_constants(const NamedLoss& loss, const StartRows& rows) {
  const LossTraits& traits = loss.traits();
  switch (traits.start) {
    case LossStart::zero:
      return Values(rows.n_scores, 0.0);
    case LossStart::mean:
      return {mean_residual(rows)};
    case LossStart::quantile:
      return {quantile(rows, traits.level(loss.parameter), traits.is_relative)};
    case LossStart::log_mean:
      return {log_mean(rows, traits.power > 0 ? traits.power : loss.parameter)};
    case LossStart::log_odds:
      return {log_odds(rows)};
    case LossStart::half_log_odds:
      return {half_log_odds(rows)};
    case LossStart::log_proba:
      return log_proba(rows);
    case LossStart::normal:
      return of_normal(rows);
    case LossStart::log_normal:
      return of_log_normal(rows);
    case LossStart::distribution:
      return of_distribution(loss.loss, rows);
    case LossStart::balance:
      return {balance(loss, rows)};
  }
  throw std::logic_error("This loss has no constant start.");
}

}  // namespace spinney
