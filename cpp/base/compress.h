// Stable partition of sixteen words at a time by a bit mask: one instruction on AVX-512, a lookup table elsewhere.
//
// Internal linkage on purpose: this is compiled once per instruction set and must never be merged by the linker.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/lanes.h"
#include "base/partition.h"

namespace spinney {
namespace {

#if defined(__AVX512BW__)

constexpr std::size_t least_to_compress = 1;  // words: masks leave out the rest of sixteen

SPINNEY_INLINE __mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>(n < 16 ? (1u << n) - 1 : 0xffffu); }

// A bit mask of those of n <= 16 words that are at most `cut`.
SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint32_t* words, std::size_t n, std::uint32_t cut) {
  const __mmask16 here = first_lanes(n);
  return _mm512_mask_cmple_epu32_mask(here, _mm512_maskz_loadu_epi32(here, words),
                                      _mm512_set1_epi32(static_cast<int>(cut)));
}
SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint16_t* words, std::size_t n, std::uint16_t cut) {
  const __mmask16 here = first_lanes(n);
  return _mm256_mask_cmple_epu16_mask(here, _mm256_maskz_loadu_epi16(here, words),
                                      _mm256_set1_epi16(static_cast<short>(cut)));
}

// flags[word & 0xffff] of n words. A flag is 0 or 1; three bytes past the last flag are readable.
SPINNEY_INLINE std::uint32_t bits_at(const std::uint8_t* flags, const std::uint32_t* words, std::size_t n) {
  const __mmask16 here = first_lanes(n);
  const __m512i at = _mm512_and_si512(_mm512_maskz_loadu_epi32(here, words), _mm512_set1_epi32(0xffff));
  return _mm512_mask_test_epi32_mask(here, _mm512_mask_i32gather_epi32(at, here, at, flags, 1), _mm512_set1_epi32(1));
}

// Writes the words whose bit is set to `left` and the others to `right`, both in order, and returns the number on the
// left. With n = 16, up to sixteen words may be written to either side.
SPINNEY_INLINE std::size_t partition_lanes(const std::uint32_t* words, std::size_t n, std::uint32_t bits,
                                           std::uint32_t* left, std::uint32_t* right) {
  const auto went = static_cast<std::size_t>(__builtin_popcount(bits));
  const auto go = static_cast<__mmask16>(bits);
  if (n == 16) {  // the excess words were read already or are spare
    const __m512i lanes = _mm512_loadu_si512(words);
    _mm512_storeu_si512(left, _mm512_maskz_compress_epi32(go, lanes));
    _mm512_storeu_si512(right, _mm512_maskz_compress_epi32(static_cast<__mmask16>(~bits), lanes));
    return went;
  }
  const __mmask16 here = first_lanes(n);
  const __m512i lanes = _mm512_maskz_loadu_epi32(here, words);
  _mm512_mask_storeu_epi32(left, first_lanes(went), _mm512_maskz_compress_epi32(go, lanes));
  _mm512_mask_storeu_epi32(right, first_lanes(n - went),
                           _mm512_maskz_compress_epi32(static_cast<__mmask16>(here & ~bits), lanes));
  return went;
}

#elif defined(__AVX2__) || defined(__ARM_NEON)

constexpr std::size_t least_to_compress = 16;

SPINNEY_INLINE std::uint32_t bits_at(const std::uint8_t* flags, const std::uint32_t* words, std::size_t) {
  const auto two = [&](std::size_t i) __attribute__((always_inline)) {
    std::uint64_t both;  // half as many loads, which are the bottleneck
    __builtin_memcpy(&both, words + i, sizeof both);
    return (flags[both & 0xffff] | std::uint32_t{flags[both >> 32 & 0xffff]} << 1) << i;
  };
  const auto four = [&](std::size_t i) __attribute__((always_inline)) { return two(i) | two(i + 2); };
  return (four(0) | four(4)) | (four(8) | four(12));
}

#if defined(__AVX2__)

// Loads the first n of eight lanes, or all; the other lanes are 0 and their memory is not read.
SPINNEY_INLINE __m256i first_of_eight(std::size_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? static_cast<int>(n) : 8), lane);
}
SPINNEY_INLINE __m256i load_first(const std::uint32_t* words, std::size_t n) {
  return _mm256_maskload_epi32(reinterpret_cast<const int*>(words), first_of_eight(n));
}
SPINNEY_INLINE std::uint32_t bits_of_sixteen(__m256i low, __m256i high) {
  const auto bits = [](__m256i flags) __attribute__((always_inline)) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(flags)));
  };
  return bits(low) | bits(high) << 8;
}

SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint32_t* words, std::size_t, std::uint32_t cut) {
  const __m256i last = _mm256_set1_epi32(static_cast<int>(cut));
  const auto eight = [&](const std::uint32_t* from) __attribute__((always_inline)) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i below = _mm256_cmpeq_epi32(_mm256_min_epu32(v, last), v);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(below)));
  };
  return eight(words) | eight(words + 8) << 8;
}
SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint16_t* words, std::size_t, std::uint16_t cut) {
  const __m256i last = _mm256_set1_epi16(static_cast<short>(cut));
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
  const __m256i below = _mm256_cmpeq_epi16(_mm256_min_epu16(v, last), v);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(below), _mm256_extracti128_si256(below, 1));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
}

// By mask byte: the lanes that are set, in ascending order, one byte each.
constexpr auto set_lanes = [] {
  std::array<std::uint64_t, 256> lanes{};
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    std::uint32_t n = 0;
    for (std::uint64_t lane = 0; lane < 8; ++lane)
      if (bits >> lane & 1) lanes[bits] |= lane << 8 * n++;
  }
  return lanes;
}();

// Up to 8 excess words may be written to each side.
SPINNEY_INLINE std::size_t partition_lanes(const std::uint32_t* words, std::size_t, std::uint32_t bits,
                                           std::uint32_t* left, std::uint32_t* right) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)),
                high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 8));
  const auto write = [](__m256i v, std::uint32_t set, std::uint32_t* to) __attribute__((always_inline)) {
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(set_lanes[set])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(v, lanes));
  };
  const std::uint32_t first = bits & 0xff, second = bits >> 8;
  const auto went_first = static_cast<std::size_t>(__builtin_popcount(first)),
             went = went_first + static_cast<std::size_t>(__builtin_popcount(second));
  write(low, first, left);
  write(low, ~first & 0xff, right);
  write(high, second, left + went_first);
  write(high, ~second & 0xff, right + 8 - went_first);
  return went;
}

#else

SPINNEY_INLINE std::uint32_t bits_of(uint8x16_t flags) {
  const uint8x16_t weights{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint8x16_t v = vandq_u8(flags, weights);
  v = vpaddq_u8(v, v);
  v = vpaddq_u8(v, v);
  v = vpaddq_u8(v, v);
  return vgetq_lane_u16(vreinterpretq_u16_u8(v), 0);
}
// Compares sixteen words with `cut`: 0xff in the byte of each word that is at most `cut`, else 0.
SPINNEY_INLINE uint8x16_t flags_at_most(const std::uint32_t* words, uint32x4_t cut) {
  const auto four = [&](std::size_t i) __attribute__((always_inline)) {
    return vreinterpretq_u16_u32(vcleq_u32(vld1q_u32(words + i), cut));
  };
  const uint16x8_t low = vuzp1q_u16(four(0), four(4)), high = vuzp1q_u16(four(8), four(12));
  return vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
}
SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint32_t* words, std::size_t, std::uint32_t cut) {
  return bits_of(flags_at_most(words, vdupq_n_u32(cut)));
}
SPINNEY_INLINE std::uint32_t bits_at_most(const std::uint16_t* words, std::size_t, std::uint16_t cut) {
  const uint16x8_t last = vdupq_n_u16(cut);
  return bits_of(vuzp1q_u8(vreinterpretq_u8_u16(vcleq_u16(vld1q_u16(words), last)),
                           vreinterpretq_u8_u16(vcleq_u16(vld1q_u16(words + 8), last))));
}

// By 4-bit mask: the bytes of the lanes that are set, in ascending order, and their number.
struct alignas(16) LanesToMove {
  std::uint8_t bytes[16];
};
constexpr auto lanes_to_move = [] {
  std::array<LanesToMove, 16> all{};
  for (std::uint32_t bits = 0; bits < 16; ++bits) {
    std::uint32_t n = 0;
    for (std::uint32_t lane = 0; lane < 4; ++lane)
      if (bits >> lane & 1) {
        for (std::uint32_t b = 0; b < 4; ++b) all[bits].bytes[4 * n + b] = static_cast<std::uint8_t>(4 * lane + b);
        ++n;
      }
  }
  return all;
}();
constexpr std::array<std::uint8_t, 16> n_to_keep{0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

// Up to 4 excess words may be written to each side.
SPINNEY_INLINE std::size_t partition_lanes(const std::uint32_t* words, std::size_t, std::uint32_t bits,
                                           std::uint32_t* left, std::uint32_t* right) {
  const uint32x4_t v[4] = {vld1q_u32(words), vld1q_u32(words + 4), vld1q_u32(words + 8), vld1q_u32(words + 12)};
  const auto write = [](uint32x4_t from, std::uint32_t set, std::uint32_t* to) __attribute__((always_inline)) {
    vst1q_u32(to, vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(from), vld1q_u8(lanes_to_move[set].bytes))));
  };
  std::size_t n_left = 0;
  const auto part = [&](std::size_t k) __attribute__((always_inline)) {
    const std::uint32_t set = bits >> 4 * k & 15;
    write(v[k], set, left + n_left);
    write(v[k], ~set & 15, right + 4 * k - n_left);
    n_left += n_to_keep[set];
  };
  part(0), part(1), part(2), part(3);
  return n_left;
}

#endif
#else  // SSE2 has no table lookup: words are partitioned one by one

constexpr std::size_t least_to_compress = SIZE_MAX;

SPINNEY_INLINE std::uint32_t bits_at(const std::uint8_t*, const std::uint32_t*, std::size_t) { return 0; }
template <class Word>
SPINNEY_INLINE std::uint32_t bits_at_most(const Word*, std::size_t, Word) {
  return 0;
}
SPINNEY_INLINE std::size_t partition_lanes(const std::uint32_t*, std::size_t, std::uint32_t, std::uint32_t*,
                                           std::uint32_t*) {
  return 0;
}

#endif

// Stable partition in place: the words that go left come first. `spare` holds n + 16 words. Returns the number on the
// left. `bits_left(i, m)` gives the mask of words i … i + m - 1, `goes_left(i)` the side of one word.
template <class BitsLeft, class GoesLeft>
SPINNEY_INLINE std::size_t partition_words(std::uint32_t* words, std::size_t n, std::uint32_t* spare,
                                           [[maybe_unused]] BitsLeft bits_left, GoesLeft goes_left) {
  std::size_t n_left = 0, i = 0;
  if constexpr (least_to_compress <= 16)
    for (; i + 16 <= n; i += 16)
      n_left += partition_lanes(words + i, 16, bits_left(i, 16), words + n_left, spare + (i - n_left));
  if (least_to_compress == 1 && i < n) {
    n_left += partition_lanes(words + i, n - i, bits_left(i, n - i), words + n_left, spare + (i - n_left));
    i = n;
  }
  return partition_rest(words, n, spare, i, n_left, i - n_left,
                        [&](std::size_t at, std::uint32_t) __attribute__((always_inline)) { return goes_left(at); });
}

}  // namespace
}  // namespace spinney
