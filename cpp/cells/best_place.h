// The best cut by squared error between rows of weight 1 with distinct values, included by kernels_body.cpp.
//
// All columns of a node have the same weights, so an approximate reciprocal of the product of both sides' weights is
// known beforehand. Cuts are compared by it and by a difference with half the roundings of SquaredError::pair; the few
// that may be the best are then scored exactly. With D the difference, p the reciprocal, S and W the sums of the node,
// and left sums below |S| + |D| / W, the two versions of D differ by less than e = 2^-48 W (|S| + most √(D² p)), and p
// is at most 1 / (W - 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/lanes.h"
#include "cells/best_square.h"
#include "criterion/squared_error.h"

namespace spinney {
namespace {

// out[i] = 1 / ((i + 1) (n - i - 1)) for i < n - 1, with a relative error of 2^-14; writes up to the next multiple of
// 8.
void about_one_by_places(std::size_t n, double* out) {
  EightNumbers w = small_to_doubles(count_from<8>(std::int64_t{1}));
  const EightNumbers all = every<8>(static_cast<double>(n));
  for (std::size_t i = 0; i + 1 < n; i += 8) {
    const EightNumbers product = w * (all - w);
#if defined(__ARM_NEON)
    store(out + i, about_one_by(product));
#else
    store(out + i, every<8>(1.0) / product);
#endif
    w += every<8>(8.0);
  }
}

std::size_t best_place(const std::int64_t* s_left, std::size_t n_before, std::size_t n, std::int64_t s_total,
                       std::int64_t n_total, const double* one_by, double* score) {
  constexpr std::size_t most_cuts = 512;
  double about[most_cuts];
  const double rows = static_cast<double>(n_total), sum = static_cast<double>(s_total);
  EightNumbers w = small_to_doubles(count_from<8>(static_cast<std::int64_t>(n_before + 1)));
  EightNumbers highest = every<8>(-1.0);
  const auto merit_of = [&](std::size_t i) __attribute__((always_inline)) {
    const EightNumbers difference = to_doubles(load<8>(s_left + i)) * every<8>(rows) - every<8>(sum) * w;
    return difference * difference * load<8>(one_by + i);
  };
  const auto note = [&](std::size_t i, const EightNumbers& merit) __attribute__((always_inline)) {
    store(about + i, merit);
#if defined(__ARM_NEON)
    highest = each<EightNumbers>([](float64x2_t a, float64x2_t b) { return vmaxq_f64(a, b); }, highest, merit);
#else
    highest = larger(highest, merit);
#endif
  };
  std::size_t done = 0;
  for (; done + 8 <= n; done += 8) {
    note(done, merit_of(done));
    w += every<8>(8.0);
  }
  if (done < n) {  // elements past the last are not cuts
    const auto is_cut = count_from<8>(std::int64_t{0}) < every<8>(static_cast<std::int64_t>(n - done));
    note(done, select(is_cut, merit_of(done), every<8>(-1.0)));
  }
  const double root = __builtin_sqrt(largest_of(highest)), size = sum < 0 ? -sum : sum;
  const double least = root * (1 - 0x1p-12) - 0x1p-46 * rows * (size + root) / __builtin_sqrt(rows - 1);
  const double enough = least > 0 ? least * least : 0;
  double best = -__builtin_inf();
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; i += 8) {
    if (!any_of(every<8>(enough) <= load<8>(about + i))) continue;
    for (std::size_t j = i; j < i + 8; ++j) {
      if (!(about[j] >= enough)) continue;
      const auto number = [](std::int64_t x) { return static_cast<double>(x); };
      const auto n_left = static_cast<std::int64_t>(n_before + j + 1);
      const double merit =
          SquaredError::pair(number(s_left[j]), number(n_left), number(s_total - s_left[j]), number(n_total - n_left));
      if (!(merit > best)) continue;
      best = merit;
      at = j;
    }
  }
  *score = best;
  return at;
}

}  // namespace
}  // namespace spinney
