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

typedef __mmask64 Rows;  // a bit each

inline Rows those_above(Bytes code, Bytes cut) {
  return _mm512_cmpgt_epi8_mask(reinterpret_cast<__m512i>(code), reinterpret_cast<__m512i>(cut));
}
// Not a blend: GCC makes it a masked store, which stalls a later load. Rows above go right, where leaves have larger
// numbers.
inline Leaves choose(Rows rows, Leaves theirs, Leaves of_others) {
  const auto others = reinterpret_cast<__m512i>(of_others);
  return reinterpret_cast<Leaves>(_mm512_mask_max_epu8(others, rows, others, reinterpret_cast<__m512i>(theirs)));
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

inline Rows those_above(Bytes code, Bytes cut) { return reinterpret_cast<Rows>(code > cut); }
inline Leaves choose(Rows rows, Leaves theirs, Leaves of_others) {
  const Leaves mask = reinterpret_cast<Leaves>(rows);
#if defined(__x86_64__)  // rows above go right, where leaves have larger numbers: one instruction less than a selection
  const Leaves chosen = mask & theirs;
  return chosen > of_others ? chosen : of_others;
#else
  return (mask & theirs) | (~mask & of_others);
#endif
}

// Eight rows at a time, with one load of their leaves and paired sums: loads and stores dominate the time.
inline void add_values(const MaskTree& tree, const std::uint8_t* leaf, std::size_t n, double* __restrict sums) {
  const double* values = tree.values;
  for (std::size_t r = 0; r < n; r += 8) {
    std::uint64_t eight;
    __builtin_memcpy(&eight, leaf + r, sizeof eight);
    const auto value = [&](std::size_t k) { return values[eight >> 8 * k & 255]; };
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 8; k += 2) {
      typedef double Two __attribute__((vector_size(16)));
      Two sum;
      __builtin_memcpy(&sum, sums + r + k, sizeof sum);
      sum += Two{value(k), value(k + 1)};
      __builtin_memcpy(sums + r + k, &sum, sizeof sum);
    }
  }
}

#endif

// Not inlined: it would take registers from the loop over nodes, most of which are numeric.
[[gnu::noinline]] void look_up(const std::int8_t* table, const std::int8_t* code, std::size_t n, std::int8_t* out) {
  for (std::size_t r = 0; r < n; ++r) out[r] = table[static_cast<std::uint8_t>(code[r])];
}

SPINNEY_INLINE Leaves leaves_at(const std::uint8_t* from) {
  Leaves leaves;
  __builtin_memcpy(&leaves, from, sizeof leaves);
  return leaves;
}

// Writes choose(rows that go right, position) for the rows of a node, one register at a time.
template <std::size_t n_rows, class Choose>
SPINNEY_INLINE void decide(const std::int8_t* codes, std::int8_t cut_at, std::uint8_t* out, Choose choose) {
  const Bytes cut = Bytes{} + cut_at;
#pragma GCC unroll 16
  for (std::size_t at = 0; at < n_rows; at += sizeof(Bytes)) {
    Bytes code;
    __builtin_memcpy(&code, codes + at, sizeof code);
    const Leaves leaves = choose(those_above(code, cut), at);
    __builtin_memcpy(out + at, &leaves, sizeof leaves);
  }
}

// Narrow registers: avoiding repeated loads of a leaf is worth a branch.
template <std::size_t n_rows>
SPINNEY_INLINE void evaluate_by_kind(const MaskNode& node, const std::int8_t* codes, const std::uint8_t* lines,
                                     std::uint8_t* out) {
  const std::uint8_t *const left = lines + node.left * line_rows, *const right = lines + node.right * line_rows;
  const auto left_leaf = Leaves{} + static_cast<std::uint8_t>(node.left);
  const auto right_leaf = Leaves{} + static_cast<std::uint8_t>(node.right);
  const bool left_splits = node.left >= n_leaf_lines, right_splits = node.right >= n_leaf_lines;
  if (left_splits && right_splits)
    decide<n_rows>(codes, node.cut, out, [&](Rows above, std::size_t at) {
      return choose(above, leaves_at(right + at), leaves_at(left + at));
    });
  else if (left_splits)
    decide<n_rows>(codes, node.cut, out,
                   [&](Rows above, std::size_t at) { return choose(above, right_leaf, leaves_at(left + at)); });
  else if (right_splits)
    decide<n_rows>(codes, node.cut, out,
                   [&](Rows above, std::size_t at) { return choose(above, leaves_at(right + at), left_leaf); });
  else
    decide<n_rows>(codes, node.cut, out, [&](Rows above, std::size_t) { return choose(above, right_leaf, left_leaf); });
}

// Wide registers: a node takes less time than a mispredicted branch.
template <std::size_t n_rows>
SPINNEY_INLINE void evaluate_any_kind(const MaskNode& node, const std::int8_t* codes, const std::uint8_t* lines,
                                      std::uint8_t* out) {
  const std::uint8_t *const left = lines + node.left * line_rows, *const right = lines + node.right * line_rows;
  const std::size_t left_step = std::size_t{node.left >= n_leaf_lines} * line_rows;
  const std::size_t right_step = std::size_t{node.right >= n_leaf_lines} * line_rows;
  decide<n_rows>(codes, node.cut, out, [&](Rows above, std::size_t at) {
    const std::size_t line = at / line_rows, rest = at % line_rows;
    return choose(above, leaves_at(right + line * right_step + rest), leaves_at(left + line * left_step + rest));
  });
}

template <std::size_t n_rows>
void evaluate(const MaskTree& tree, const std::int8_t* codes, std::uint8_t* lines, double* __restrict sums) {
  std::uint8_t* const places = lines + n_leaf_lines * line_rows;
  if (tree.n_nodes == 0) __builtin_memset(places, 0, n_rows);
  const std::int8_t* table = tree.tables;
  for (const MaskNode *node = tree.nodes, *end = node + tree.n_nodes; node != end; ++node) {
    const std::int8_t* code_at = codes + node->slot * n_rows;
    std::int8_t looked_up[n_rows];
    if (node->is_category) {
      look_up(table, code_at, n_rows, looked_up);
      code_at = looked_up;
      table += 256;
    }
    std::uint8_t* const out = places + node->place * lines_per_place * line_rows;
    if constexpr (register_bytes == 16)
      evaluate_by_kind<n_rows>(*node, code_at, lines, out);
    else
      evaluate_any_kind<n_rows>(*node, code_at, lines, out);
  }
  add_values(tree, places, n_rows, sums);
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
