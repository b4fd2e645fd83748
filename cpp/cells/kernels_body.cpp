// Kernels, compiled once per instruction set; see base/cpu.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/compress.h"
#include "base/lanes.h"
#include "base/vectorise.h"
#include "cells/best_place.h"
#include "cells/best_square.h"
#include "cells/kernels.h"
#include "cells/read_rows.h"
#include "cells/sort_few.h"
#include "criterion/entropy.h"
#include "criterion/misclassification.h"
#include "criterion/poisson.h"
#include "criterion/squared_error.h"

namespace spinney {
namespace {

template <class Criterion>
void score_all(const double* s_left, const double* w_left, const double* s_right, const double* w_right, std::size_t n,
               double* out) {
  SPINNEY_IVDEP
  for (std::size_t i = 0; i < n; ++i) out[i] = Criterion::pair(s_left[i], w_left[i], s_right[i], w_right[i]);
}

std::size_t first_largest(const double* scores, std::size_t n) {
  double largest = scores[0];
  std::size_t i = 0;
  if (n >= 16) {
    EightNumbers best = load<8>(scores);
    for (i = 8; i + 8 <= n; i += 8) best = larger(best, load<8>(scores + i));
    largest = largest_of(best);
  }
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
  for (i = 0; scores[i] != largest;) ++i;
  return i;
}

SPINNEY_INLINE EightNumbers numbers_of(const Lanes<std::int32_t, 8>& whole) {
#if defined(__x86_64__)
  return convert<double>(whole);
#else  // NEON converts 64-bit integers only: GCC would move shorter ones through general registers, one by one
  return convert<double>(convert<std::int64_t>(whole));
#endif
}

template <std::size_t n_chunks>
void gini_of_cells_of(const std::uint32_t* cells, const std::uint32_t* present, std::size_t n,
                      const std::uint32_t* start, const double* total, double weight, double min_weight, double* out,
                      double* product) {
  using Weights = Lanes<std::int32_t, 8>;
  const auto weights_at = [](const std::uint32_t* from) __attribute__((always_inline)) {
    Weights w;
    __builtin_memcpy(&w, from, sizeof w);
    return w;
  };
  Weights left[n_chunks];
  EightNumbers all[n_chunks];
  for (std::size_t c = 0; c < n_chunks; ++c) {
    left[c] = weights_at(start + 8 * c);
    all[c] = load<8>(total + 8 * c);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t* cell = cells + present[i] * (8 * n_chunks);
    EightNumbers w{}, squares_left{}, squares_right{};
#pragma GCC unroll 2
    for (std::size_t c = 0; c < n_chunks; ++c) {
      left[c] += weights_at(cell + 8 * c);
      const EightNumbers l = numbers_of(left[c]), r = all[c] - l;
      w += l;
      squares_left += l * l;
      squares_right += r * r;
    }
    const double w_left = sum_of(w), w_right = weight - w_left;
    const bool allowed = !(w_left < min_weight || w_right < min_weight);
    out[i] = allowed ? sum_of(squares_left) * w_right + sum_of(squares_right) * w_left : -__builtin_inf();
    product[i] = w_left * w_right;
  }
  SPINNEY_IVDEP
  for (std::size_t i = 0; i < n; ++i) out[i] /= product[i];
}

void gini_of_cells(const std::uint32_t* cells, std::size_t lanes, const std::uint32_t* present, std::size_t n,
                   const std::uint32_t* start, const double* total, double weight, double min_weight, double* out,
                   double* product) {
  if (lanes == 8) return gini_of_cells_of<1>(cells, present, n, start, total, weight, min_weight, out, product);
  if (lanes == 16) return gini_of_cells_of<2>(cells, present, n, start, total, weight, min_weight, out, product);
  if (lanes == 32) return gini_of_cells_of<4>(cells, present, n, start, total, weight, min_weight, out, product);
  return gini_of_cells_of<32>(cells, present, n, start, total, weight, min_weight, out, product);
}

// A row of weight w increases S of a class by w, and its square by w (2 S + w).
void gini_of_rows(const std::uint32_t* words, const std::uint32_t* packed, std::size_t n, const std::int64_t* total,
                  std::int64_t squares, std::int64_t* left, double* out, double* product) {
  std::int64_t squares_left = 0, squares_right = squares, w_left = 0;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const std::uint32_t row = packed[words[i] & 0xffff], k = row & 0xff;
    const std::int64_t w = row >> 8, s = left[k];
    squares_left += w * (2 * s + w);
    squares_right += w * (2 * (s - total[1 + k]) + w);
    left[k] = s + w;
    w_left += w;
    const double wl = static_cast<double>(w_left), wr = static_cast<double>(total[0] - w_left);
    out[i] = static_cast<double>(squares_left) * wr + static_cast<double>(squares_right) * wl;
    product[i] = wl * wr;
  }
  SPINNEY_IVDEP
  for (std::size_t i = 0; i + 1 < n; ++i)
    out[i] = words[i] >> 16 != words[i + 1] >> 16 ? out[i] / product[i] : -__builtin_inf();
}

#if defined(__AVX512F__)
// The position of a word is the number of words below it.
template <std::size_t n_chunks>
void sort_few_of(std::uint32_t* words, std::size_t n) {
  typedef std::uint32_t SixteenWords __attribute__((vector_size(64)));
  SixteenWords mine[n_chunks], below[n_chunks];
  for (std::size_t c = 0; c < n_chunks; ++c) {
    __builtin_memcpy(&mine[c], words + 16 * c, sizeof mine[c]);
    below[c] = SixteenWords{};
  }
  for (std::size_t i = 0; i < n; ++i) {
    const SixteenWords other = SixteenWords{} + words[i];
    for (std::size_t c = 0; c < n_chunks; ++c) below[c] -= static_cast<SixteenWords>(other < mine[c]);
  }
  std::uint32_t place[16 * n_chunks], copy[16 * n_chunks];
  __builtin_memcpy(place, below, sizeof place);
  __builtin_memcpy(copy, mine, sizeof copy);
  for (std::size_t i = 0; i < n; ++i) words[place[i]] = copy[i];
}

void sort_few(std::uint32_t* words, std::size_t n) {
  if (n <= 16) return sort_few_of<1>(words, n);
  if (n <= 32) return sort_few_of<2>(words, n);
  if (n <= 64) return sort_few_of<4>(words, n);
  sort_few_of<8>(words, n);
}
#else
void sort_few(std::uint32_t* words, std::size_t n) {
  if (n <= 16) return sort_rows<4>(words, n);
  if (n <= 32) return sort_rows<8>(words, n);
  if (n <= 64) return sort_rows<16>(words, n);
  sort_rows<32>(words, n);
}
#endif

std::size_t partition(std::uint32_t* words, std::size_t n, const std::uint8_t* side, std::uint32_t* spare) {
  return partition_words(
      words, n, spare, [&](std::size_t i, std::size_t m) { return bits_at(side, words + i, m); },
      [&](std::size_t i) { return side[words[i] & 0xffff] != 0; });
}

std::size_t partition_by_key(std::uint32_t* rows, std::size_t n, const std::uint32_t* keys, std::uint32_t cut,
                             std::uint32_t* spare) {
  return partition_words(
      rows, n, spare, [&](std::size_t i, std::size_t m) { return bits_at_most(keys + i, m, cut); },
      [&](std::size_t i) { return keys[i] <= cut; });
}

std::size_t partition_by_rank(std::uint32_t* rows, std::size_t n, const std::uint16_t* ranks, std::uint16_t cut,
                              std::uint32_t* spare) {
  return partition_words(
      rows, n, spare, [&](std::size_t i, std::size_t m) { return bits_at_most(ranks + i, m, cut); },
      [&](std::size_t i) { return ranks[i] <= cut; });
}

std::size_t partition_flags_by_rank(std::uint64_t* flags, std::size_t n, const std::uint16_t* ranks, std::uint16_t cut,
                                    std::uint64_t* spare) {
  std::size_t n_left = 0, n_right = 0, i = 0;
#if defined(__AVX512BW__)
  const __m128i last = _mm_set1_epi16(static_cast<short>(cut));
  for (; i + 8 <= n; i += 8) {  // excess writes past the end of a side are overwritten
    const __m512i words = _mm512_loadu_si512(flags + i);
    const __mmask8 left = _mm_cmple_epu16_mask(_mm_loadu_si128(reinterpret_cast<const __m128i*>(ranks + i)), last);
    _mm512_storeu_si512(flags + n_left, _mm512_maskz_compress_epi64(left, words));
    _mm512_storeu_si512(spare + n_right, _mm512_maskz_compress_epi64(static_cast<__mmask8>(~left), words));
    const auto went = static_cast<std::size_t>(__builtin_popcount(left));
    n_left += went;
    n_right += 8 - went;
  }
#endif
  return partition_rest(flags, n, spare, i, n_left, n_right,
                        [&](std::size_t at, std::uint64_t) { return ranks[at] <= cut; });
}

#if defined(__AVX512F__)
SPINNEY_INLINE void key_range(const std::uint32_t* keys, std::size_t n, std::uint32_t* low, std::uint32_t* high) {
  __m512i lowest = _mm512_set1_epi32(-1), highest = _mm512_setzero_si512();
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 here = first_lanes(n - i);
    const __m512i k = _mm512_maskz_loadu_epi32(here, keys + i);
    lowest = _mm512_mask_min_epu32(lowest, here, lowest, k);
    highest = _mm512_mask_max_epu32(highest, here, highest, k);
  }
  const auto reduce = [](const __m512i& v, auto&& of_eight, auto&& of_four) {
    const __m256i h =
        of_eight(_mm512_maskz_extracti64x4_epi64(0xff, v, 0), _mm512_maskz_extracti64x4_epi64(0xff, v, 1));
    __m128i q = of_four(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    q = of_four(q, _mm_shuffle_epi32(q, 0x4e));
    q = of_four(q, _mm_shuffle_epi32(q, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(q));
  };
  *low = reduce(
      lowest, [](__m256i a, __m256i b) { return _mm256_min_epu32(a, b); },
      [](__m128i a, __m128i b) { return _mm_min_epu32(a, b); });
  *high = reduce(
      highest, [](__m256i a, __m256i b) { return _mm256_max_epu32(a, b); },
      [](__m128i a, __m128i b) { return _mm_max_epu32(a, b); });
}
#elif defined(__AVX2__)
SPINNEY_INLINE void key_range(const std::uint32_t* keys, std::size_t n, std::uint32_t* low, std::uint32_t* high) {
  const __m256i all = _mm256_set1_epi32(-1);
  __m256i lowest = all, highest = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i));
    lowest = _mm256_min_epu32(lowest, k);
    highest = _mm256_max_epu32(highest, k);
  }
  if (i < n) {
    const __m256i k = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i)), here = first_of_eight(n - i);
    lowest = _mm256_min_epu32(lowest, _mm256_or_si256(k, _mm256_xor_si256(here, all)));
    highest = _mm256_max_epu32(highest, _mm256_and_si256(k, here));
  }
  const auto reduce = [](__m256i v, auto&& of_four) __attribute__((always_inline)) {
    __m128i q = of_four(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    q = of_four(q, _mm_shuffle_epi32(q, 0x4e));
    q = of_four(q, _mm_shuffle_epi32(q, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(q));
  };
  *low = reduce(lowest, [](__m128i a, __m128i b) { return _mm_min_epu32(a, b); });
  *high = reduce(highest, [](__m128i a, __m128i b) { return _mm_max_epu32(a, b); });
}
#else
SPINNEY_INLINE void key_range(const std::uint32_t* keys, std::size_t n, std::uint32_t* low, std::uint32_t* high) {
  auto lowest = load<16>(keys), highest = lowest;
  if (n < 16) {
    const auto in_node = count_from<16>(std::uint32_t{0}) < every<16>(static_cast<std::uint32_t>(n));
    lowest = highest = select(in_node, lowest, every<16>(keys[0]));
  }
  for (std::size_t i = 16; i < n; i += 16) {
    const auto k = load<16>(keys + (n - i < 16 ? n - 16 : i));  // the last group ends with the last key
    lowest = smaller(lowest, k);
    highest = larger(highest, k);
  }
  *low = smallest_of(lowest);
  *high = largest_of(highest);
}
#endif

void key_ranges(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, std::uint32_t* low,
                std::uint32_t* high) {
  for (std::size_t c = 0; c < n_columns; ++c) key_range(keys + c * n, n, low + c, high + c);
}

void rank_range(const std::uint16_t* ranks, std::size_t n, std::uint16_t* low, std::uint16_t* high) {
#if defined(__AVX512BW__)
  // the maximum is the complement of the minimum of the complements
  __m512i lowest = _mm512_set1_epi32(-1), highest = lowest;
  for (std::size_t i = 0; i < n; i += 32) {
    const __mmask32 here = n - i < 32 ? (std::uint32_t{1} << (n - i)) - 1 : ~std::uint32_t{0};
    const __m512i r = _mm512_maskz_loadu_epi16(here, ranks + i);
    lowest = _mm512_mask_min_epu16(lowest, here, lowest, r);
    highest = _mm512_min_epu16(highest, _mm512_xor_si512(r, _mm512_set1_epi32(-1)));
  }
  const auto least = [](const __m512i& v) {
    const __m256i h =
        _mm256_min_epu16(_mm512_maskz_extracti64x4_epi64(0xff, v, 0), _mm512_maskz_extracti64x4_epi64(0xff, v, 1));
    const __m128i q = _mm_min_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    return static_cast<std::uint16_t>(_mm_extract_epi16(_mm_minpos_epu16(q), 0));
  };
  *low = least(lowest);
  *high = static_cast<std::uint16_t>(~least(highest));
#else
  std::uint16_t lowest = ranks[0], highest = ranks[0];
  for (std::size_t i = 1; i < n; ++i) {
    lowest = ranks[i] < lowest ? ranks[i] : lowest;
    highest = ranks[i] > highest ? ranks[i] : highest;
  }
  *low = lowest;
  *high = highest;
#endif
}

std::size_t places_of_keys(const std::uint32_t* keys, std::size_t n, std::uint32_t one, std::uint32_t other,
                           std::uint32_t* places) {
  std::size_t n_found = 0, i = 0;
#if defined(__AVX512F__)
  const __m512i first = _mm512_set1_epi32(static_cast<int>(one)), second = _mm512_set1_epi32(static_cast<int>(other));
  for (; i < n; i += 16) {
    const __mmask16 here = first_lanes(n - i);
    const __m512i k = _mm512_maskz_loadu_epi32(here, keys + i);
    std::uint32_t same = _mm512_mask_cmpeq_epu32_mask(here, k, first) | _mm512_mask_cmpeq_epu32_mask(here, k, second);
    for (; same != 0; same &= same - 1)
      places[n_found++] = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(__builtin_ctz(same));
  }
#elif defined(__AVX2__)
  const __m256i first = _mm256_set1_epi32(static_cast<int>(one)), second = _mm256_set1_epi32(static_cast<int>(other));
  const auto is_one = [&](__m256i k) __attribute__((always_inline)) {
    return _mm256_or_si256(_mm256_cmpeq_epi32(k, first), _mm256_cmpeq_epi32(k, second));
  };
  const auto take = [&](__m256i low, __m256i high, std::uint32_t here) __attribute__((always_inline)) {
    for (std::uint32_t same = bits_of_sixteen(is_one(low), is_one(high)) & here; same != 0; same &= same - 1)
      places[n_found++] = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(__builtin_ctz(same));
  };
  for (; i + 16 <= n; i += 16)
    take(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i)),
         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i + 8)), 0xffff);
  if (i < n) {
    const std::size_t m = n - i;
    take(load_first(keys + i, m), load_first(keys + i + 8, m < 8 ? 0 : m - 8), (1u << m) - 1);
    i = n;
  }
#else
  for (; i + 16 <= n; i += 16) {  // rarely any
    const auto k = load<16>(keys + i);
    if (!any_of((k == every<16>(one)) | (k == every<16>(other)))) continue;
    for (std::uint32_t lane = 0; lane < 16; ++lane)
      if (keys[i + lane] == one || keys[i + lane] == other) places[n_found++] = static_cast<std::uint32_t>(i) + lane;
  }
#endif
  for (; i < n; ++i)
    if (keys[i] == one || keys[i] == other) places[n_found++] = static_cast<std::uint32_t>(i);
  return n_found;
}

SPINNEY_INLINE void sum_bytes_of(const std::uint32_t* keys, std::size_t n, std::uint32_t cut,
                                 const std::uint8_t* values, std::uint32_t* n_left, std::uint32_t* sum) {
  std::uint32_t count = 0, total = 0;
#if defined(__AVX512BW__)
  const __m512i last = _mm512_set1_epi32(static_cast<int>(cut));
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 here = first_lanes(n - i);
    const __mmask16 left = _mm512_mask_cmple_epu32_mask(here, _mm512_maskz_loadu_epi32(here, keys + i), last);
    const __m128i v = _mm_maskz_loadu_epi8(left, values + i);
    count += static_cast<std::uint32_t>(__builtin_popcount(left));
    total += static_cast<std::uint32_t>(__builtin_popcount(_mm_test_epi8_mask(v, v)));
  }
#elif defined(__AVX2__)
  const auto take = [&](std::size_t i, std::uint32_t left) __attribute__((always_inline)) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i));
    const auto ones =
        static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_slli_epi16(v, 7)));  // from the lowest bit of each byte
    count += static_cast<std::uint32_t>(__builtin_popcount(left));
    total += static_cast<std::uint32_t>(__builtin_popcount(left & ones));
  };
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) take(i, bits_at_most(keys + i, 16, cut));
  if (i < n) take(i, bits_at_most(keys + i, 16, cut) & ((1u << (n - i)) - 1));
#elif defined(__ARM_NEON)
  const uint32x4_t last = vdupq_n_u32(cut);
  constexpr std::size_t block = 16 * 255;  // limit of byte counters
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = n - begin < block ? n : begin + block;
    uint8x16_t counts = vdupq_n_u8(0), totals = counts;
    const auto take = [&](std::size_t i, uint8x16_t left) __attribute__((always_inline)) {
      counts = vsubq_u8(counts, left);
      totals = vaddq_u8(totals, vandq_u8(left, vld1q_u8(values + i)));
    };
    std::size_t i = begin;
    for (; i + 16 <= end; i += 16) take(i, flags_at_most(keys + i, last));
    if (i < end) {
      const uint8x16_t lane{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
      take(i, vandq_u8(flags_at_most(keys + i, last), vcltq_u8(lane, vdupq_n_u8(static_cast<std::uint8_t>(end - i)))));
    }
    count += vaddlvq_u8(counts);
    total += vaddlvq_u8(totals);
  }
#else
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t left = keys[i] <= cut;
    count += left;
    total += left & values[i];
  }
#endif
  *n_left = count;
  *sum = total;
}

void sum_bytes(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, const std::uint32_t* cuts,
               const std::uint8_t* values, std::uint32_t* counts, std::uint32_t* sums) {
  for (std::size_t c = 0; c < n_columns; ++c) sum_bytes_of(keys + c * n, n, cuts[c], values, counts + c, sums + c);
}

std::size_t sum_values(const std::uint32_t* keys, std::size_t n, std::uint32_t cut, const std::int64_t* values,
                       std::int64_t* sum) {
  std::uint64_t count = 0;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t left = -std::int64_t{keys[i] <= cut};
    count -= static_cast<std::uint64_t>(left);
    total += left & values[i];
  }
  *sum = total;
  return count;
}

}  // namespace

const Kernels& kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr Kernels table{
      .squared_error = score_all<SquaredError>,
      .entropy = score_all<Entropy>,
      .misclassification = score_all<Misclassification>,
      .poisson = score_all<Poisson>,
      .rate = score_all<Rate>,
      .first_largest = first_largest,
      .gini_of_cells = gini_of_cells,
      .gini_of_rows = gini_of_rows,
      .best_square = best_square,
      .about_one_by_places = about_one_by_places,
      .best_place = best_place,
      .sort_few = sort_few,
      .partition = partition,
      .partition_by_key = partition_by_key,
      .partition_by_rank = partition_by_rank,
      .partition_flags_by_rank = partition_flags_by_rank,
      .read_ranks = read_ranks,
      .read_keys = read_keys,
      .read_column = read_column,
      .key_ranges = key_ranges,
      .rank_range = rank_range,
      .places_of_keys = places_of_keys,
      .sum_bytes = sum_bytes,
      .sum_values = sum_values,
  };
  return table;
}

}  // namespace spinney
