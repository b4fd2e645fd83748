// The best of many cuts by squared error, included by kernels_body.cpp.
#pragma once

#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <cstddef>
#include <cstdint>

#include "base/lanes.h"
#include "criterion/squared_error.h"

namespace spinney {
namespace {

using EightNumbers = Lanes<double, 8>;
using EightWhole = Lanes<std::int64_t, 8>;

// The squared error of eight cuts, bit-identical to SquaredError::pair: the squared difference and its divisor.
struct EightSquares {
  EightNumbers square, product;
};

// Integers below 2^52 convert to doubles quickly, and their differences are exact.
enum class Small { none, weights, all };

// From the sums on the left and those of the node.
template <Small small>
struct SquaresOf {
  EightWhole s_total, w_total;

  SPINNEY_INLINE EightSquares operator()(const std::int64_t* s_left, const std::int64_t* w_left) const {
    const EightWhole s = load<8>(s_left), w = load<8>(w_left);
    EightNumbers sl, sr, wl, wr;
    both_sides<small == Small::all>(s, s_total, sl, sr);
    both_sides<small != Small::none>(w, w_total, wl, wr);
    const EightNumbers difference = sl * wr - sr * wl;
    return {difference * difference, wl * wr};
  }

 private:
  template <bool is_small>
  SPINNEY_INLINE static void both_sides(const EightWhole& part, const EightWhole& all, EightNumbers& left,
                                        EightNumbers& right) {
    if constexpr (is_small) {
      left = small_to_doubles(part);
      right = small_to_doubles(all) - left;
    } else {
      left = to_doubles(part);
      right = to_doubles(all - part);
    }
  }
};

#if defined(__ARM_NEON)

// A division takes longer than everything else, so cuts are first compared by an approximate 1 / product; the few that
// may be the best are then divided. The error is below 2^-15: 8 bits from a table, doubled by a Newton step.
SPINNEY_INLINE EightNumbers about_one_by(const EightNumbers& x) {
  return each<EightNumbers>(
      [](float64x2_t v) __attribute__((always_inline)) {
        const float64x2_t r = vrecpeq_f64(v);
        return vmulq_f64(r, vrecpsq_f64(v, r));
      },
      x);
}
constexpr double about_margin = 1 - 0x1p-13;

template <class Squares>
SPINNEY_INLINE double score_about(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n,
                                  const Squares& squares, double* about) {
  EightNumbers most = every<8>(-1.0);
  const auto add = [&](std::size_t i, const EightNumbers& merit) __attribute__((always_inline)) {
    store(about + i, merit);
    most = each<EightNumbers>([](float64x2_t a, float64x2_t b) { return vmaxq_f64(a, b); }, most, merit);
  };
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const EightSquares e = squares(s_left + i, w_left + i);
    add(i, e.square * about_one_by(e.product));
  }
  if (i < n) {  // elements past the last are not cuts
    const EightSquares e = squares(s_left + i, w_left + i);
    const auto is_cut = count_from<8>(std::int64_t{0}) < every<8>(static_cast<std::int64_t>(n - i));
    add(i, select(is_cut, e.square * about_one_by(e.product), every<8>(-1.0)));
  }
  return largest_of(most);
}

template <class Squares>
std::size_t best_of_squares(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n, std::int64_t s_total,
                            std::int64_t w_total, double* score) {
  constexpr std::size_t block = 512;
  const Squares squares{every<8>(s_total), every<8>(w_total)};
  double about[block], best = -__builtin_inf();
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    const double enough = score_about(s_left + begin, w_left + begin, m, squares, about) * about_margin;
    for (std::size_t i = 0; i < m; i += 8) {
      if (!any_of(every<8>(enough) <= load<8>(about + i))) continue;
      for (std::size_t j = begin + i; j < begin + i + 8; ++j) {
        if (!(about[j - begin] >= enough)) continue;
        const auto number = [](std::int64_t x) { return static_cast<double>(x); };
        const double merit = SquaredError::pair(number(s_left[j]), number(w_left[j]), number(s_total - s_left[j]),
                                                number(w_total - w_left[j]));
        if (!(merit > best)) continue;
        best = merit;
        at = j;
      }
    }
  }
  *score = best;
  return at;
}

#else

template <class Squares>
std::size_t best_of_squares(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n, std::int64_t s_total,
                            std::int64_t w_total, double* score) {
  const EightWhole lane = count_from<8>(std::int64_t{0}), end = every<8>(static_cast<std::int64_t>(n));
  const Squares squares{every<8>(s_total), every<8>(w_total)};
  EightNumbers best = every<8>(-__builtin_inf());
  EightWhole at = lane;
  for (std::size_t i = 0; i < n; i += 8) {
    const EightSquares e = squares(s_left + i, w_left + i);
    const EightNumbers merit = e.square / e.product;
    const EightWhole place = lane + every<8>(static_cast<std::int64_t>(i));
    const EightWhole better = (merit > best) & (place < end);
    best = select(better, merit, best);
    at = select(better, place, at);
  }
  *score = largest_of(best);
  return static_cast<std::size_t>(smallest_of(select(best == every<8>(*score), at, every<8>(std::int64_t{INT64_MAX}))));
}

#endif

std::size_t best_square(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n, std::int64_t s_total,
                        std::int64_t w_total, bool sums_are_weights, double* score) {
  const bool small = w_total < std::int64_t{1} << 52;
  const auto best = !small             ? best_of_squares<SquaresOf<Small::none>>
                    : sums_are_weights ? best_of_squares<SquaresOf<Small::all>>
                                       : best_of_squares<SquaresOf<Small::weights>>;
  return best(s_left, w_left, n, s_total, w_total, score);
}

}  // namespace
}  // namespace spinney
