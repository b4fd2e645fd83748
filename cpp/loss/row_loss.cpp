#include "loss/row_loss.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/math.h"
#include "loss/distribution_rows.h"
#include "loss/losses.h"

namespace spinney {

namespace {

template <class Type, class Work>
bool run_if_single(Work& work) {
  if constexpr (requires { Type::at(0.0, 0.0, 0.0).hessian; }) {
    work.template operator()<Type>();
    return true;
  }
  return false;
}

// Calls `work` with the type of a single-score loss.
template <class Work>
void with_type(Loss loss, Work work) {
  bool is_done = false;
#define SPINNEY_LOSS_RUN(id, Type, ...) is_done = is_done || (loss == Loss::id && run_if_single<Type>(work));
  SPINNEY_LOSSES(SPINNEY_LOSS_RUN)
#undef SPINNEY_LOSS_RUN
  if (!is_done) throw std::invalid_argument("This loss is not a function of a single score.");
}

// Softmax of each row: by class and row, and the log-sum-exp.
std::vector<double> proba_of(const ScoredRows& rows, std::vector<double>* log_sums) {
  const std::size_t n = rows.target.size();
  std::vector<double> proba(n * rows.n_scores);
  if (log_sums != nullptr) log_sums->resize(n);
  for (std::size_t r = 0; r < n; ++r) {
    double most = rows.score(0)[r], sum = 0;
    for (std::uint32_t k = 1; k < rows.n_scores; ++k) most = std::max(most, rows.score(k)[r]);
    for (std::uint32_t k = 0; k < rows.n_scores; ++k) sum += proba[k * n + r] = exp_ieee(rows.score(k)[r] - most);
    for (std::uint32_t k = 0; k < rows.n_scores; ++k) proba[k * n + r] /= sum;
    if (log_sums != nullptr) (*log_sums)[r] = most + log_ieee(sum);
  }
  return proba;
}

RowGradients gradients_of_classes(const ScoredRows& rows) {
  const std::size_t n = rows.target.size();
  const double factor = MultinomialLoss::curvature(rows.n_scores);
  RowGradients found{proba_of(rows, nullptr), {}};
  found.hessians.reserve(found.gradients.size());
  for (const double p : found.gradients) found.hessians.push_back(factor * p * (1.0 - p));
  for (std::size_t r = 0; r < n; ++r) found.gradients[static_cast<std::size_t>(rows.target[r]) * n + r] -= 1;
  return found;
}

RowGradients gradients_of_ordinal(const std::vector<double>& cuts, const ScoredRows& rows) {
  const std::size_t n = rows.target.size();
  RowGradients found{std::vector<double>(n), std::vector<double>(n)};
  for (std::size_t r = 0; r < n; ++r) {
    const auto at = OrdinalLoss::at(static_cast<std::size_t>(rows.target[r]), rows.scores[r], cuts.data(), cuts.size());
    found.gradients[r] = at.gradient;
    found.hessians[r] = at.hessian;
  }
  return found;
}

std::vector<const double*> columns_of(const ScoredRows& rows) {
  std::vector<const double*> found;
  for (std::uint32_t k = 0; k < rows.n_scores; ++k) found.push_back(rows.score(k));
  return found;
}

RowGradients gradients_of_distribution(const NamedLoss& loss, const ScoredRows& rows) {
  const std::size_t n = rows.target.size();
  RowGradients found{std::vector<double>(rows.n_scores * n), std::vector<double>(rows.n_scores * n)};
  std::vector<double*> gradients, hessians;
  for (std::uint32_t k = 0; k < rows.n_scores; ++k) {
    gradients.push_back(found.gradients.data() + k * n);
    hessians.push_back(found.hessians.data() + k * n);
  }
  const std::vector<const double*> scores = columns_of(rows);
  fill_distribution_gradients(loss.loss, loss.parameter, {rows.target.data(), scores.data(), n}, gradients.data(),
                              hessians.data());
  return found;
}

}  // namespace

Loss loss_named(std::string_view name) {
  for (std::size_t i = 0; i < n_losses; ++i)
    if (name == all_losses[i].name) return static_cast<Loss>(i);
  throw std::invalid_argument("There is no loss " + std::string(name) + " in the table of losses.");
}

std::vector<double> row_losses(const NamedLoss& loss, const ScoredRows& rows) {
  const std::size_t n = rows.target.size();
  std::vector<double> found(n);
  if (loss.loss == Loss::multinomial) {
    proba_of(rows, &found);
    for (std::size_t r = 0; r < n; ++r) found[r] -= rows.score(static_cast<std::uint32_t>(rows.target[r]))[r];
  } else if (loss.traits().is_distribution()) {
    const std::vector<const double*> scores = columns_of(rows);
    fill_distribution_losses(loss.loss, loss.parameter, {rows.target.data(), scores.data(), n}, found.data());
  } else if (loss.loss == Loss::ordinal) {
    for (std::size_t r = 0; r < n; ++r)
      found[r] = OrdinalLoss::value(static_cast<std::size_t>(rows.target[r]), rows.scores[r], loss.cuts.data(),
                                    loss.cuts.size());
  } else {
    with_type(loss.loss, [&]<class Type>() {
      for (std::size_t r = 0; r < n; ++r) found[r] = Type::value(rows.target[r], rows.scores[r], loss.parameter);
    });
  }
  return found;
}

RowGradients row_gradients(const NamedLoss& loss, const ScoredRows& rows) {
  if (loss.loss == Loss::multinomial) return gradients_of_classes(rows);
  if (loss.traits().is_distribution()) return gradients_of_distribution(loss, rows);
  if (loss.loss == Loss::ordinal) return gradients_of_ordinal(loss.cuts, rows);
  const std::size_t n = rows.target.size();
  const bool is_of_distance = loss.traits().unit != LossUnit::none;
  RowGradients found{std::vector<double>(n), std::vector<double>(n)};
  with_type(loss.loss, [&]<class Type>() {
    for (std::size_t r = 0; r < n; ++r) {
      const auto at = Type::at(rows.target[r], rows.scores[r], loss.parameter);
      found.gradients[r] = is_of_distance && rows.target[r] == rows.scores[r] ? 0.0 : at.gradient;
      found.hessians[r] = at.hessian;
    }
  });
  return found;
}

double relative_weight(double target) { return PercentageLoss::weight(target); }

double weighted_quantile(std::vector<std::pair<double, double>>& values, double fraction) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  const double wanted = fraction * total;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    below += values[i].second;
    if (below > wanted * (1 + 1e-12)) return values[i].first;
    if (below >= wanted * (1 - 1e-12) && i + 1 < values.size()) return (values[i].first + values[i + 1].first) / 2;
  }
  return values.empty() ? 0.0 : values.back().first;
}

double delta_of(Loss loss, double fraction, std::vector<std::pair<double, double>>& sizes) {
  double delta = weighted_quantile(sizes, fraction);
  if (!traits_of(loss).is_smooth || delta > 0) return delta;
  for (const auto& [size, weight] : sizes)  // nearly all residuals are 0
    delta = std::max(delta, weight > 0 ? size : 0.0);
  return delta > 0 ? delta : 1;
}

}  // namespace spinney
