// Logarithms and exponentials built from IEEE operations alone, so that they give the same bits on every machine.
#pragma once

#include <bit>
#include <cstdint>

namespace spinney {

// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.

// Natural logarithm of a positive normal number; finite for 0, so that 0 * log_ieee(0) is 0.
// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716, by its series.
[[gnu::always_inline]] static inline double log_ieee(double x) {
  constexpr std::int64_t sqrt_half = 0x3FE6A09E667F3BCD;
  constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b39p-40;
  const std::int64_t bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t exponent = (bits - sqrt_half) >> 52;
  const double m = std::bit_cast<double>(bits - exponent * (std::int64_t{1} << 52));
  // 2^52 + 2^51 as a double: adding an integer to its low bits converts it without a 64-bit conversion instruction
  const double e = std::bit_cast<double>(exponent + 0x4338000000000000) - 0x1.8p52;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 23.0;
  p = p * z + 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return e * ln2_high + (2.0 * s + (2.0 * s * z * p + e * ln2_low));
}

[[gnu::always_inline]] static inline double x_log_x(double x) { return x * log_ieee(x); }

// e^x for |x| <= 700; larger arguments are cut to that.
// x = k ln 2 + r, |r| <= ln 2 / 2; e^r by its series; 2^k by the exponent's bits.
[[gnu::always_inline]] static inline double exp_ieee(double x) {
  constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b39p-40, shift = 0x1.8p52;
  x = x < -700.0 ? -700.0 : x;
  x = x > 700.0 ? 700.0 : x;
  const double shifted = x * 1.4426950408889634 + shift;  // its low bits are the nearest integer
  const double k = shifted - shift, r = (x - k * ln2_high) - k * ln2_low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::int64_t scale = std::bit_cast<std::int64_t>(shifted) << 52;  // k mod 2^12, in the exponent's place
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) + scale);
}

inline constexpr double bits_per_nat = 1.4426950408889634;  // 1 / ln 2

}  // namespace spinney
