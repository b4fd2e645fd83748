// Numbers of an Arrow column: arithmetic types unchanged, half floats and decimals as wider floats.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/platform.h"
#include "data/arrow_chunks.h"

namespace spinney {

// A timestamp: seconds, or the fraction of a second that the format specifies, with an optional time zone.
inline bool is_timestamp(std::string_view format) {
  return format.size() >= 4 && format.starts_with("ts") && format[3] == ':' &&
         std::string_view("smun").find(format[2]) != std::string_view::npos;
}

inline bool is_date(std::string_view format) { return format == "tdD" || format == "tdm" || is_timestamp(format); }

inline std::optional<DType> arithmetic_type(std::string_view format) {
  if (is_date(format)) return format == "tdD" ? DType::i32 : DType::i64;
  if (format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case 'c':
      return DType::i8;
    case 'C':
      return DType::u8;
    case 's':
      return DType::i16;
    case 'S':
      return DType::u16;
    case 'i':
      return DType::i32;
    case 'I':
      return DType::u32;
    case 'l':
      return DType::i64;
    case 'L':
      return DType::u64;
    case 'f':
      return DType::f32;
    case 'g':
      return DType::f64;
    default:
      return std::nullopt;
  }
}

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = (half >> 10) & 31, fraction = half & 1023;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.f : 1.f);
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

// `d:precision,scale` or `d:precision,scale,bits`: an integer of `bits` bits that means integer × 10^-scale.
struct Decimal {
  int scale = 0;
  int bits = 128;

  static std::optional<Decimal> parse(std::string_view format) {
    if (!format.starts_with("d:")) return std::nullopt;
    std::array<int, 3> parts = {0, 0, 128};
    const char *at = format.data() + 2, *end = format.data() + format.size();
    std::size_t n = 0;
    for (; n < 3 && at < end; ++n) {
      const auto [next, error] = std::from_chars(at, end, parts[n]);
      if (error != std::errc()) return std::nullopt;
      at = next < end ? next + 1 : next;
    }
    const Decimal type{parts[1], parts[2]};
    if (n < 2 || std::abs(type.scale) > 250) return std::nullopt;
    return type.bits == 32 || type.bits == 64 || type.bits == 128 ? std::optional(type) : std::nullopt;
  }

  double value(const void* buffer, std::int64_t i) const {
    if (bits == 32) return scaled(element<std::int32_t>(buffer, i));
    if (bits == 64) return scaled(element<std::int64_t>(buffer, i));
    return scaled(element<Wide>(buffer, i));
  }

 private:
  __extension__ using Wide = __int128;
  __extension__ using UnsignedWide = unsigned __int128;

  // The nearest double, as Python's float(Decimal) returns it.
  double scaled(Wide integer) const {
    constexpr Wide exact = Wide{1} << 53;
    if (scale >= 0 && scale <= 22 && integer <= exact && integer >= -exact) {
      double power = 1;  // 10^22 is the largest power of ten that is exact in a double
      for (int s = 0; s < scale; ++s) power *= 10;
      return static_cast<double>(integer) / power;
    }
    std::array<char, 64> text;
    char* begin = text.data() + 44;
    auto magnitude = integer < 0 ? -static_cast<UnsignedWide>(integer) : static_cast<UnsignedWide>(integer);
    do *--begin = static_cast<char>('0' + static_cast<int>(magnitude % 10));
    while (magnitude /= 10);
    if (integer < 0) *--begin = '-';
    text[44] = 'e';
    const auto end = std::to_chars(text.data() + 45, text.data() + text.size(), -scale).ptr;
    return platform::number_of(begin, end);
  }
};

}  // namespace spinney
