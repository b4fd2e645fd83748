// Gathers ranks and keys of a node's rows, included by kernels_body.cpp.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "base/compress.h"
#include "base/lanes.h"

namespace spinney {
namespace {

void read_ranks(const std::uint8_t* bits, std::size_t stride, const std::uint32_t* rows, std::size_t n,
                std::uint32_t shift, std::uint32_t mask, std::uint16_t* out) {
  std::size_t i = 0;
#if defined(__AVX512BW__)
  const __m512i step = _mm512_set1_epi32(static_cast<int>(stride)), only = _mm512_set1_epi32(static_cast<int>(mask));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  for (; i < n; i += 16) {
    const __mmask16 here = first_lanes(n - i);
    const __m512i at = _mm512_mullo_epi32(_mm512_maskz_loadu_epi32(here, rows + i), step);
    const __m512i words = _mm512_mask_i32gather_epi32(only, here, at, bits, 8);
    _mm256_mask_storeu_epi16(
        out + i, here,
        _mm512_maskz_cvtepi32_epi16(here, _mm512_and_si512(_mm512_maskz_srl_epi32(here, words, by), only)));
  }
#endif
  for (; i < n; ++i) {
    std::uint32_t word;
    __builtin_memcpy(&word, bits + 8 * stride * rows[i], sizeof word);
    out[i] = static_cast<std::uint16_t>(word >> shift & mask);
  }
}

#if !defined(__AVX512F__)
// Keys of a fixed number of rows: no loop with an unpredictable end. Rows past the last repeat it, and their output
// belongs to the next column, which is written later, or is unused.
template <std::size_t size>
SPINNEY_INLINE void read_group(const std::uint32_t* keys, std::size_t stride, const std::uint32_t* rows,
                               std::size_t n_here, const std::uint32_t* columns, std::size_t n_columns, std::size_t n,
                               std::uint32_t* out) {
  const std::uint32_t* row[size];
  for (std::size_t i = 0; i < size; ++i) row[i] = keys + rows[i < n_here ? i : n_here - 1] * stride;
  for (std::size_t c = 0; c < n_columns; ++c) {
    std::uint32_t* to = out + c * n;
    const std::uint32_t column = columns[c];  // a local copy, because it would be reloaded after each store
#pragma GCC unroll 16
    for (std::size_t i = 0; i < size; ++i) to[i] = row[i][column];
  }
}
#endif

void read_keys(const std::uint32_t* keys, std::size_t stride, const std::uint32_t* rows, std::size_t n,
               const std::uint32_t* columns, std::size_t n_columns, std::uint32_t* out) {
#if !defined(__AVX512F__)
  if (n <= 4) return read_group<4>(keys, stride, rows, n, columns, n_columns, n, out);
  if (n <= 8) return read_group<8>(keys, stride, rows, n, columns, n_columns, n, out);
  if (n < 16) return read_group<16>(keys, stride, rows, n, columns, n_columns, n, out);
#endif
  constexpr std::size_t ahead = 32, longest = 64;
  const auto fetch = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t f = 0; f < stride; f += 16) __builtin_prefetch(keys + rows[i] * stride + f);
  };
  for (std::size_t begin = 0; begin < n; begin += 16) {
    if (stride <= longest && begin + ahead < n) fetch(begin + ahead, begin + ahead + 16 < n ? begin + ahead + 16 : n);
#if defined(__AVX512F__)
    const std::size_t n_here = n - begin < 16 ? n - begin : 16;
    // 64-bit indices: a table may have more than 2^31 keys
    const __mmask16 here = first_lanes(n_here);
    const __m512i at = _mm512_maskz_loadu_epi32(here, rows + begin),
                  step = _mm512_set1_epi64(static_cast<long long>(stride));
    const __m512i low = _mm512_maskz_mul_epu32(
        0xff, _mm512_maskz_cvtepu32_epi64(0xff, _mm512_maskz_extracti64x4_epi64(0xff, at, 0)), step);
    const __m512i high = _mm512_maskz_mul_epu32(
        0xff, _mm512_maskz_cvtepu32_epi64(0xff, _mm512_maskz_extracti64x4_epi64(0xff, at, 1)), step);
    for (std::size_t c = 0; c < n_columns; ++c) {
      const __m256i a =
          _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), static_cast<__mmask8>(here), low, keys + columns[c], 4);
      std::uint32_t* to = out + c * n + begin;
      _mm256_mask_storeu_epi32(to, static_cast<__mmask8>(here), a);
      if (n_here <= 8) continue;
      const __m256i b = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), static_cast<__mmask8>(here >> 8), high,
                                                    keys + columns[c], 4);
      _mm256_mask_storeu_epi32(to + 8, static_cast<__mmask8>(here >> 8), b);
    }
#else
    const std::size_t at = n - begin < 16 ? n - 16 : begin;  // the last group ends with the last row
    read_group<16>(keys, stride, rows + at, 16, columns, n_columns, n, out + at);
#endif
  }
}

void read_column(const std::uint32_t* keys, const std::uint32_t* rows, std::size_t n, std::uint32_t* out) {
  std::size_t i = 0;
#if defined(__AVX512F__)
  const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (; i + 16 <= n; i += 16) {
    const __m512i at = _mm512_loadu_si512(rows + i);
    const __m512i from = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(rows[i])), places);
    if (_mm512_cmpneq_epi32_mask(at, from) == 0) {  // adjacent rows
      _mm512_storeu_si512(out + i, _mm512_loadu_si512(keys + rows[i]));
      continue;
    }
    const __m256i a = _mm512_mask_i64gather_epi32(
        _mm256_setzero_si256(), 0xff, _mm512_maskz_cvtepu32_epi64(0xff, _mm512_maskz_extracti64x4_epi64(0xff, at, 0)),
        keys, 4);
    const __m256i b = _mm512_mask_i64gather_epi32(
        _mm256_setzero_si256(), 0xff, _mm512_maskz_cvtepu32_epi64(0xff, _mm512_maskz_extracti64x4_epi64(0xff, at, 1)),
        keys, 4);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 8), b);
  }
#else
  for (; i + 16 <= n; i += 16) {
    if (rows[i + 15] - rows[i] == 15 && !any_of(~(load<16>(rows + i) == count_from<16>(rows[i])))) {  // adjacent rows
      store(out + i, load<16>(keys + rows[i]));
      continue;
    }
#pragma GCC unroll 16
    for (std::size_t j = 0; j < 16; ++j) out[i + j] = keys[rows[i + j]];
  }
#endif
  for (; i < n; ++i) out[i] = keys[rows[i]];
}

}  // namespace
}  // namespace spinney
