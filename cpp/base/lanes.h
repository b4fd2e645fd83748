// Fixed groups of lanes, held in as many registers as the instruction set needs.
//
// Where numbers are summed, the bits of the result rest on the order of the additions. So kernels are written for a fixed
// number of lanes, whatever the register: eight doubles are one register of AVX-512, two of AVX2 and four of NEON or SSE2.
// A plain `vector_size(64)` will not do: where registers are narrower, GCC takes selections apart into single numbers, 4 to 15
// times as slow.
//
// Internal linkage on purpose: this is compiled once per instruction set and must never be merged by the linker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"  // groups are passed to inlined functions only

#define SPINNEY_INLINE [[gnu::always_inline]] inline

namespace spinney {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

template <class T, std::size_t n_lanes>
struct Lanes {
  static constexpr std::size_t part_bytes = n_lanes * sizeof(T) < register_bytes ? n_lanes * sizeof(T) : register_bytes;
  static constexpr std::size_t n_parts = n_lanes * sizeof(T) / part_bytes;
  typedef T Part __attribute__((vector_size(part_bytes), may_alias));

  Part part[n_parts];
};

// What a comparison gives: all bits of a lane, or none.
template <class T>
using Flag = std::conditional_t<
    sizeof(T) == 8, std::int64_t,
    std::conditional_t<sizeof(T) == 4, std::int32_t, std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>>>;
template <class T, std::size_t n>
using Flags = Lanes<Flag<T>, n>;

template <std::size_t n, class T>
SPINNEY_INLINE Lanes<T, n> every(T x) {
  Lanes<T, n> r;
  for (auto& part : r.part) part = x - typename Lanes<T, n>::Part{};  // which keeps the sign of 0
  return r;
}
template <std::size_t n, class T>
SPINNEY_INLINE Lanes<T, n> load(const T* from) {
  constexpr std::size_t in_part = Lanes<T, n>::part_bytes / sizeof(T);
  Lanes<T, n> r;  // part by part: copied as a whole, a group of many parts takes the way through memory
  for (std::size_t i = 0; i < r.n_parts; ++i) __builtin_memcpy(&r.part[i], from + i * in_part, r.part_bytes);
  return r;
}
template <std::size_t n, class T>
SPINNEY_INLINE void store(T* to, const Lanes<T, n>& v) {
  constexpr std::size_t in_part = Lanes<T, n>::part_bytes / sizeof(T);
  for (std::size_t i = 0; i < v.n_parts; ++i) __builtin_memcpy(to + i * in_part, &v.part[i], v.part_bytes);
}

// 0, 1, 2, …
template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> places() {
  T each[n];
  for (std::size_t i = 0; i < n; ++i) each[i] = static_cast<T>(i);
  return load<n>(each);
}

#define SPINNEY_LANES_OPERATOR(op)                                                      \
  template <class T, std::size_t n>                                                     \
  SPINNEY_INLINE Lanes<T, n> operator op(const Lanes<T, n>& a, const Lanes<T, n>& b) {  \
    Lanes<T, n> r;                                                                      \
    for (std::size_t i = 0; i < r.n_parts; ++i) r.part[i] = a.part[i] op b.part[i];     \
    return r;                                                                           \
  }                                                                                     \
  template <class T, std::size_t n>                                                     \
  SPINNEY_INLINE Lanes<T, n>& operator op## = (Lanes<T, n> & a, const Lanes<T, n>& b) { \
    return a = a op b;                                                                  \
  }
SPINNEY_LANES_OPERATOR(+)
SPINNEY_LANES_OPERATOR(-)
SPINNEY_LANES_OPERATOR(*)
SPINNEY_LANES_OPERATOR(/)
SPINNEY_LANES_OPERATOR(&)
SPINNEY_LANES_OPERATOR(|)
#undef SPINNEY_LANES_OPERATOR

template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> operator~(const Lanes<T, n>& a) {
  Lanes<T, n> r;
  for (std::size_t i = 0; i < r.n_parts; ++i) r.part[i] = ~a.part[i];
  return r;
}

#define SPINNEY_LANES_COMPARISON(op)                                                                              \
  template <class T, std::size_t n>                                                                               \
  SPINNEY_INLINE Flags<T, n> operator op(const Lanes<T, n>& a, const Lanes<T, n>& b) {                            \
    Flags<T, n> r;                                                                                                \
    for (std::size_t i = 0; i < r.n_parts; ++i) r.part[i] = (typename Flags<T, n>::Part)(a.part[i] op b.part[i]); \
    return r;                                                                                                     \
  }
SPINNEY_LANES_COMPARISON(<)
SPINNEY_LANES_COMPARISON(>)
SPINNEY_LANES_COMPARISON(<=)
SPINNEY_LANES_COMPARISON(==)
#undef SPINNEY_LANES_COMPARISON

template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> select(const Flags<T, n>& flags, const Lanes<T, n>& yes, const Lanes<T, n>& no) {
  [[maybe_unused]] typedef typename Lanes<T, n>::Part Part;
  [[maybe_unused]] typedef typename Flags<T, n>::Part Bits;
  Lanes<T, n> r;
  for (std::size_t i = 0; i < r.n_parts; ++i) {
#if defined(__AVX512F__)
    r.part[i] = flags.part[i] ? yes.part[i] : no.part[i];
#else  // spares the comparison of the flags with 0
    r.part[i] = (Part)((flags.part[i] & (Bits)yes.part[i]) | (~flags.part[i] & (Bits)no.part[i]));
#endif
  }
  return r;
}
template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> larger(const Lanes<T, n>& a, const Lanes<T, n>& b) {
  return select(b > a, b, a);
}
template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> smaller(const Lanes<T, n>& a, const Lanes<T, n>& b) {
  return select(b < a, b, a);
}

// As static_cast of each lane.
template <class To, class T, std::size_t n>
SPINNEY_INLINE Lanes<To, n> convert(const Lanes<T, n>& a) {
  constexpr std::size_t n_parts =
      Lanes<To, n>::n_parts > Lanes<T, n>::n_parts ? Lanes<To, n>::n_parts : Lanes<T, n>::n_parts;
  typedef T From __attribute__((vector_size(n * sizeof(T) / n_parts)));
  typedef To Into __attribute__((vector_size(n * sizeof(To) / n_parts)));
  Lanes<To, n> r;
  for (std::size_t i = 0; i < n_parts; ++i) {
    From from;
    __builtin_memcpy(&from, reinterpret_cast<const char*>(&a) + i * sizeof from, sizeof from);
    const Into to = __builtin_convertvector(from, Into);
    __builtin_memcpy(reinterpret_cast<char*>(&r) + i * sizeof to, &to, sizeof to);
  }
  return r;
}

template <class Vector, class Op, std::size_t... i>
SPINNEY_INLINE auto fold_register(Vector v, Op op, std::index_sequence<i...>) {
  if constexpr (sizeof...(i) == 1)
    return op(v[0], v[1]);
  else
    return fold_register(op(__builtin_shufflevector(v, v, i...), __builtin_shufflevector(v, v, (i + sizeof...(i))...)),
                         op, std::make_index_sequence<sizeof...(i) / 2>{});
}

// Lane i with lane i + n / 2, the halves of what that gives in the same way, and so on: the same order for any register.
template <class T, std::size_t n, class Op>
SPINNEY_INLINE T fold(Lanes<T, n> v, Op op) {
  for (std::size_t half = v.n_parts / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) v.part[i] = op(v.part[i], v.part[i + half]);
  constexpr std::size_t in_register = v.part_bytes / sizeof(T);
  return fold_register(v.part[0], op, std::make_index_sequence<in_register / 2>{});
}
template <class T, std::size_t n>
SPINNEY_INLINE T sum_of(const Lanes<T, n>& v) {
  return fold(v, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}
template <class T, std::size_t n>
SPINNEY_INLINE T largest_of(const Lanes<T, n>& v) {
  return fold(v, [](auto a, auto b) __attribute__((always_inline)) { return b > a ? b : a; });
}
template <class T, std::size_t n>
SPINNEY_INLINE T smallest_of(const Lanes<T, n>& v) {
  return fold(v, [](auto a, auto b) __attribute__((always_inline)) { return b < a ? b : a; });
}

#if defined(__AVX2__)
// A bit for each flag of a register.
template <class Part>
SPINNEY_INLINE std::uint32_t bits_of(const Part& flags) {
  constexpr bool is_short = sizeof(flags[0]) == 4;
  if constexpr (sizeof flags == 32)
    return static_cast<std::uint32_t>(is_short ? _mm256_movemask_ps((__m256)flags)
                                               : _mm256_movemask_pd((__m256d)flags));
#if defined(__AVX512F__)
  else if constexpr (sizeof flags == 64)
    return is_short ? _mm512_movepi32_mask((__m512i)flags) : _mm512_movepi64_mask((__m512i)flags);
#endif
  else
    return static_cast<std::uint32_t>(is_short ? _mm_movemask_ps((__m128)flags) : _mm_movemask_pd((__m128d)flags));
}
#endif

// How many flags of 4 or 8 bytes are set, of few enough that a lane can count them; and whether any is.
template <class T, std::size_t n>
SPINNEY_INLINE std::uint32_t count_of(const Lanes<T, n>& flags) {
#if defined(__aarch64__)
  auto sum = flags.part[0];
  for (std::size_t i = 1; i < flags.n_parts; ++i) sum += flags.part[i];
  if constexpr (sizeof(T) == 4) return static_cast<std::uint32_t>(-vaddvq_s32((int32x4_t)sum));
  if constexpr (sizeof(T) == 8) return static_cast<std::uint32_t>(-vaddvq_s64((int64x2_t)sum));
#elif defined(__AVX2__)
  int count = 0;
  for (const auto& part : flags.part) count += __builtin_popcount(bits_of(part));
  return static_cast<std::uint32_t>(count);
#endif
  return static_cast<std::uint32_t>(-sum_of(flags));
}
template <class T, std::size_t n>
SPINNEY_INLINE bool any_of(const Lanes<T, n>& flags) {
#if defined(__aarch64__)
  auto any = flags.part[0];
  for (std::size_t i = 1; i < flags.n_parts; ++i) any |= flags.part[i];
  return vmaxvq_u32((uint32x4_t)any) != 0;
#elif defined(__AVX2__)
  auto any = flags.part[0];
  for (std::size_t i = 1; i < flags.n_parts; ++i) any |= flags.part[i];
  return bits_of(any) != 0;
#else
  return fold(flags, [](auto a, auto b) __attribute__((always_inline)) { return a | b; }) != 0;
#endif
}

// The low and the high half of each word.
template <std::size_t n>
struct Halves {
  Lanes<std::int32_t, n> low, high;
};
template <std::size_t n, std::size_t... i>
SPINNEY_INLINE Halves<n> halves_of(const Lanes<std::uint64_t, n>& v, std::index_sequence<i...>) {
  typedef typename Lanes<std::int32_t, n>::Part Part;
  Halves<n> r;
  for (std::size_t p = 0; p < r.low.n_parts; ++p) {
    const Part a = (Part)v.part[2 * p], b = (Part)v.part[2 * p + 1];
    r.low.part[p] = __builtin_shufflevector(a, b, (2 * i)...);
    r.high.part[p] = __builtin_shufflevector(a, b, (2 * i + 1)...);
  }
  return r;
}
template <std::size_t n>
SPINNEY_INLINE Halves<n> halves_of(const Lanes<std::uint64_t, n>& v) {
  return halves_of(v, std::make_index_sequence<Lanes<std::int32_t, n>::part_bytes / 4>{});
}

// ---- rough arithmetic: the last bits differ between instruction sets, so that no result may rest on them ------------

// a * b + c, rounded once or twice.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> rough_multiply_add(const Lanes<float, n>& a, const Lanes<float, n>& b,
                                                  const Lanes<float, n>& c) {
#if defined(__aarch64__)
  Lanes<float, n> r;
  for (std::size_t i = 0; i < r.n_parts; ++i)
    r.part[i] = (typename Lanes<float, n>::Part)vfmaq_f32((float32x4_t)c.part[i], (float32x4_t)a.part[i],
                                                          (float32x4_t)b.part[i]);
  return r;
#else
  return a * b + c;
#endif
}

// a / b, off by 2^-14 of it at most; b is normal, and so is 1 / b.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> rough_ratio(const Lanes<float, n>& a, const Lanes<float, n>& b) {
#if defined(__aarch64__)
  Lanes<float, n> r;
  for (std::size_t i = 0; i < r.n_parts; ++i) {  // an estimate of 8 bits, and one step of Newton's
    const float32x4_t divisor = (float32x4_t)b.part[i], estimate = vrecpeq_f32(divisor);
    r.part[i] = (typename Lanes<float, n>::Part)vmulq_f32(vmulq_f32((float32x4_t)a.part[i], estimate),
                                                          vrecpsq_f32(divisor, estimate));
  }
  return r;
#else
  return a / b;
#endif
}

// The larger of two numbers; neither is NaN, and which 0 is larger is not said.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> larger_number(const Lanes<float, n>& a, const Lanes<float, n>& b) {
  Lanes<float, n> r;
  for (std::size_t i = 0; i < r.n_parts; ++i) {
#if defined(__aarch64__)
    r.part[i] = (typename Lanes<float, n>::Part)vmaxnmq_f32((float32x4_t)a.part[i], (float32x4_t)b.part[i]);
#else
    r.part[i] = b.part[i] > a.part[i] ? b.part[i] : a.part[i];
#endif
  }
  return r;
}

}  // namespace
}  // namespace spinney
