// Groups of a fixed number of lanes, held in as many registers as the instruction set needs.
//
// The result of a floating-point sum depends on the order of the additions, so kernels use a fixed number of lanes for
// every instruction set: eight doubles are one AVX-512 register, two AVX2 registers or four NEON or SSE2 registers. A
// plain `vector_size(64)` is not used because GCC splits selections into scalars where registers are narrower, which is
// 4 to 15 times slower.
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

// Recursive halves down to one register, because GCC would store an array of registers in memory.
template <class T, std::size_t n, bool is_register = n * sizeof(T) <= register_bytes>
struct Lanes {
  static constexpr bool fits = false;
  using Half = Lanes<T, n / 2>;
  Half low, high;
};
template <class T, std::size_t n>
struct Lanes<T, n, true> {
  static constexpr bool fits = true;
  typedef T Part __attribute__((vector_size(n * sizeof(T)), may_alias));
  Part part;
};

// The result of a comparison: all bits of a lane are set, or none.
template <class T>
using Flag = std::conditional_t<
    sizeof(T) == 8, std::int64_t,
    std::conditional_t<sizeof(T) == 4, std::int32_t, std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>>>;
template <class T, std::size_t n>
using Flags = Lanes<Flag<T>, n>;

// Applies f to each register. The groups may have other lane types than the result if these have the same width.
template <class Result, class F, class... Groups>
SPINNEY_INLINE Result each(F f, const Groups&... groups) {
  if constexpr (Result::fits)
    return Result{(typename Result::Part)f(groups.part...)};
  else
    return Result{each<typename Result::Half>(f, groups.low...), each<typename Result::Half>(f, groups.high...)};
}

template <std::size_t n, class T>
SPINNEY_INLINE Lanes<T, n> every(T x) {
  if constexpr (Lanes<T, n>::fits)
    return {x - typename Lanes<T, n>::Part{}};  // keeps the sign of 0
  else
    return {every<n / 2>(x), every<n / 2>(x)};
}
template <std::size_t n, class T>
SPINNEY_INLINE Lanes<T, n> load(const T* from) {
  if constexpr (Lanes<T, n>::fits) {
    Lanes<T, n> r;
    __builtin_memcpy(&r.part, from, sizeof r.part);
    return r;
  } else {
    return {load<n / 2>(from), load<n / 2>(from + n / 2)};
  }
}
template <class T, std::size_t n>
SPINNEY_INLINE void store(T* to, const Lanes<T, n>& v) {
  if constexpr (Lanes<T, n>::fits) {
    __builtin_memcpy(to, &v.part, sizeof v.part);
  } else {
    store(to, v.low);
    store(to + n / 2, v.high);
  }
}

// first, first + 1, …
template <std::size_t n, class T>
SPINNEY_INLINE Lanes<T, n> count_from(T first) {
  if constexpr (n == 1)
    return {typename Lanes<T, 1>::Part{first}};
  else if constexpr (Lanes<T, n>::fits)
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
      return Lanes<T, n>{first + typename Lanes<T, n>::Part{static_cast<T>(i)...}};
    }(std::make_index_sequence<n>{});
  else
    return {count_from<n / 2>(first), count_from<n / 2>(static_cast<T>(first + static_cast<T>(n / 2)))};
}

#define SPINNEY_LANES_OPERATOR(op)                                                                        \
  template <class T, std::size_t n>                                                                       \
  SPINNEY_INLINE Lanes<T, n> operator op(const Lanes<T, n>& a, const Lanes<T, n>& b) {                    \
    return each<Lanes<T, n>>([](auto x, auto y) __attribute__((always_inline)) { return x op y; }, a, b); \
  }                                                                                                       \
  template <class T, std::size_t n>                                                                       \
  SPINNEY_INLINE Lanes<T, n>& operator op## = (Lanes<T, n> & a, const Lanes<T, n>& b) {                   \
    return a = a op b;                                                                                    \
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
  return each<Lanes<T, n>>([](auto x) __attribute__((always_inline)) { return ~x; }, a);
}

#define SPINNEY_LANES_COMPARISON(op)                                                                      \
  template <class T, std::size_t n>                                                                       \
  SPINNEY_INLINE Flags<T, n> operator op(const Lanes<T, n>& a, const Lanes<T, n>& b) {                    \
    return each<Flags<T, n>>([](auto x, auto y) __attribute__((always_inline)) { return x op y; }, a, b); \
  }
SPINNEY_LANES_COMPARISON(<)
SPINNEY_LANES_COMPARISON(>)
SPINNEY_LANES_COMPARISON(<=)
SPINNEY_LANES_COMPARISON(==)
#undef SPINNEY_LANES_COMPARISON

template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> select(const Flags<T, n>& flags, const Lanes<T, n>& yes, const Lanes<T, n>& no) {
  return each<Lanes<T, n>>(
      [](auto f, auto y, auto x) __attribute__((always_inline)) {
#if defined(__AVX512F__)
        return f ? y : x;
#else  // avoids comparing the flags with 0
        using Bits = decltype(f);
        return (decltype(y))((f & (Bits)y) | (~f & (Bits)x));
#endif
      },
      flags, yes, no);
}
template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> larger(const Lanes<T, n>& a, const Lanes<T, n>& b) {
  return each<Lanes<T, n>>([](auto x, auto y) __attribute__((always_inline)) { return y > x ? y : x; }, a, b);
}
template <class T, std::size_t n>
SPINNEY_INLINE Lanes<T, n> smaller(const Lanes<T, n>& a, const Lanes<T, n>& b) {
  return each<Lanes<T, n>>([](auto x, auto y) __attribute__((always_inline)) { return y < x ? y : x; }, a, b);
}

// Converts each lane as static_cast does.
template <class To, class T, std::size_t n>
SPINNEY_INLINE Lanes<To, n> convert(const Lanes<T, n>& a) {
  if constexpr (Lanes<T, n>::fits && Lanes<To, n>::fits) {
    return {__builtin_convertvector(a.part, typename Lanes<To, n>::Part)};
  } else if constexpr (Lanes<T, n>::fits) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
      using Half = Lanes<T, n / 2>;
      return Lanes<To, n>{convert<To>(Half{__builtin_shufflevector(a.part, a.part, i...)}),
                          convert<To>(Half{__builtin_shufflevector(a.part, a.part, (i + n / 2)...)})};
    }(std::make_index_sequence<n / 2>{});
  } else if constexpr (Lanes<To, n>::fits) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
      return Lanes<To, n>{__builtin_shufflevector(convert<To>(a.low).part, convert<To>(a.high).part, i...)};
    }(std::make_index_sequence<n>{});
  } else {
    return {convert<To>(a.low), convert<To>(a.high)};
  }
}

// The same for 64-bit integers, for which x86 has no instruction before AVX-512: the upper 16 bits and the lower 48
// become the last bits of two doubles; subtracting the added constants leaves a sum that is rounded once.
template <std::size_t n>
SPINNEY_INLINE Lanes<double, n> to_doubles(const Lanes<std::int64_t, n>& a) {
#if defined(__x86_64__) && !defined(__AVX512DQ__)
  return each<Lanes<double, n>>(
      [](auto x) __attribute__((always_inline)) {
        typedef std::uint64_t Bits __attribute__((vector_size(sizeof x)));
        typedef double Numbers __attribute__((vector_size(sizeof x)));
        const Bits shifted = (Bits)x ^ (std::uint64_t{1} << 63);             // add 2^63, so that no value is negative
        const Bits high = ((shifted >> 48) << 32) + 0x4438000000000000u;     // 1.5 * 2^68, whose last bit is 2^16
        const Bits low = (shifted & 0xffffffffffffu) | 0x4330000000000000u;  // 2^52, whose last bit is 1
        return ((Numbers)high - (0x1.8p68 + 0x1p63 + 0x1p52)) + (Numbers)low;
      },
      a);
#else
  return convert<double>(a);
#endif
}

// The same for integers from 0 to 2^52 - 1: two fast instructions on every processor.
template <std::size_t n>
SPINNEY_INLINE Lanes<double, n> small_to_doubles(const Lanes<std::int64_t, n>& a) {
  return each<Lanes<double, n>>(
      [](auto x) __attribute__((always_inline)) {
        typedef double Numbers __attribute__((vector_size(sizeof x)));
        return (Numbers)(x | 0x4330000000000000) - 0x1p52;
      },
      a);
}

template <class Vector, class Op, std::size_t... i>
SPINNEY_INLINE auto fold_register(Vector v, Op op, std::index_sequence<i...>) {
  if constexpr (sizeof...(i) == 1)
    return op(v[0], v[1]);
  else
    return fold_register(op(__builtin_shufflevector(v, v, i...), __builtin_shufflevector(v, v, (i + sizeof...(i))...)),
                         op, std::make_index_sequence<sizeof...(i) / 2>{});
}

// Folds the lanes: lane i is added to lane i + n / 2, then the halves of the result, and so on. The order is the same
// for every register width.
template <class T, std::size_t n, class Op>
SPINNEY_INLINE T fold(const Lanes<T, n>& v, Op op) {
  if constexpr (Lanes<T, n>::fits)
    return fold_register(v.part, op, std::make_index_sequence<n / 2>{});
  else
    return fold(each<Lanes<T, n / 2>>(op, v.low, v.high), op);
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

// Returns whether any flag is set.
template <class T, std::size_t n>
SPINNEY_INLINE bool any_of(const Lanes<T, n>& flags) {
  if constexpr (!Lanes<T, n>::fits) {
    return any_of(flags.low | flags.high);
#if defined(__aarch64__)
  } else if constexpr (sizeof flags.part == 16) {
    return vmaxvq_u32((uint32x4_t)flags.part) != 0;
#elif defined(__AVX2__)
  } else if constexpr (sizeof flags.part == 16) {
    return _mm_testz_si128((__m128i)flags.part, (__m128i)flags.part) == 0;
  } else if constexpr (sizeof flags.part == 32) {
    return _mm256_testz_si256((__m256i)flags.part, (__m256i)flags.part) == 0;
#if defined(__AVX512F__)
  } else if constexpr (sizeof flags.part == 64) {
    return _mm512_test_epi64_mask((__m512i)flags.part, (__m512i)flags.part) != 0;
#endif
#endif
  } else {
    std::uint64_t words[sizeof flags / 8], all = 0;
    __builtin_memcpy(words, &flags.part, sizeof flags.part);
    for (const std::uint64_t word : words) all |= word;
    return all != 0;
  }
}

#if defined(__AVX2__)
// A bit mask of the 4- or 8-byte flags of a register.
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

// The number of 4- or 8-byte flags that are set.
template <class T, std::size_t n>
SPINNEY_INLINE std::uint32_t count_of(const Lanes<T, n>& flags) {
#if defined(__AVX2__)
  if constexpr (Lanes<T, n>::fits)
    return static_cast<std::uint32_t>(__builtin_popcount(bits_of(flags.part)));
  else
    return count_of(flags.low) + count_of(flags.high);
#else
  if constexpr (!Lanes<T, n>::fits)
    return count_of(flags.low + flags.high);  // each lane counts its flags as a negative number
#if defined(__aarch64__)
  else if constexpr (sizeof flags.part == 16 && sizeof(T) == 4)
    return static_cast<std::uint32_t>(-vaddvq_s32((int32x4_t)flags.part));
  else if constexpr (sizeof flags.part == 16 && sizeof(T) == 8)
    return static_cast<std::uint32_t>(-vaddvq_s64((int64x2_t)flags.part));
#endif
  else
    return static_cast<std::uint32_t>(-sum_of(flags));
#endif
}

// The low and the high halves of the words.
template <std::size_t n>
struct Halves {
  Lanes<std::int32_t, n> low, high;
};
template <std::size_t n>
SPINNEY_INLINE Halves<n> halves_of(const Lanes<std::uint64_t, n>& v) {
  if constexpr (Lanes<std::int32_t, n>::fits) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
      typedef typename Lanes<std::int32_t, n>::Part Part;
      const Part a = (Part)v.low.part, b = (Part)v.high.part;
      return Halves<n>{{__builtin_shufflevector(a, b, (2 * i)...)}, {__builtin_shufflevector(a, b, (2 * i + 1)...)}};
    }(std::make_index_sequence<n>{});
  } else {
    const auto first = halves_of(v.low), second = halves_of(v.high);
    return {{first.low, second.low}, {first.high, second.high}};
  }
}

// ---- rough arithmetic: the last bits differ between instruction sets, so no result may depend on them --------------

// a * b + c, rounded once or twice.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> rough_multiply_add(const Lanes<float, n>& a, const Lanes<float, n>& b,
                                                  const Lanes<float, n>& c) {
#if defined(__aarch64__)
  return each<Lanes<float, n>>(
      [](auto x, auto y, auto z)
          __attribute__((always_inline)) { return vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y); },
      a, b, c);
#else
  return a * b + c;
#endif
}

// c - a * b, rounded once or twice.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> rough_multiply_subtract(const Lanes<float, n>& a, const Lanes<float, n>& b,
                                                       const Lanes<float, n>& c) {
#if defined(__aarch64__)
  return each<Lanes<float, n>>(
      [](auto x, auto y, auto z)
          __attribute__((always_inline)) { return vfmsq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y); },
      a, b, c);
#else
  return c - a * b;
#endif
}

// a / b with a relative error of at most 2^-14; b and 1 / b are normal numbers.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> rough_ratio(const Lanes<float, n>& a, const Lanes<float, n>& b) {
#if defined(__aarch64__)
  return each<Lanes<float, n>>(
      [](auto x, auto y) __attribute__((always_inline)) {  // an 8-bit estimate and one Newton step
        const float32x4_t divisor = (float32x4_t)y, estimate = vrecpeq_f32(divisor);
        return vmulq_f32(vmulq_f32((float32x4_t)x, estimate), vrecpsq_f32(divisor, estimate));
      },
      a, b);
#else
  return a / b;
#endif
}

// The larger of two numbers, neither of them NaN. For two zeros the sign of the result is unspecified.
template <std::size_t n>
SPINNEY_INLINE Lanes<float, n> larger_number(const Lanes<float, n>& a, const Lanes<float, n>& b) {
#if defined(__aarch64__)
  return each<Lanes<float, n>>(
      [](auto x, auto y) __attribute__((always_inline)) { return vmaxnmq_f32((float32x4_t)x, (float32x4_t)y); }, a, b);
#else
  return larger(a, b);
#endif
}

}  // namespace
}  // namespace spinney
