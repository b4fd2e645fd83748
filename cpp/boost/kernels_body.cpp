// Kernels, compiled once per instruction set; see base/cpu.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <limits>

#include "base/parting.h"
#include "boost/kernels.h"
#include "loss/losses.h"

namespace spinney {
namespace {

void subtract(Packed* large, const Packed* small, std::size_t n) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) large[i] -= small[i];
}

typedef Packed Eight __attribute__((vector_size(64), aligned(8), may_alias));

template <class Code>
void add_eights(const Code* tile, std::size_t stride, std::size_t n_lanes, std::size_t room, const Row* rows,
                std::size_t n, const Packed* pairs, Packed* cells) {
  for (std::size_t i = 0; i < n; ++i) {
    const Code* row = tile + rows[i] * stride;
    const Eight pair = *reinterpret_cast<const Eight*>(pairs + 8 * i);
    Packed* first = cells;
    for (std::size_t lane = 0; lane < n_lanes; ++lane, first += 8 * room)
      *reinterpret_cast<Eight*>(first + std::size_t{8} * row[lane]) += pair;
  }
}

double score_of(Packed left_sums, const CutQuery& q) {
  const double g_left = static_cast<double>(gradient_of(left_sums)),
               h_left = static_cast<double>(hessian_of(left_sums));
  const double g_right = q.gradient - g_left, left = h_left + q.lambda, right = q.hessian - h_left + q.lambda;
  return (g_left * g_left * right + g_right * g_right * left) / (left * right);
}

void offer_cut(std::size_t cut, const Packed* prefix, const CutQuery& q, CutFound& found) {
  const double score = without_rounding(score_of(prefix[cut], q));
  if (!(score > found.score)) return;
  found.score = score;
  found.cut = static_cast<std::uint32_t>(cut);
  found.left = prefix[cut];
}

// Rough scores say which cuts may be the best; these are then compared in double precision. So the best cut does not
// depend on how rough they are, as long as they are right to the margin.
#if defined(__AVX512F__)

__m512i add_up_lanes(__m512i v) {
  const __m512i zero = _mm512_setzero_si512();
  v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 7));
  v = _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 6));
  return _mm512_add_epi64(v, _mm512_maskz_alignr_epi64(0xff, v, zero, 4));
}

// Which of 16 places from `at` on lie in [first, end)?
__mmask16 places_within(std::size_t at, std::size_t first, std::size_t end) {
  const std::size_t low = first > at ? first - at : 0, high = end > at ? end - at : 0;
  const std::uint32_t below_high = high >= 16 ? 0xffffu : (1u << high) - 1;
  return static_cast<__mmask16>(low >= 16 ? 0u : below_high & (0xffffu << low));
}

// With l and r the shares that both sides have of the hessian and twice lambda, S, and d = g_left - l g, the score of a cut is
// (g^2 + d^2 / (l r)) / S. The rough part is d^2 / (l r), in single precision: half the work of the score itself. Of d, which
// may be a small difference, the error is below 6 2^-24 sqrt(l S score), hence that of the gain d^2 / (l r S) below
// 2^-20 sqrt(score gain / r), or 2^-41 score / r where the gain is smaller still.
struct RoughCuts {
  explicit RoughCuts(const CutQuery& q, double needed)
      : total(q.hessian + 2 * q.lambda),
        alone(q.gradient * q.gradient / total),
        most_uneven(total / (needed + q.lambda)) {}

  // What the rough part must reach for the cut to be looked at: nearly the largest, and nearly the floor.
  float enough(float largest, double floor) const {
    const double best = static_cast<double>(largest) / total, wanted = floor - alone;
    const double gain = best > wanted ? best : wanted, score = alone + gain;
    const double error = 0x1p-19 * __builtin_sqrt(score * gain * most_uneven) + 0x1p-39 * score * most_uneven;
    return static_cast<float>((gain * (1 - 0x1p-11) - error) * total);
  }

  double total, alone, most_uneven;
};

CutFound best_cut(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& q, Packed* prefix,
                  float* scores) {
  CutFound found;
  const double needed = __builtin_ceil(q.min_hessian);
  if (!(2 * needed <= q.hessian)) return found;
  const RoughCuts rough(q, needed > 1 ? needed : 1);
  const __m512i least = _mm512_set1_epi32(static_cast<int>(needed)),
                most = _mm512_set1_epi32(static_cast<int>(q.hessian - needed)), last = _mm512_set1_epi64(7),
                h = _mm512_set1_epi32(static_cast<int>(q.hessian)),
                low = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                high = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512 lambda = _mm512_set1_ps(static_cast<float>(q.lambda / rough.total)), none = _mm512_set1_ps(-1),
               unit = _mm512_set1_ps(static_cast<float>(1 / rough.total)),
               g = _mm512_set1_ps(static_cast<float>(q.gradient));
  const std::size_t end_cut = q.end_cut < n_cuts ? q.end_cut : n_cuts;
  __m512i sum = _mm512_set1_epi64(static_cast<long long>(before));
  __m512 largest = none;
  const auto score_cuts = [&](std::size_t i, __mmask16 there, __mmask16 allowed) __attribute__((always_inline)) {
    const auto there_a = static_cast<__mmask8>(there), there_b = static_cast<__mmask8>(there >> 8);
    __m512i a = add_up_lanes(_mm512_maskz_loadu_epi64(there_a, cells + i));
    __m512i b = add_up_lanes(_mm512_maskz_loadu_epi64(there_b, cells + i + 8));
    const __m512i sum_a = _mm512_maskz_permutexvar_epi64(0xff, last, a),
                  sum_b = _mm512_maskz_permutexvar_epi64(0xff, last, b);
    a = _mm512_add_epi64(a, sum);
    b = _mm512_add_epi64(b, _mm512_add_epi64(sum, sum_a));
    sum = _mm512_add_epi64(sum, _mm512_add_epi64(sum_a, sum_b));
    _mm512_mask_storeu_epi64(prefix + i, there_a, a);
    _mm512_mask_storeu_epi64(prefix + i + 8, there_b, b);
    const __m512i h_left = _mm512_permutex2var_epi32(a, low, b), g_left = _mm512_permutex2var_epi32(a, high, b);
    __mmask16 valid = _mm512_mask_cmpge_epu32_mask(allowed, h_left, least);
    valid = _mm512_mask_cmple_epu32_mask(valid, h_left, most);
    const __m512i h_right = _mm512_sub_epi32(h, h_left);
    const __m512 left = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, h_left), unit, lambda),
                 right = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, h_right), unit, lambda);
    const __m512 d = _mm512_fnmadd_ps(g, left, _mm512_maskz_cvtepi32_ps(0xffff, g_left));
    const __m512 score = _mm512_mul_ps(_mm512_mul_ps(d, d), _mm512_maskz_rcp14_ps(0xffff, _mm512_mul_ps(left, right)));
    const __m512 kept = _mm512_mask_mov_ps(none, valid, score);
    _mm512_storeu_ps(scores + i, kept);
    largest = _mm512_maskz_max_ps(0xffff, largest, kept);
  };
  std::size_t i = 0;
  if (q.first_cut == 0 && end_cut == n_cuts)
    for (; i + 16 <= n_cuts; i += 16) score_cuts(i, 0xffff, 0xffff);
  for (; i < n_cuts; i += 16) score_cuts(i, places_within(i, 0, n_cuts), places_within(i, q.first_cut, end_cut));
  float by_lane[16], best = -1;
  _mm512_storeu_ps(by_lane, largest);
  for (const float s : by_lane) best = s > best ? s : best;
  if (best < 0) return found;
  const float needed_score = rough.enough(best, q.floor);
  if (best < needed_score) return found;
  const __m512 enough = _mm512_set1_ps(needed_score);
  for (i = 0; i < n_cuts; i += 16) {
    auto near = static_cast<std::uint32_t>(_mm512_cmp_ps_mask(_mm512_loadu_ps(scores + i), enough, _CMP_GE_OQ));
    for (; near != 0; near &= near - 1) {
      const std::size_t cut = i + static_cast<std::size_t>(__builtin_ctz(near));
      if (scores[cut] >= 0) offer_cut(cut, prefix, q, found);
    }
  }
  return found;
}

#else

// What a rough score must reach for the cut to be looked at: nearly the largest, and nearly the floor.
float enough_of(float largest, float margin, double floor_score) {
  const auto floor = static_cast<float>(floor_score);
  return (largest > floor ? largest : floor) * margin;
}

float largest_of(const float* scores, std::size_t n) {
  typedef float Lanes __attribute__((vector_size(64), aligned(4)));
  float largest = -1;
  std::size_t i = 0;
  if (n >= 32) {
    Lanes best = *reinterpret_cast<const Lanes*>(scores);
    for (i = 16; i + 16 <= n; i += 16) {
      const Lanes s = *reinterpret_cast<const Lanes*>(scores + i);
      best = s > best ? s : best;
    }
    for (int lane = 0; lane < 16; ++lane) largest = best[lane] > largest ? best[lane] : largest;
  }
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
  return largest;
}

// The first cut whose hessian on the left is at least a limit. Written so that no branch depends on the sums.
std::size_t first_cut(const Packed* prefix, std::size_t n, std::uint32_t limit) {
  const Packed* low = prefix;
  while (n > 1) {
    const std::size_t half = n / 2;
    low += static_cast<std::uint32_t>(low[half - 1]) < limit ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(low - prefix) + (n == 1 && static_cast<std::uint32_t>(*low) < limit);
}

bool any_reaches(const float* scores, std::size_t n, float enough) {
  bool any = false;
  for (std::size_t i = 0; i < n; ++i) any |= scores[i] >= enough;
  return any;
}

CutFound best_cut(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& q, Packed* prefix,
                  float* scores) {
  CutFound found;
  for (std::size_t i = 0; i < n_cuts; ++i) prefix[i] = before += cells[i];
  // Hessians never fall along the cuts, so those with enough on both sides are neighbours.
  const double needed = __builtin_ceil(q.min_hessian);
  if (!(2 * needed <= q.hessian)) return found;
  const auto least = static_cast<std::uint32_t>(needed), most = static_cast<std::uint32_t>(q.hessian - needed);
  std::size_t begin = first_cut(prefix, n_cuts, least), end = first_cut(prefix, n_cuts, most + 1);
  begin = begin < q.first_cut ? q.first_cut : begin;
  end = end > q.end_cut ? q.end_cut : end;
  if (begin >= end) return found;
  const auto g = static_cast<std::int32_t>(q.gradient), h = static_cast<std::int32_t>(q.hessian);
  const double total = q.hessian + 2 * q.lambda;  // scores are taken times this, sides as shares of it: none overflows
  const auto lambda = static_cast<float>(q.lambda / total), unit = static_cast<float>(1 / total);
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) {
    const auto g_left = static_cast<std::int32_t>(prefix[i] >> 32), h_left = static_cast<std::int32_t>(prefix[i]);
    const auto gl = static_cast<float>(g_left), gr = static_cast<float>(g - g_left);
    const float left = static_cast<float>(h_left) * unit + lambda,
                right = static_cast<float>(h - h_left) * unit + lambda;
    scores[i] = (gl * gl * right + gr * gr * left) / (left * right);
  }
  const float enough = enough_of(largest_of(scores + begin, end - begin), 1 - 0x1p-18f, q.floor * total);
  for (std::size_t block = begin; block < end; block += 16) {
    const std::size_t stop = block + 16 < end ? block + 16 : end;
    if (!any_reaches(scores + block, stop - block, enough)) continue;
    for (std::size_t i = block; i < stop; ++i)
      if (scores[i] >= enough) offer_cut(i, prefix, q, found);
  }
  return found;
}

#endif

#if defined(__AVX512F__)
// Codes of 16 rows, of one byte or two.
template <class Code>
__m512i gather_codes(const Code* codes, __m512i rows) {
  const __m512i low = _mm512_set1_epi32(sizeof(Code) == 1 ? 0xff : 0xffff);
  return _mm512_and_si512(_mm512_mask_i32gather_epi32(low, 0xffff, rows, codes, sizeof(Code)), low);
}
#endif

// Parts rows by their codes; `lanes_left` says the same as `goes_left` of 16 codes at a time.
template <class Code, class LanesLeft, class GoesLeft>
[[gnu::always_inline]] inline std::size_t part_rows(Row* rows, std::size_t n, const Code* codes, Row* spare,
                                                    [[maybe_unused]] LanesLeft lanes_left, GoesLeft goes_left) {
  std::size_t n_left = 0, n_right = 0, i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512i r = _mm512_loadu_si512(rows + i);
    const __mmask16 left = lanes_left(gather_codes(codes, r));
    _mm512_storeu_si512(rows + n_left, _mm512_maskz_compress_epi32(left, r));
    _mm512_storeu_si512(spare + n_right, _mm512_maskz_compress_epi32(static_cast<__mmask16>(~left), r));
    const auto went = static_cast<std::size_t>(__builtin_popcount(left));
    n_left += went;
    n_right += 16 - went;
  }
#endif
  return part_rest(rows, n, spare, i, n_left, n_right,
                   [&](std::size_t, Row r) { return goes_left(std::uint32_t{codes[r]}); });
}

std::size_t part(Row* rows, std::size_t n, const std::uint8_t* codes, std::uint32_t cut, std::uint32_t also_left,
                 Row* spare) {
  const auto goes_left = [&](std::uint32_t code) { return (code <= cut) | (code == also_left); };
#if defined(__AVX512F__)
  const __m512i last = _mm512_set1_epi32(static_cast<int>(cut)), other = _mm512_set1_epi32(static_cast<int>(also_left));
  const auto lanes_left = [&](__m512i code) {
    return static_cast<__mmask16>(_mm512_cmple_epu32_mask(code, last) | _mm512_cmpeq_epu32_mask(code, other));
  };
#else
  const auto lanes_left = nullptr;
#endif
  return part_rows(rows, n, codes, spare, lanes_left, goes_left);
}

template <class Code>
std::size_t part_by_bits(Row* rows, std::size_t n, const Code* codes, const std::uint32_t* bits,
                         [[maybe_unused]] std::size_t n_bits, Row* spare) {
  const auto goes_left = [&](std::uint32_t code) { return (bits[code >> 5] >> (code & 31) & 1) != 0; };
#if defined(__AVX512F__)
  const __m512i first_bits = _mm512_loadu_si512(bits), one = _mm512_set1_epi32(1), within = _mm512_set1_epi32(31);
  const auto lanes_left = [&](__m512i code) {
    const __m512i word = _mm512_maskz_srli_epi32(0xffff, code, 5);
    const __m512i found = n_bits <= 512 ? _mm512_maskz_permutexvar_epi32(0xffff, word, first_bits)
                                        : _mm512_mask_i32gather_epi32(one, 0xffff, word, bits, 4);
    return _mm512_test_epi32_mask(_mm512_maskz_srlv_epi32(0xffff, found, _mm512_and_si512(code, within)), one);
  };
#else
  const auto lanes_left = nullptr;
#endif
  return part_rows(rows, n, codes, spare, lanes_left, goes_left);
}

void rank(const double* keys, std::size_t n, std::uint32_t* places) {
  for (std::size_t i = 0; i < n; ++i) {
    const double key = keys[i];
    std::uint64_t place = 0;
    for (std::size_t j = 0; j < i; ++j) place += keys[j] <= key;
    for (std::size_t j = i + 1; j < n; ++j) place += keys[j] < key;
    places[i] = static_cast<std::uint32_t>(place);
  }
}

void quantise(const Pair* pairs, std::size_t first, std::size_t n, float gradient_scale, float hessian_scale,
              std::uint32_t key, Packed* out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t z = static_cast<std::uint32_t>(first + i) * 0x9e3779b1u + key;
    z = (z ^ (z >> 16)) * 0x7feb352du;
    z = (z ^ (z >> 15)) * 0x846ca68bu;
    z ^= z >> 16;
    const float draw_gradient = static_cast<float>(static_cast<std::int32_t>(z & 0xffff)) * 0x1p-16f;
    const float draw_hessian = static_cast<float>(static_cast<std::int32_t>(z >> 16)) * 0x1p-16f;
    // up with the probability of the remainder, which is exact: whole numbers stay what they are
    const float g = pairs[i].gradient * gradient_scale, h = pairs[i].hessian * hessian_scale;
    std::int32_t whole = static_cast<std::int32_t>(g), whole_hessian = static_cast<std::int32_t>(h);
    whole -= static_cast<float>(whole) > g;
    whole += draw_gradient < g - static_cast<float>(whole);
    whole_hessian += draw_hessian < h - static_cast<float>(whole_hessian);
    out[i] = (static_cast<Packed>(static_cast<std::uint32_t>(whole)) << 32) + static_cast<Packed>(whole_hessian);
  }
}

WholeSums sum_pairs(const Pair* pairs, const Row* rows, std::size_t n, double gradient_scale, double hessian_scale) {
  constexpr std::size_t block = 128, ahead = 16;
  Pair near[block];
  WholeSums sums;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    for (std::size_t i = 0; i < m; ++i) {
      __builtin_prefetch(pairs + rows[begin + i + ahead < n ? begin + i + ahead : n - 1]);
      near[i] = pairs[rows[begin + i]];
    }
    std::int64_t g = 0, h = 0;
    for (std::size_t i = 0; i < m; ++i) {
      g += static_cast<std::int64_t>(static_cast<double>(near[i].gradient) * gradient_scale);
      h += static_cast<std::int64_t>(static_cast<double>(near[i].hessian) * hessian_scale);
    }
    sums.gradient += g;
    sums.hessian += h;
  }
  return sums;
}

#include "boost/kernels_losses.h"

template <class Loss>
constexpr LossKernels kernels_of_loss{.gradients = fill_gradients<Loss>, .values = fill_values<Loss>};

}  // namespace

const BoostKernels& boost_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr BoostKernels table{
      .subtract = subtract,
      .add_eights = add_eights<std::uint8_t>,
      .add_wide_eights = add_eights<std::uint16_t>,
      .best_cut = best_cut,
      .part = part,
      .part_by_bits = part_by_bits<std::uint8_t>,
      .part_wide_by_bits = part_by_bits<std::uint16_t>,
      .rank = rank,
      .quantise = quantise,
      .sum_pairs = sum_pairs,
      .squared = kernels_of_loss<SquaredLoss>,
      .absolute = kernels_of_loss<AbsoluteLoss>,
      .huber = kernels_of_loss<HuberLoss>,
      .quantile = kernels_of_loss<QuantileLoss>,
      .logistic = kernels_of_loss<LogisticLoss>,
      .exponential = kernels_of_loss<ExponentialLoss>,
      .poisson = kernels_of_loss<PoissonLoss>,
      .gamma = kernels_of_loss<GammaLoss>,
      .tweedie = kernels_of_loss<TweedieLoss>,
      .softmax = softmax,
      .class_gradients = class_gradients,
      .softmax_loss = softmax_loss,
  };
  return table;
}

}  // namespace spinney
