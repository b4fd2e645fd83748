#include "criterion/user.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "criterion/summary.h"

namespace spinney {

static std::string shown(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  return text;
}

static std::string of_rows(std::size_t n) {
  return " for a node of " + std::to_string(n) + (n == 1 ? " row" : " rows");
}

Summary summarise_user(const Target& target, std::span<const Row> rows, double* value) {
  const UserCriterion& user = *target.input.user;
  const std::size_t p = target.input.n_outputs;
  std::vector<double> y(rows.size() * p), weight(rows.size());
  Summary s;
  double squares = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    weight[i] = target.weight_of(rows[i]);
    s.weight += weight[i];
    for (std::size_t k = 0; k < p; ++k) {
      y[i * p + k] = target.input.y[rows[i] * p + k];
      squares += weight[i] * y[i * p + k] * y[i * p + k];
    }
  }
  for (std::size_t k = 0; k < user.n_values; ++k) value[k] = std::nan("");  // so that a missing value is detected
  double risk = user.evaluate({y.data(), weight.data(), rows.size()}, value);
  if (risk < 0 && risk >= -1e-9 * (s.weight + squares))
    risk = 0;  // rounding of differences may give a small negative number
  if (!std::isfinite(risk) || risk < 0)
    throw std::invalid_argument("The criterion's evaluate returned a risk of " + shown(risk) + of_rows(rows.size()) +
                                ". A risk must be a finite number of at least 0.");
  for (std::size_t k = 0; k < user.n_values; ++k)
    if (!std::isfinite(value[k]))
      throw std::invalid_argument("The criterion's evaluate returned a value of " + shown(value[k]) +
                                  of_rows(rows.size()) + ". Values must be finite numbers.");
  s.pure = risk == 0 || is_pure(target, rows, nullptr);
  s.impurity = risk / s.weight;
  return s;
}

}  // namespace spinney
