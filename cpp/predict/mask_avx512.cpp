#if defined(__x86_64__)
#include <immintrin.h>

#include "predict/additive.h"

namespace spinney::avx512 {

extern const MaskKernels mask_kernels;
typedef std::int8_t Bytes __attribute__((vector_size(64)));
typedef std::uint8_t Leaves __attribute__((vector_size(64)));
typedef std::uint64_t Rows;  // a bit each

static inline Rows all_rows() { return ~Rows{0}; }
static inline Rows those_above(Rows here, Bytes code, Bytes cut) {
  return _mm512_mask_cmpgt_epi8_mask(here, reinterpret_cast<__m512i>(code), reinterpret_cast<__m512i>(cut));
}
static inline Leaves count_leaves(Leaves leaf, Rows rows, Leaves n) {
  const auto sum = reinterpret_cast<__m512i>(leaf);
  return reinterpret_cast<Leaves>(_mm512_mask_add_epi8(sum, rows, sum, reinterpret_cast<__m512i>(n)));
}

// Up to 32 values are looked up in registers.
static inline void add_values(const MaskTree& tree, const std::uint8_t* leaf, std::size_t n, double* __restrict sums) {
  constexpr std::size_t lanes = 8;
  const double* values = tree.values;
  const __m512d zero = _mm512_setzero_pd();
  __m512d part[4];
  for (std::size_t k = 0; k < 4; ++k) part[k] = _mm512_loadu_pd(values + k * lanes);
  for (std::size_t r = 0; r < n; r += lanes) {
    const __m512i at = _mm512_maskz_cvtepu8_epi64(0xff, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(leaf + r)));
    __m512d value;
    if (tree.n_nodes < 32) {
      const __mmask8 high = _mm512_test_epi64_mask(at, _mm512_set1_epi64(16));
      value = _mm512_mask_blend_pd(high, _mm512_permutex2var_pd(part[0], at, part[1]),
                                   _mm512_permutex2var_pd(part[2], at, part[3]));
    } else
      value = _mm512_mask_i64gather_pd(zero, 0xff, at, values, sizeof(double));
    _mm512_storeu_pd(sums + r, _mm512_add_pd(_mm512_loadu_pd(sums + r), value));
  }
}

#include "predict/mask_body.h"

}  // namespace spinney::avx512
#endif
