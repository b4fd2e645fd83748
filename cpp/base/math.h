// Logarithms and exponentials built from IEEE operations alone, so that they are bit-identical on every machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace spinney {

// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.

// Splits a positive normal number x into 2^e m, m in [sqrt(1/2), sqrt(2)).
struct Scaled {
  double e, m;
};
[[gnu::always_inline]] static inline Scaled scaled(double x) {
  constexpr std::int64_t sqrt_half = 0x3FE6A09E667F3BCD;
  const std::int64_t bits = std::bit_cast<std::int64_t>(x);
  const std::int64_t exponent = (bits - sqrt_half) >> 52;
  const double m = std::bit_cast<double>(bits - exponent * (std::int64_t{1} << 52));
  // 2^52 + 2^51 as a double: adding an integer to its low bits converts it without a 64-bit conversion instruction
  return {std::bit_cast<double>(exponent + 0x4338000000000000) - 0x1.8p52, m};
}

// atanh(s) = s + s z p(z) for z = s^2, |s| < 0.1716.
[[gnu::always_inline]] static inline double atanh_series(double z) {
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
  return p * z + 1.0 / 3.0;
}

inline constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b39p-40;

// Natural logarithm of a positive normal number; finite for 0, so that 0 * log_ieee(0) is 0.
// log m = 2 atanh(s), s = (m - 1) / (m + 1), by its series.
[[gnu::always_inline]] static inline double log_ieee(double x) {
  const auto [e, m] = scaled(x);
  const double s = (m - 1.0) / (m + 1.0), z = s * s, p = atanh_series(z);
  return e * ln2_high + (2.0 * s + (2.0 * s * z * p + e * ln2_low));
}

// The same to 0.55 units in the last place, nearly as accurate as C libraries: s and the sum carry their rounding
// errors.
[[gnu::always_inline]] static inline double log_nearest(double x) {
  const auto [e, m] = scaled(x);
  const double below = m - 1.0, above = m + 1.0, above_rest = m - (above - 1.0);
  const double s = below / above, s_rest = (std::fma(-s, above, below) - s * above_rest) / above;
  const double z = s * s, p = atanh_series(z), high = e * ln2_high;
  const double sum = high + 2.0 * s, back = sum - high, sum_rest = (high - (sum - back)) + (2.0 * s - back);
  return sum + (sum_rest + (2.0 * s_rest + 2.0 * s * z * p + e * ln2_low));
}

[[gnu::always_inline]] static inline double x_log_x(double x) { return x * log_ieee(x); }

// e^x for |x| <= 700; larger arguments are clipped.
// x = k ln 2 + r, |r| <= ln 2 / 2; e^r by its series; 2^k by the exponent's bits.
[[gnu::always_inline]] static inline double exp_ieee(double x) {
  constexpr double shift = 0x1.8p52;
  x = x < -700.0 ? -700.0 : x;
  x = x > 700.0 ? 700.0 : x;
  const double shifted = x * 1.4426950408889634 + shift;  // the low bits are the nearest integer
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
  const std::int64_t scale = std::bit_cast<std::int64_t>(shifted) << 52;  // k mod 2^12, shifted to the exponent
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) + scale);
}

inline constexpr double bits_per_nat = 1.4426950408889634;  // 1 / ln 2

}  // namespace spinney
