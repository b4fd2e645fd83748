#include "predict/link.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace spinney {

// Two classes; the probability of the second is a function of the score.
template <class Proba>
static void two_class_proba(const double* scores, std::size_t n_rows, double* proba, Proba proba_of) {
  for (std::size_t r = 0; r < n_rows; ++r) {
    const double second = proba_of(scores[r]);
    proba[2 * r] = 1.0 - second;
    proba[2 * r + 1] = second;
  }
}

static double logistic(double score) { return 1.0 / (1.0 + exp_ieee(-score)); }

// The probability at which the score has minimum expected loss, where the gradients of the two classes cancel. Both are
// divided by (p (1 - p))^gamma, p the larger logistic probability, so that neither vanishes.
static double focal_proba(double score, double gamma) {
  const double size = std::min(std::abs(score), 700.0), e = exp_ieee(-size), log_factor = log_ieee(1.0 + e);
  const double p = 1.0 / (1.0 + e), q = e / (1.0 + e), log_p = -log_factor, log_q = -size - log_factor;
  const double of_winner = exp_ieee(gamma * (log_q - log_p)) * (q - gamma * p * log_p);
  const double of_loser = p - gamma * q * log_q;
  const double larger = of_loser / (of_winner + of_loser);
  return score < 0 ? 1.0 - larger : larger;
}

// The same for the smooth hinge: beyond 1 there is no opposing gradient.
static double hinge_proba(double score) {
  const double larger = 1.0 / (2.0 - std::min(std::abs(score), 1.0));
  return score < 0 ? 1.0 - larger : larger;
}

// Differences of logistic functions as products, which are accurate in the tails.
static void ordinal_proba(const double* scores, std::size_t n_rows, const std::vector<double>& cuts, double* proba) {
  const std::size_t n = cuts.size() + 1;
  for (std::size_t r = 0; r < n_rows; ++r, proba += n)
    for (std::size_t k = 0; k < n; ++k) {
      proba[k] = k + 1 < n ? logistic(cuts[k] - scores[r]) : 1.0;
      if (k == 0) continue;
      proba[k] *= logistic(scores[r] - cuts[k - 1]);
      if (k + 1 < n) proba[k] *= 1.0 - exp_ieee(cuts[k - 1] - cuts[k]);
    }
}

static void softmax(const double* scores, std::size_t n_rows, std::size_t n, double* proba) {
  for (std::size_t r = 0; r < n_rows; ++r, scores += n, proba += n) {
    const double most = *std::max_element(scores, scores + n);
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) proba[k] = exp_ieee(scores[k] - most);
    for (std::size_t k = 0; k < n; ++k) sum += proba[k];
    for (std::size_t k = 0; k < n; ++k) proba[k] /= sum;
  }
}

// Scores are half the log-odds of each class against the others; their probabilities are normalised.
static void one_vs_rest(const double* scores, std::size_t n_rows, std::size_t n, double* proba) {
  for (std::size_t r = 0; r < n_rows; ++r, scores += n, proba += n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += proba[k] = 1.0 / (1.0 + exp_ieee(-2.0 * scores[k]));
    if (!(sum > 0)) {  // all of them underflow: use their order
      softmax(scores, 1, n, proba);
      continue;
    }
    for (std::size_t k = 0; k < n; ++k) proba[k] /= sum;
  }
}

template <class Value>
static void each_value(const double* scores, std::size_t n, double* values, Value value) {
  for (std::size_t i = 0; i < n; ++i) values[i] = value(scores[i]);
}

// Without overflow, and accurate for small results.
static double softplus(double score) {
  const double e = exp_ieee(-std::abs(score));
  return std::max(score, 0.0) + (e < 1e-8 ? e : log_ieee(1.0 + e));
}

void apply_link(const Link& link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted) {
  switch (link.kind) {
    case LinkKind::identity:
      std::copy_n(scores, n_rows * n_scores, predicted);
      return;
    case LinkKind::log:
      return each_value(scores, n_rows * n_scores, predicted, exp_ieee);
    case LinkKind::log1p:
      return each_value(scores, n_rows * n_scores, predicted, [](double score) { return exp_ieee(score) - 1.0; });
    case LinkKind::logistic:
      return each_value(scores, n_rows * n_scores, predicted, logistic);
    case LinkKind::signed_square:
      return each_value(scores, n_rows * n_scores, predicted, [](double score) { return score * std::abs(score); });
    case LinkKind::softplus:
      return each_value(scores, n_rows * n_scores, predicted, softplus);
    case LinkKind::logit:
      return two_class_proba(scores, n_rows, predicted, logistic);
    case LinkKind::half_logit:
      return two_class_proba(scores, n_rows, predicted, [](double score) { return logistic(2.0 * score); });
    case LinkKind::focal:
      return two_class_proba(scores, n_rows, predicted,
                             [&](double score) { return focal_proba(score, link.parameter); });
    case LinkKind::hinge:
      return two_class_proba(scores, n_rows, predicted, hinge_proba);
    case LinkKind::sigmoid:
      return two_class_proba(scores, n_rows, predicted, [&](double score) { return logistic(link.parameter * score); });
    case LinkKind::step:
      return two_class_proba(scores, n_rows, predicted, [](double score) { return score > 0 ? 1.0 : 0.0; });
    case LinkKind::ordinal:
      return ordinal_proba(scores, n_rows, link.cuts, predicted);
    case LinkKind::ascending:
      std::copy_n(scores, n_rows * n_scores, predicted);
      for (std::size_t r = 0; r < n_rows; ++r, predicted += n_scores) std::sort(predicted, predicted + n_scores);
      return;
    case LinkKind::softmax:
      return softmax(scores, n_rows, n_scores, predicted);
    case LinkKind::one_vs_rest:
      return one_vs_rest(scores, n_rows, n_scores, predicted);
    case LinkKind::separate:
      return each_value(scores, n_rows * n_scores, predicted,
                        [&](double score) { return logistic(link.parameter * score); });
  }
}

}  // namespace spinney
