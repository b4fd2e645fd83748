// Sums of doubles in the order NumPy uses: in eight lanes up to 128 numbers, by halves above that.
#pragma once

#include <cstddef>
#include <span>

namespace spinney {

// The sum of value(i) for i in [first, first + n).
template <class Value>
double pairwise_sum(std::size_t first, std::size_t n, const Value& value) {
  constexpr std::size_t lanes = 8, block = 128;
  if (n > block) {
    const std::size_t half = n / 2 - n / 2 % lanes;
    return pairwise_sum(first, half, value) + pairwise_sum(first + half, n - half, value);
  }
  double sum = 0;
  std::size_t at = 0;
  if (n >= lanes) {
    double r[lanes];
    for (std::size_t j = 0; j < lanes; ++j) r[j] = value(first + j);
    for (at = lanes; at < n - n % lanes; at += lanes)
      for (std::size_t j = 0; j < lanes; ++j) r[j] += value(first + at + j);
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; at < n; ++at) sum += value(first + at);
  return sum;
}

inline double pairwise_sum(std::span<const double> values) {
  return pairwise_sum(0, values.size(), [&](std::size_t i) { return values[i]; });
}

}  // namespace spinney
