// Partition of rows by their codes, included by kernels_body.cpp.

#if defined(__AVX512F__)
using CodeLanes = __m512i;
#elif defined(__AVX2__)
using CodeLanes = __m256i;
#endif

// Codes up to a cut go left, and one other code.
struct AtMost {
  SPINNEY_INLINE bool holds(std::uint32_t code) const { return (code <= cut) | (code == other); }

#if defined(__AVX512F__)
  SPINNEY_INLINE std::uint32_t bits(CodeLanes code) const {
    return static_cast<std::uint32_t>(_mm512_cmple_epu32_mask(code, _mm512_set1_epi32(static_cast<int>(cut))) |
                                      _mm512_cmpeq_epu32_mask(code, _mm512_set1_epi32(static_cast<int>(other))));
  }
#elif defined(__AVX2__)
  SPINNEY_INLINE std::uint32_t bits(CodeLanes code) const {
    const __m256i last = _mm256_set1_epi32(static_cast<int>(cut)), one = _mm256_set1_epi32(static_cast<int>(other));
    const __m256i left =
        _mm256_or_si256(_mm256_cmpeq_epi32(_mm256_min_epu32(code, last), code), _mm256_cmpeq_epi32(code, one));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(left)));
  }
#endif

  std::uint32_t cut, other;
};

// Codes whose bit is set go left.
struct ByBits {
  SPINNEY_INLINE bool holds(std::uint32_t code) const { return (set[code >> 5] >> (code & 31) & 1) != 0; }

#if defined(__AVX512F__)
  SPINNEY_INLINE std::uint32_t bits(CodeLanes code) const {
    const __m512i word = _mm512_maskz_srli_epi32(0xffff, code, 5), one = _mm512_set1_epi32(1),
                  within = _mm512_and_si512(code, _mm512_set1_epi32(31));
    const __m512i found = n_bits <= 512 ? _mm512_maskz_permutexvar_epi32(0xffff, word, _mm512_loadu_si512(set))
                                        : _mm512_mask_i32gather_epi32(one, 0xffff, word, set, sizeof *set);
    return _mm512_test_epi32_mask(_mm512_maskz_srlv_epi32(0xffff, found, within), one);
  }
#elif defined(__AVX2__)
  SPINNEY_INLINE std::uint32_t bits(CodeLanes code) const {
    const __m256i all = _mm256_set1_epi32(-1);
    const __m256i found = _mm256_mask_i32gather_epi32(all, reinterpret_cast<const int*>(set),
                                                      _mm256_srli_epi32(code, 5), all, sizeof *set);
    const __m256i sign = _mm256_sllv_epi32(found, _mm256_andnot_si256(code, _mm256_set1_epi32(31)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(sign)));
  }
#endif

  const std::uint32_t* set;
  std::size_t n_bits;  // at least 512
};

// A bit mask of n <= 16 rows: 1 if the code goes left.
template <class Code, class Rule>
SPINNEY_INLINE std::uint32_t bits_left(const Rule& rule, const Code* codes, const Row* rows,
                                       [[maybe_unused]] std::size_t n) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_set1_epi32(sizeof(Code) == 1 ? 0xff : 0xffff);
  const __mmask16 here = first_lanes(n);
  const __m512i at = _mm512_maskz_loadu_epi32(here, rows);
  // Lanes without a row have the code 0, for which every rule has a word to read.
  const __m512i read = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), here, at, codes, sizeof(Code));
  return here & rule.bits(_mm512_and_si512(read, low));
#elif defined(__AVX2__)
  const auto eight = [&](const Row* from) __attribute__((always_inline)) {
    const __m256i low = _mm256_set1_epi32(sizeof(Code) == 1 ? 0xff : 0xffff), all = _mm256_set1_epi32(-1);
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return rule.bits(_mm256_and_si256(
        _mm256_mask_i32gather_epi32(all, reinterpret_cast<const int*>(codes), at, all, sizeof(Code)), low));
  };
  return eight(rows) | eight(rows + 8) << 8;
#else
  std::uint32_t found = 0;
  for (std::uint32_t k = 0; k < 16; ++k) found |= std::uint32_t{rule.holds(codes[rows[k]])} << k;
  return found;
#endif
}

template <class Code, class Rule>
SPINNEY_INLINE std::size_t partition_rows(Row* rows, std::size_t n, const Code* codes, Row* spare, const Rule& rule) {
  return partition_words(
      rows, n, spare,
      [&](std::size_t i, std::size_t m) __attribute__((always_inline)) { return bits_left(rule, codes, rows + i, m); },
      [&](std::size_t i) __attribute__((always_inline)) { return rule.holds(codes[rows[i]]); });
}

std::size_t part(Row* rows, std::size_t n, const std::uint8_t* codes, std::uint32_t cut, std::uint32_t also_left,
                 Row* spare) {
  return partition_rows(rows, n, codes, spare, AtMost{cut, also_left});
}

template <class Code>
std::size_t partition_by_bits(Row* rows, std::size_t n, const Code* codes, const std::uint32_t* bits,
                              std::size_t n_bits, Row* spare) {
  return partition_rows(rows, n, codes, spare, ByBits{bits, n_bits});
}
