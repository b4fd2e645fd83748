// Initial scores: the constants of minimum loss.
#pragma once

#include <functional>
#include <vector>

#include "loss/row_loss.h"

namespace spinney {

inline constexpr double least_deviation = 1e-8;  // of a normal target, relative to its scale

// The constants with offsets, (n_scores, n_rows), which may be null, as may weights. Weights are positive.
struct StartRows {
  std::span<const double> target;
  const double* weight = nullptr;
  const double* offset = nullptr;
  std::uint32_t n_scores = 1;
};
std::vector<double> best_constants(const NamedLoss& loss, const StartRows& rows);

// The root of a sum of increasing terms, by exact signs. The search starts between base - scale * (1 + reach / scale)
// and the same distance above base, and extends further if needed.
using TermsAt = std::function<std::vector<double>(double)>;
double root_of_sum(const TermsAt& terms_at, double reach, double base, double scale);

}  // namespace spinney
