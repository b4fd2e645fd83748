// Where scores start: the constants of least loss.
#pragma once

#include <functional>
#include <vector>

#include "loss/row_loss.h"

namespace spinney {

inline constexpr double least_deviation = 1e-8;  // of a normal target, in its own size

// The constants beside offsets, (n_scores, n_rows), which may be null, as weights may. Weights are positive.
struct StartRows {
  std::span<const double> target;
  const double* weight = nullptr;
  const double* offset = nullptr;
  std::uint32_t n_scores = 1;
};
std::vector<double> best_constants(NamedLoss loss, const StartRows& rows);

// The place at which the terms, which rise with it, add up to 0, by signs that rounding does not touch. It is looked for from
// base - scale * (1 + reach / scale) to the same distance above base, and further out if it lies there.
using TermsAt = std::function<std::vector<double>(double)>;
double balance_point(const TermsAt& terms_at, double reach, double base, double scale);

}  // namespace spinney
