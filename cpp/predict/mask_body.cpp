// Kernels, compiled once per instruction set; see base/cpu.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/lanes.h"
#include "base/vectorise.h"
#include "predict/additive.h"

namespace spinney {
namespace {

typedef std::int8_t Bytes __attribute__((vector_size(register_bytes)));    // codes
typedef std::uint8_t Leaves __attribute__((vector_size(register_bytes)));  // numbers of leaves

#if defined(__AVX512BW__)

typedef std::uint64_t Rows;  // a bit each

inline Rows all_rows() { return ~Rows{0}; }
inline Rows those_above(Rows here, Bytes code, Bytes cut) {
  return _mm512_mask_cmpgt_epi8_mask(here, reinterpret_cast<__m512i>(code), reinterpret_cast<__m512i>(cut));
}
inline Leaves count_leaves(Leaves leaf, Rows rows, Leaves n) {
  const auto sum = reinterpret_cast<__m512i>(leaf);
  return reinterpret_cast<Leaves>(_mm512_mask_add_epi8(sum, rows, sum, reinterpret_cast<__m512i>(n)));
}

// Up to 32 values are looked up in registers.
inline void add_values(const MaskTree& tree, const std::uint8_t* leaf, std::size_t n, double* __restrict sums) {
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

#else

typedef Bytes Rows;  // a byte each, 0 or -1

inline Rows all_rows() { return ~Bytes{}; }
inline Rows those_above(Rows here, Bytes code, Bytes cut) { return reinterpret_cast<Rows>(code > cut) & here; }
inline Leaves count_leaves(Leaves leaf, Rows rows, Leaves n) { return leaf + (reinterpret_cast<Leaves>(rows) & n); }

inline void add_values(const MaskTree& tree, const std::uint8_t* leaf, std::size_t n, double* __restrict sums) {
  const double* values = tree.values;
  SPINNEY_IVDEP
  for (std::size_t r = 0; r < n; ++r) sums[r] += values[leaf[r]];
}

#endif

// Out of line: it would take registers from the loop over nodes, most of which are of numbers.
[[gnu::noinline]] void look_up(const std::int8_t* table, const std::int8_t* code, std::size_t n, std::int8_t* out) {
  for (std::size_t r = 0; r < n; ++r) out[r] = table[static_cast<std::uint8_t>(code[r])];
}

template <std::size_t n_rows>
void evaluate(const MaskTree& tree, const std::int8_t* codes, std::uint8_t* masks, double* __restrict sums) {
  constexpr std::size_t n_parts = n_rows / sizeof(Bytes), level_bytes = n_parts * sizeof(Rows);
  Leaves leaf[n_parts] = {};
  const Rows all = all_rows();
  for (std::size_t p = 0; p < n_parts; ++p) __builtin_memcpy(masks + p * sizeof(Rows), &all, sizeof(Rows));
  const std::int8_t* table = tree.tables;
  for (const MaskNode *next = tree.nodes, *end = next + tree.n_nodes; next != end; ++next) {
    const MaskNode node = *next;
    const std::int8_t* code_at = codes + node.slot * n_rows;
    std::int8_t looked_up[n_rows];
    if (node.is_category) {
      look_up(table, code_at, n_rows, looked_up);
      code_at = looked_up;
      table += 256;
    }
    std::uint8_t* const at = masks + node.level * level_bytes;
    std::uint8_t* const left_to = at + node.right_splits * level_bytes;
    std::uint8_t* const right_to = at + !node.right_splits * level_bytes;
    const Bytes cut = Bytes{} + node.cut;
    const Leaves n_left = Leaves{} + node.n_left;
    for (std::size_t p = 0; p < n_parts; ++p) {
      Bytes code;
      Rows here;
      __builtin_memcpy(&code, code_at + p * sizeof(Bytes), sizeof code);
      __builtin_memcpy(&here, at + p * sizeof(Rows), sizeof here);
      const Rows right = those_above(here, code, cut), left = here & ~right;
      __builtin_memcpy(left_to + p * sizeof(Rows), &left, sizeof left);
      __builtin_memcpy(right_to + p * sizeof(Rows), &right, sizeof right);
      leaf[p] = count_leaves(leaf[p], right, n_left);
    }
  }
  add_values(tree, reinterpret_cast<const std::uint8_t*>(leaf), n_rows, sums);
}

}  // namespace

const MaskKernels& mask_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr MaskKernels table{
      .few = evaluate<few_rows>,
      .many = evaluate<many_rows>,
  };
  return table;
}

}  // namespace spinney
