#if defined(__x86_64__)
#include <immintrin.h>

#include "predict/coded_walk.h"

namespace spinney::avx512 {

namespace {

struct Lanes {  // 16 rows
  __m512i row, at;
};

Lanes start(const CodedTree& tree, const std::uint32_t* members, std::size_t n) {
  const __mmask16 present = n >= 16 ? 0xffff : static_cast<__mmask16>((1u << n) - 1);
  const __m512i row = _mm512_mask_loadu_epi32(_mm512_set1_epi32(static_cast<int>(members[0])), present, members);
  return {_mm512_mullo_epi32(row, _mm512_set1_epi32(static_cast<int>(tree.width))), _mm512_setzero_si512()};
}

// One step down; false once all rows rest. Masked forms throughout: gcc 12 warns of the plain ones' own code.
bool advance(const CodedTree& tree, Lanes& lanes) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i low =
      _mm512_mask_i32gather_epi64(zero, 0xff, _mm512_maskz_extracti64x4_epi64(0xff, lanes.at, 0), tree.nodes, 8);
  const __m512i high =
      _mm512_mask_i32gather_epi64(zero, 0xff, _mm512_maskz_extracti64x4_epi64(0xff, lanes.at, 1), tree.nodes, 8);
  const __m512i code = _mm512_permutex2var_epi32(low, even, high), next = _mm512_permutex2var_epi32(low, odd, high);
  const __m512i slot = _mm512_maskz_srl_epi32(0xffff, next, _mm_cvtsi32_si128(static_cast<int>(tree.shift)));
  const __m512i value = _mm512_mask_i32gather_epi32(zero, 0xffff, _mm512_add_epi32(lanes.row, slot), tree.codes, 4);
  const __mmask16 left = _mm512_cmplt_epu32_mask(value, code);
  const __m512i right = _mm512_and_si512(next, _mm512_set1_epi32(static_cast<int>(tree.mask)));
  const __m512i to = _mm512_mask_add_epi32(right, left, lanes.at, _mm512_set1_epi32(1));
  const __mmask16 moved = _mm512_cmpneq_epi32_mask(to, lanes.at);
  lanes.at = to;
  return moved != 0;
}

void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, std::uint32_t* leaf) {
  constexpr std::size_t step = 32;  // two vectors: one waits while the other goes on
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    Lanes first = start(tree, members + i, 16), second = start(tree, members + i + 16, 16);
    bool moved = true;
    while (moved) {
      moved = advance(tree, first);
      moved |= advance(tree, second);
    }
    _mm512_storeu_si512(leaf + i, first.at);
    _mm512_storeu_si512(leaf + i + 16, second.at);
  }
  for (; i < n; i += 16) {
    Lanes lanes = start(tree, members + i, n - i);
    while (advance(tree, lanes)) {
    }
    const __mmask16 present = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - i)) - 1);
    _mm512_mask_storeu_epi32(leaf + i, present, lanes.at);
  }
}

// Two vectors of eight, for the same reason as above; the last may be alone.
void count_below(const double* thresholds, std::size_t n, const double* x, std::size_t n_x, std::uint32_t* count) {
  for (std::size_t i = 0; i < n_x; i += 16) {
    const std::size_t other = i + 8 < n_x ? i + 8 : i;
    const __m512d x0 = _mm512_loadu_pd(x + i), x1 = _mm512_loadu_pd(x + other);
    __m256i below0 = _mm256_setzero_si256(), below1 = below0;
    const auto is_below = [&](__m256i at, __m512d v) {
      return _mm512_cmp_pd_mask(_mm512_mask_i32gather_pd(_mm512_setzero_pd(), 0xff, at, thresholds, 8), v, _CMP_LT_OQ);
    };
    std::size_t left = n;
    for (; left > 1; left -= left / 2) {
      const __m256i half = _mm256_set1_epi32(static_cast<int>(left / 2));
      const __m256i before = _mm256_set1_epi32(static_cast<int>(left / 2 - 1));
      below0 = _mm256_mask_add_epi32(below0, is_below(_mm256_add_epi32(below0, before), x0), below0, half);
      below1 = _mm256_mask_add_epi32(below1, is_below(_mm256_add_epi32(below1, before), x1), below1, half);
    }
    if (left == 1) {
      const __m256i one = _mm256_set1_epi32(1);
      below0 = _mm256_mask_add_epi32(below0, is_below(below0, x0), below0, one);
      below1 = _mm256_mask_add_epi32(below1, is_below(below1, x1), below1, one);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(count + i), below0);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(count + other), below1);
  }
}

}  // namespace

const CodedKernels coded_kernels{walk, count_below};

}  // namespace spinney::avx512
#endif
