#include "predict/link.h"

#include <algorithm>

#include "base/math.h"

namespace spinney {

static void two_shares(const double* scores, std::size_t n_rows, double slope, double* shares) {
  for (std::size_t r = 0; r < n_rows; ++r) {
    const double second = 1.0 / (1.0 + exp_ieee(-slope * scores[r]));
    shares[2 * r] = 1.0 - second;
    shares[2 * r + 1] = second;
  }
}

static void softmax(const double* scores, std::size_t n_rows, std::size_t n, double* shares) {
  for (std::size_t r = 0; r < n_rows; ++r, scores += n, shares += n) {
    const double most = *std::max_element(scores, scores + n);
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) shares[k] = exp_ieee(scores[k] - most);
    for (std::size_t k = 0; k < n; ++k) sum += shares[k];
    for (std::size_t k = 0; k < n; ++k) shares[k] /= sum;
  }
}

// Scores are half the log-odds of each class against the others; their probabilities are made to add up to 1.
static void one_vs_rest(const double* scores, std::size_t n_rows, std::size_t n, double* shares) {
  for (std::size_t r = 0; r < n_rows; ++r, scores += n, shares += n) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += shares[k] = 1.0 / (1.0 + exp_ieee(-2.0 * scores[k]));
    if (!(sum > 0)) {  // all of them vanish: what remains is their order
      softmax(scores, 1, n, shares);
      continue;
    }
    for (std::size_t k = 0; k < n; ++k) shares[k] /= sum;
  }
}

void apply_link(Link link, const double* scores, std::size_t n_rows, std::size_t n_scores, double* predicted) {
  switch (link) {
    case Link::identity:
      std::copy_n(scores, n_rows * n_scores, predicted);
      return;
    case Link::log:
      for (std::size_t i = 0; i < n_rows * n_scores; ++i) predicted[i] = exp_ieee(scores[i]);
      return;
    case Link::logit:
      return two_shares(scores, n_rows, 1.0, predicted);
    case Link::half_logit:
      return two_shares(scores, n_rows, 2.0, predicted);
    case Link::softmax:
      return softmax(scores, n_rows, n_scores, predicted);
    case Link::one_vs_rest:
      return one_vs_rest(scores, n_rows, n_scores, predicted);
  }
}

}  // namespace spinney
