// Kernel values, sums of their rows, and small dual problems; compiled once per instruction set, see base/cpu.h.

#include <cstdint>
#include <limits>

#include "base/lanes.h"
#include "base/math.h"
#include "margin/kernel.h"

namespace spinney {
namespace {

using Numbers = Lanes<double, tile_rows>;

#if defined(__AVX512F__)
constexpr std::size_t n_together = 8;  // queries whose sums stay in registers
#else
constexpr std::size_t n_together = 4;
#endif

SPINNEY_INLINE Numbers all(double x) { return every<tile_rows>(x); }

// 2^k times p, for the integer k in the low bits of `shifted`.
SPINNEY_INLINE Numbers times_power(const Numbers& p, const Numbers& shifted) {
  return each<Numbers>(
      [](auto x, auto s) __attribute__((always_inline)) {
        typedef std::int64_t Bits __attribute__((vector_size(sizeof x)));
        typedef double Values __attribute__((vector_size(sizeof x)));
        return (Values)((Bits)x + ((Bits)s << 52));
      },
      p, shifted);
}

// e^x as exp_ieee; for floats and x <= 0 with fewer operations and a relative error of at most 2e-10.
template <bool is_short>
SPINNEY_INLINE Numbers exp_of(const Numbers& given) {
  const Numbers above = larger(given, all(-700.0)), x = is_short ? above : smaller(above, all(700.0));
  const Numbers shift = all(0x1.8p52), shifted = x * all(bits_per_nat) + shift, k = shifted - shift;
  Numbers p, r = x - k * all(is_short ? ln2_high + ln2_low : ln2_high);
  if constexpr (is_short) {
    const Numbers r2 = r * r;
    const Numbers low = (all(1.0) + r) + (all(0.5) + all(1.0 / 6.0) * r) * r2;
    const Numbers high = (all(1.0 / 24.0) + all(1.0 / 120.0) * r) + (all(1.0 / 720.0) + all(1.0 / 5040.0) * r) * r2;
    const Numbers r4 = r2 * r2;
    return times_power(low + (high + all(1.0 / 40320.0) * r4) * r4, shifted);
  } else {
    r = r - k * all(ln2_low);
    p = all(1.0 / 6227020800.0);
    p = p * r + all(1.0 / 479001600.0);
    p = p * r + all(1.0 / 39916800.0);
    p = p * r + all(1.0 / 3628800.0);
    p = p * r + all(1.0 / 362880.0);
    p = p * r + all(1.0 / 40320.0);
    p = p * r + all(1.0 / 5040.0);
  }
  p = p * r + all(1.0 / 720.0);
  p = p * r + all(1.0 / 120.0);
  p = p * r + all(1.0 / 24.0);
  p = p * r + all(1.0 / 6.0);
  p = p * r + all(0.5);
  p = p * r + all(1.0);
  p = p * r + all(1.0);
  return times_power(p, shifted);
}

template <KernelKind kind, bool is_short>
SPINNEY_INLINE Numbers value_of(const Kernel& kernel, const Numbers& dot, double query_square, const Numbers& square) {
  if constexpr (kind == KernelKind::linear) {
    return dot;
  } else if constexpr (kind == KernelKind::rbf) {
    const Numbers distance = larger((all(query_square) + square) - (dot + dot), all(0.0));
    return exp_of<is_short>(all(-kernel.gamma) * distance);
  } else {
    const Numbers base = all(kernel.gamma) * dot + all(kernel.coef0);
    if constexpr (kind == KernelKind::sigmoid) return all(1.0) - all(2.0) / (exp_of<false>(base + base) + all(1.0));
    Numbers power = all(1.0);
    for (int k = 0; k < kernel.degree; ++k) power *= base;
    return power;
  }
}

// The values of m queries and one tile.
template <KernelKind kind, std::size_t m, class T>
SPINNEY_INLINE void fill_tile(const KernelBlock<T>& b, std::size_t q, std::size_t tile) {
  const double* from = b.tiles + tile * b.n_terms * tile_rows;
  const double* const* queries = b.queries + q;
  Numbers sum[m];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < m; ++i) sum[i] = all(0.0);
  for (std::size_t k = 0; k < b.n_terms; ++k) {
    const Numbers x = load<tile_rows>(from + k * tile_rows);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < m; ++i) sum[i] += all(queries[i][k]) * x;
  }
  const Numbers squares = load<tile_rows>(b.squares + tile * tile_rows);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < m; ++i) {
    const Numbers value = value_of<kind, sizeof(T) == 4>(*b.kernel, sum[i], b.query_squares[q + i], squares);
    store(b.out[q + i] + tile * tile_rows, convert<T>(value));
  }
}

// Tiles that stay in the first-level cache are processed for all queries.
template <KernelKind kind, class T>
void fill_kind(const KernelBlock<T>& b) {
  constexpr std::size_t near_bytes = 24 * 1024;
  const std::size_t tile_bytes = (b.n_terms + 1) * tile_rows * sizeof(double);
  const std::size_t n_near = tile_bytes < near_bytes ? near_bytes / tile_bytes : 1;
  for (std::size_t first = 0; first < b.n_tiles; first += n_near) {
    const std::size_t last = first + n_near < b.n_tiles ? first + n_near : b.n_tiles;
    std::size_t q = 0;
    for (; q + n_together <= b.n_queries; q += n_together)
      for (std::size_t tile = first; tile < last; ++tile) fill_tile<kind, n_together>(b, q, tile);
    for (; q < b.n_queries; ++q)
      for (std::size_t tile = first; tile < last; ++tile) fill_tile<kind, 1>(b, q, tile);
  }
}

template <class T>
void fill(const KernelBlock<T>& b) {
  switch (b.kernel->kind) {
    case KernelKind::linear:
      return fill_kind<KernelKind::linear>(b);
    case KernelKind::polynomial:
      return fill_kind<KernelKind::polynomial>(b);
    case KernelKind::rbf:
      return fill_kind<KernelKind::rbf>(b);
    case KernelKind::sigmoid:
      return fill_kind<KernelKind::sigmoid>(b);
  }
}

template <std::size_t m, class T>
SPINNEY_INLINE void subtract_together(const T* const* rows, const double* factors, std::size_t n, double* to) {
  for (std::size_t i = 0; i < n; i += tile_rows) {
    Numbers sum = load<tile_rows>(to + i);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < m; ++r) sum = sum - all(factors[r]) * convert<double>(load<tile_rows>(rows[r] + i));
    store(to + i, sum);
  }
}

template <class T>
void subtract(const T* const* rows, const double* factors, std::size_t n_rows, std::size_t n, double* to) {
  std::size_t r = 0;
  for (; r + 4 <= n_rows; r += 4) subtract_together<4>(rows + r, factors + r, n, to);
  for (; r < n_rows; ++r) subtract_together<1>(rows + r, factors + r, n, to);
}

double dot(const double* one, const double* other, std::size_t n) {
  Numbers sum = all(0.0);
  std::size_t i = 0;
  for (; i + tile_rows <= n; i += tile_rows) sum += load<tile_rows>(one + i) * load<tile_rows>(other + i);
  double total = sum_of(sum);
  for (; i < n; ++i) total += one[i] * other[i];
  return total;
}

void four_dots(const double* const* one, const double* const* other, std::size_t n, double* out) {
  Numbers sum[4] = {all(0.0), all(0.0), all(0.0), all(0.0)};
  std::size_t i = 0;
  for (; i + tile_rows <= n; i += tile_rows) {
    const Numbers a0 = load<tile_rows>(one[0] + i), a1 = load<tile_rows>(one[1] + i);
    const Numbers b0 = load<tile_rows>(other[0] + i), b1 = load<tile_rows>(other[1] + i);
    sum[0] += a0 * b0, sum[1] += a0 * b1, sum[2] += a1 * b0, sum[3] += a1 * b1;
  }
#pragma GCC unroll 4
  for (std::size_t k = 0; k < 4; ++k) {
    out[k] = sum_of(sum[k]);
    for (std::size_t j = i; j < n; ++j) out[k] += one[k / 2][j] * other[k % 2][j];
  }
}

// ---- small dual problems ---------------------------------------------------------------------------------------------

constexpr double least_curvature = 1e-12, rounding = 1e-12;
constexpr double infinity = std::numeric_limits<double>::infinity();

// The threshold for the residual in either direction; infinite if a bound forbids the move.
template <class T>
SPINNEY_INLINE void mark(const SmallDual<T>& p, std::size_t i) {
  p.up[i] = p.beta[i] < p.highest[i] ? (p.beta[i] >= 0 ? -p.insensitive : p.insensitive) : -infinity;
  p.down[i] = p.beta[i] > p.lowest[i] ? (p.beta[i] > 0 ? -p.insensitive : p.insensitive) : infinity;
}

// The largest lane and its position; ties go to the last.
struct Place {
  double value;
  std::size_t at;
};
SPINNEY_INLINE Place last_largest(const Numbers& values, const Numbers& places) {
  double v[tile_rows], at[tile_rows];
  store(v, values);
  store(at, places);
  std::size_t best = 0;
  for (std::size_t lane = 1; lane < tile_rows; ++lane)
    if (v[lane] > v[best] || (v[lane] == v[best] && at[lane] > at[best])) best = lane;
  return {v[best], static_cast<std::size_t>(at[best])};
}

struct Extremes {
  Place highest;  // of the rows that may increase
  double lowest;  // of the rows that may decrease
};

// The rows of one side: from first to last, exclusive.
struct Side {
  std::size_t first, last;
};

// residual -= step (row_i - row_j), and the new extremes.
template <class T>
SPINNEY_INLINE Extremes move_and_search(const SmallDual<T>& p, Side side, double step, const T* row_i, const T* row_j) {
  Numbers best = all(-infinity), place = all(0.0), lowest = all(infinity),
          count = count_from<tile_rows>(static_cast<double>(side.first));
  for (std::size_t t = side.first; t < side.last; t += tile_rows) {
    Numbers residual = load<tile_rows>(p.residual + t);
    residual = residual -
               all(step) * (convert<double>(load<tile_rows>(row_i + t)) - convert<double>(load<tile_rows>(row_j + t)));
    store(p.residual + t, residual);
    const Numbers up = residual + load<tile_rows>(p.up + t);
    const auto is_better = best <= up;
    best = select<double>(is_better, up, best);
    place = select<double>(is_better, count, place);
    lowest = smaller(lowest, residual + load<tile_rows>(p.down + t));
    count += all(static_cast<double>(tile_rows));
  }
  return {last_largest(best, place), smallest_of(lowest)};
}

// The partner with which row i gains most, to second order (Fan, Chen and Lin 2005).
template <class T>
SPINNEY_INLINE std::size_t partner_of(const SmallDual<T>& p, Side side, const Place& i) {
  const T* row = p.matrix + i.at * p.stride;
  const Numbers own = all(p.diagonal[i.at]), zero = all(0.0), least = all(least_curvature);
  Numbers best = all(0.0), place = all(0.0), count = count_from<tile_rows>(static_cast<double>(side.first));
  for (std::size_t t = side.first; t < side.last; t += tile_rows) {
    const Numbers down = load<tile_rows>(p.residual + t) + load<tile_rows>(p.down + t);
    const Numbers difference = larger(all(i.value) - down, zero), value = convert<double>(load<tile_rows>(row + t));
    const Numbers curvature = (own + load<tile_rows>(p.diagonal + t)) - (value + value);
    const Numbers safe = select<double>(curvature > zero, curvature, least);
    const Numbers gain = difference * difference / safe;
    const auto is_better = (best <= gain) & (gain > zero);
    best = select<double>(is_better, gain, best);
    place = select<double>(is_better, count, place);
    count += all(static_cast<double>(tile_rows));
  }
  return last_largest(best, place).at;
}

// How far i may increase and j decrease: to the optimum on the line, a bound, or zero, where the cost has a kink.
template <class T>
SPINNEY_INLINE double step_of(const SmallDual<T>& p, std::size_t i, std::size_t j) {
  const double value = static_cast<double>(p.matrix[i * p.stride + j]);
  const double curvature = p.diagonal[i] + p.diagonal[j] - (value + value);
  const double slope = (p.residual[i] + p.up[i]) - (p.residual[j] + p.down[j]);
  double step = slope / (curvature > 0 ? curvature : least_curvature);
  const double slack_i = p.insensitive > 0 && p.beta[i] < 0 ? -p.beta[i] : p.highest[i] - p.beta[i];
  const double slack_j = p.insensitive > 0 && p.beta[j] > 0 ? p.beta[j] : p.beta[j] - p.lowest[j];
  step = slack_i < step ? slack_i : step;
  return slack_j < step ? slack_j : step;
}

// b + step, or exactly the bound or zero if the step ends there but for rounding: a row that is 1e-18 short of its bound
// would count as free, and alone decide the intercept.
SPINNEY_INLINE double moved(double b, double step, double bound, double slack) {
  const double magnitude = (b < 0 ? -b : b) + step;
  return slack - step <= rounding * magnitude ? bound : b + step;
}

template <class T>
SPINNEY_INLINE void take(const SmallDual<T>& p, std::size_t i, std::size_t j, double step) {
  const bool i_to_zero = p.insensitive > 0 && p.beta[i] < 0, j_to_zero = p.insensitive > 0 && p.beta[j] > 0;
  const double slack_i = i_to_zero ? -p.beta[i] : p.highest[i] - p.beta[i];
  const double slack_j = j_to_zero ? p.beta[j] : p.beta[j] - p.lowest[j];
  p.beta[i] = moved(p.beta[i], step, i_to_zero ? 0.0 : p.highest[i], slack_i);
  p.beta[j] = -moved(-p.beta[j], step, j_to_zero ? 0.0 : -p.lowest[j], slack_j);
  mark(p, i);
  mark(p, j);
}

template <class T>
SmallDualEnd solve(const SmallDual<T>& p) {
  for (std::size_t i = 0; i < p.n; ++i) mark(p, i);
  for (std::size_t i = p.n; i < p.stride; ++i) p.up[i] = -infinity, p.down[i] = infinity;
  const Side sides[] = {{0, p.split}, {p.split, p.stride}};
  const std::size_t n_sides = p.split < p.stride ? 2 : 1;
  Extremes found[2];
  const auto move = [&](double step, const T* row_i, const T* row_j) __attribute__((always_inline)) {
    found[0] = move_and_search(p, sides[0], step, row_i, row_j);
    if (n_sides == 2) found[1] = move_and_search(p, sides[1], step, row_i, row_j);
  };
  const auto violation = [&](std::size_t s) { return found[s].highest.value - found[s].lowest; };
  const auto worst = [&] { return n_sides == 2 && violation(1) > violation(0) ? std::size_t{1} : std::size_t{0}; };
  move(0.0, p.matrix, p.matrix);
  std::size_t n_steps = 0;
  for (; violation(worst()) > p.tolerance && n_steps < p.most_steps; ++n_steps) {
    const std::size_t s = worst(), i = found[s].highest.at, j = partner_of(p, sides[s], found[s].highest);
    const double step = step_of(p, i, j);
    take(p, i, j, step);
    move(step, p.matrix + i * p.stride, p.matrix + j * p.stride);
  }
  return {n_steps, violation(worst())};
}

}  // namespace

const MarginKernels& margin_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr MarginKernels table{.block_short = fill<float>,
                                       .block_long = fill<double>,
                                       .subtract_short = subtract<float>,
                                       .subtract_long = subtract<double>,
                                       .solve_short = solve<float>,
                                       .solve_long = solve<double>,
                                       .dot = dot,
                                       .four_dots = four_dots};
  return table;
}

}  // namespace spinney
