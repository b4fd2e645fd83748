// Sums of doubles in the order NumPy uses: in eight lanes up to 128 numbers, by halves above that.
#pragma once

#include <cstddef>
#include <span>

namespace spinney {

inline double pairwise_sum(std::span<const double> values) {
  constexpr std::size_t lanes = 8, block = 128;
  const std::size_t n = values.size();
  if (n > block) {
    const std::size_t half = n / 2 - n / 2 % lanes;
    return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
  }
  double sum = 0;
  std::size_t at = 0;
  if (n >= lanes) {
    double r[lanes];
    for (std::size_t j = 0; j < lanes; ++j) r[j] = values[j];
    for (at = lanes; at < n - n % lanes; at += lanes)
      for (std::size_t j = 0; j < lanes; ++j) r[j] += values[at + j];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; at < n; ++at) sum += values[at];
  return sum;
}

}  // namespace spinney
