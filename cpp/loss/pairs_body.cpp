// Kernels, compiled once per instruction set; see base/cpu.h.

#include "base/lanes.h"
#include "base/math.h"
#include "loss/pairs.h"

namespace spinney {
namespace {

constexpr std::size_t width = pairs_at_a_time;
using Numbers = Lanes<double, width>;
using Exponents = Lanes<std::int64_t, width>;

constexpr std::size_t block = 4;  // rows with the same gain that are paired with those below them together
constexpr double farthest_block =
    80;  // from the middle, so that the product of a block's denominators is a normal number

SPINNEY_INLINE Numbers all(double x) { return every<width>(x); }
SPINNEY_INLINE Numbers size_of(const Numbers& x) {
  return each<Numbers>(
      [](auto v) __attribute__((always_inline)) {
        typedef std::int64_t Bits __attribute__((vector_size(sizeof v)));
        return (decltype(v))((Bits)v & 0x7fffffffffffffff);
      },
      x);
}

// A product of many positive numbers, whose logarithm is taken once.
struct LongProduct {
  Numbers lanes = all(1.0);
  Exponents exponents = every<width>(std::int64_t{0});

  // Before the exponents overflow: lanes retain the mantissa in [1, 2).
  SPINNEY_INLINE void shorten() {
    constexpr std::int64_t one = 0x3ff0000000000000, digits = 0x000fffffffffffff;
    exponents += each<Exponents>(
        [](auto v) __attribute__((always_inline)) {
          typedef std::int64_t Bits __attribute__((vector_size(sizeof v)));
          return ((Bits)v >> 52) - 1023;
        },
        lanes);
    lanes = each<Numbers>(
        [](auto v) __attribute__((always_inline)) {
          typedef std::int64_t Bits __attribute__((vector_size(sizeof v)));
          return (decltype(v))(((Bits)v & digits) | one);
        },
        lanes);
  }
  SPINNEY_INLINE double logarithm() {
    shorten();
    const double product = fold(lanes, [](auto a, auto b) __attribute__((always_inline)) { return a * b; });
    const double e = static_cast<double>(sum_of(exponents));
    return e * ln2_high + (log_ieee(product) + e * ln2_low);
  }
};

// 1 / x of several groups with one division of the product of all.
template <std::size_t n>
SPINNEY_INLINE void invert(const Numbers (&x)[n], Numbers (&inverse)[n]) {
  if constexpr (n == 1) {
    inverse[0] = all(1.0) / x[0];
  } else {
    static_assert(n == 4);
    const Numbers first = x[0] * x[1], second = x[2] * x[3], both = all(1.0) / (first * second);
    const Numbers of_first = both * second, of_second = both * first;
    inverse[0] = of_first * x[1];
    inverse[1] = of_first * x[0];
    inverse[2] = of_second * x[3];
    inverse[3] = of_second * x[2];
  }
}

// Pairs of n rows from i on with all rows from `below` on.
template <std::size_t n, bool is_weighted>
SPINNEY_INLINE void pair_gradients_of_block(const PairedRows& rows, std::size_t i, std::size_t below,
                                            LongProduct& product) {
  Numbers raised[n], score[n], weight[n], gradient_of_pair[n], curve[n];
  for (std::size_t k = 0; k < n; ++k) {
    raised[k] = all(rows.raised[i + k]);
    score[k] = all(rows.score[i + k]);
    if constexpr (is_weighted) weight[k] = all(rows.weight[i + k]);
    gradient_of_pair[k] = curve[k] = all(0.0);
  }
  const double bits = static_cast<double>(n) * (1.0 + rows.farthest * bits_per_nat);  // of the factors of a step
  const auto steps = static_cast<std::size_t>(900.0 / bits);
  const Numbers near = all(rows.near_scores);
  std::size_t left = steps;
  for (std::size_t j = below; j < rows.n; j += width) {
    const Numbers other = load<width>(rows.raised + j), other_score = load<width>(rows.score + j);
    Numbers sum[n], distance[n], divisor[n], inverse[n];
    for (std::size_t k = 0; k < n; ++k) {
      sum[k] = raised[k] + other;
      distance[k] = near + size_of(score[k] - other_score);
      divisor[k] = sum[k] * distance[k];
    }
    invert<n>(divisor, inverse);
    Numbers gradient = load<width>(rows.gradient + j), hessian = load<width>(rows.hessian + j);
    for (std::size_t k = 0; k < n; ++k) {
      const Numbers push = other * inverse[k], curvature = push * (raised[k] * (inverse[k] * distance[k]));
      if constexpr (is_weighted) {
        const Numbers other_weight = load<width>(rows.weight + j);
        gradient_of_pair[k] -= other_weight * push;
        curve[k] += other_weight * curvature;
        gradient += weight[k] * push;
        hessian += weight[k] * curvature;
      } else {
        gradient_of_pair[k] -= push;
        curve[k] += curvature;
        gradient += push;
        hessian += curvature;
      }
    }
    store(rows.gradient + j, gradient);
    store(rows.hessian + j, hessian);
    if constexpr (!is_weighted) {
      for (std::size_t k = 0; k < n; ++k) product.lanes *= sum[k];
      if (--left == 0) {
        product.shorten();
        left = steps;
      }
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    rows.gradient[i + k] += sum_of(gradient_of_pair[k]);
    rows.hessian[i + k] += sum_of(curve[k]);
  }
  if constexpr (!is_weighted) product.shorten();
}

template <bool is_weighted>
double gradient_of_pair(const PairedRows& rows) {
  LongProduct product;
  double taken = 0;  // logarithms of the better rows' contribution to each factor
  const bool by_block = rows.farthest <= farthest_block;
  for (std::size_t begin = 0, end = 0; begin < rows.n; begin = end) {
    while (end < rows.n && rows.gain[end] == rows.gain[begin]) ++end;
    if (end == rows.n) break;
    const auto n_factors = static_cast<double>((rows.n - end + width - 1) / width * width);
    for (std::size_t i = begin; i < end; ++i) taken += n_factors * rows.score[i];
    std::size_t i = begin;
    for (; by_block && i + block <= end; i += block) pair_gradients_of_block<block, is_weighted>(rows, i, end, product);
    for (; i < end; ++i) pair_gradients_of_block<1, is_weighted>(rows, i, end, product);
  }
  return is_weighted ? 0.0 : product.logarithm() - taken;
}

// The gradient of a pair is the probability that it is ranked wrongly times the change in gain by swapping it, divided
// by the distance of its scores.
double gain_gradients(const RankedRows& rows) {
  const Numbers floor = all(rows.floor), slope = all(rows.slope), none = all(0.0);
  double total = 0;
  for (std::size_t i = 0; i + 1 < rows.n && rows.discount[i] > 0; ++i) {
    const Numbers score = all(rows.score[i]), raised = all(rows.raised[i]), gain = all(rows.gain[i]),
                  discount = all(rows.discount[i]), weight = all(rows.weight[i]), tied = all(rows.change[i]);
    Numbers gradient_of_pair = none, curve = none, sum = none;
    for (std::size_t j = i + 1; j < rows.n; j += width) {
      const Numbers other = load<width>(rows.raised + j), other_weight = load<width>(rows.weight + j);
      const Numbers better = gain - load<width>(rows.gain + j);
      const auto is_better = better > none;
      const Numbers other_score = load<width>(rows.score + j), distance = floor + slope * (score - other_score);
      const Numbers swapped = select(other_score == score, tied, discount - load<width>(rows.discount + j));
      const Numbers inverse = all(1.0) / ((raised + other) * distance);
      const Numbers change = better * swapped * inverse;
      const Numbers wrong = select(is_better, other, raised), right = select(is_better, raised, other);
      const Numbers push = wrong * change, size = size_of(push);
      const Numbers curvature = size * right * inverse * distance;
      gradient_of_pair -= other_weight * push;
      curve += other_weight * curvature;
      sum += other_weight * size;
      store(rows.gradient + j, load<width>(rows.gradient + j) + weight * push);
      store(rows.hessian + j, load<width>(rows.hessian + j) + weight * curvature);
    }
    rows.gradient[i] += sum_of(gradient_of_pair);
    rows.hessian[i] += sum_of(curve);
    total += rows.weight[i] * sum_of(sum);
  }
  return total;
}

}  // namespace

const PairKernels& pair_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr PairKernels table{.gradient_of_pair = gradient_of_pair<false>,
                                     .weighted_pair_gradients = gradient_of_pair<true>,
                                     .gain_gradients = gain_gradients};
  return table;
}

}  // namespace spinney
