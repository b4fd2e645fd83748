#include "criterion/fixed_weights.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <numeric>

namespace spinney {

double scale_below(int bits, double bound, double other_bound) {
  if (!(bound > 0)) return 1;
  int exponent = 0, other_exponent = 0;
  std::frexp(bound, &exponent);  // bound < 2^exponent
  std::frexp(other_bound, &other_exponent);
  return std::ldexp(1.0, std::clamp(bits - exponent - other_exponent, -1000, 1000));
}

FixedWeights::FixedWeights(const double* weight, std::size_t n_rows, std::span<const Row> rows, int bits)
    : by_row(n_rows, 0) {
  counts = fix_as_counts(weight, rows);
  if (!counts) round(weight, rows, bits);
}

// False if the sum would contain the unit too often.
bool FixedWeights::fix_as_counts(const double* weight, std::span<const Row> rows) {
  constexpr double too_many = 0x1p52;
  int lowest = INT_MAX, highest = INT_MIN;  // powers of two: of the lowest set bit, and above all bits
  for (const Row r : rows) {
    int exponent = 0;
    const auto digits = static_cast<std::uint64_t>(std::ldexp(std::frexp(weight[r], &exponent), 53));
    lowest = std::min(lowest, exponent - 53 + std::countr_zero(digits));
    highest = std::max(highest, exponent);
    if (highest - lowest > 52) return false;
  }
  std::int64_t divisor = 0;
  double total = 0;
  for (const Row r : rows) {
    by_row[r] = static_cast<std::int64_t>(std::ldexp(weight[r], -lowest));
    if (divisor != 1) divisor = std::gcd(divisor, by_row[r]);
    total += static_cast<double>(by_row[r]);
  }
  if (!(total < too_many)) return false;
  if (divisor > 1)
    for (const Row r : rows) by_row[r] /= divisor;
  unit = std::ldexp(static_cast<double>(divisor), lowest);
  most = total / static_cast<double>(divisor);
  return true;
}

// The nearest integer, halves up, of a non-negative number: llround without a call.
static inline std::int64_t nearest(double x) {
  const auto whole = static_cast<std::int64_t>(x);
  return whole + (x - static_cast<double>(whole) >= 0.5);
}

// Calls f for each row. If all rows are used, the loop is contiguous.
template <class F>
static inline void for_each_row(std::span<const Row> rows, std::size_t n_rows, F&& f) {
  if (rows.size() == n_rows)
    for (std::size_t r = 0; r < n_rows; ++r) f(r);
  else
    for (const Row r : rows) f(r);
}

void FixedWeights::round(const double* weight, std::span<const Row> rows, int bits) {
  double heaviest = 0;
  for_each_row(rows, by_row.size(), [&](std::size_t r) { heaviest = weight[r] > heaviest ? weight[r] : heaviest; });
  int exponent = 0;
  std::frexp(heaviest, &exponent);
  // 2^(30 - exponent) in two factors that never overflow; products are exact
  const double factor = std::ldexp(1.0, std::min(30 - exponent, 1000));
  const double rest = std::ldexp(1.0, std::max(30 - exponent - 1000, 0));
  std::int64_t parts = 0;  // a sum of doubles would depend on the order of the rows
  for_each_row(rows, by_row.size(),
               [&](std::size_t r) { parts += 1 + static_cast<std::int64_t>(weight[r] * factor * rest); });
  most = std::ldexp(static_cast<double>(parts), exponent - 30);
  const double scale = scale_below(bits, most, 0.5);
  std::int64_t* const fixed = by_row.data();
  for_each_row(rows, by_row.size(),
               [&](std::size_t r) { fixed[r] = std::max<std::int64_t>(1, nearest(weight[r] * scale)); });
  unit = 1 / scale;
}

}  // namespace spinney
