// Sums of doubles whose bits do not depend on the order of the terms.
//
// A term is split into two integers, one for the part above a unit and one for the rest; the units follow from the
// largest possible size of a term and the number of terms. Integer sums do not depend on the order. Together the two
// integers hold at least 58 bits below the largest term for 2^32 terms, and usually 80.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace spinney {

class AnyOrderSum {
 public:
  // `largest` bounds the size of the terms, `count` their number (a term that is added k times counts as k).
  AnyOrderSum(double largest, double count) {
    const int many = exponent_above(count), coarse = std::clamp(61 - exponent_above(largest) - many, -1000, 1000);
    coarse_ = power_of_two(coarse);
    fine_ = power_of_two(61 - many);
    from_coarse_ = power_of_two(-coarse);
    from_fine_ = power_of_two(many - 61);
  }

  [[gnu::always_inline]] void add(double term) {
    const double scaled = term * coarse_;
    const auto whole = static_cast<std::int64_t>(scaled);
    above_ += whole;
    rest_ += static_cast<std::int64_t>((scaled - static_cast<double>(whole)) * fine_);
  }
  [[gnu::always_inline]] void add(double term, std::int64_t times) {
    const double scaled = term * coarse_;
    const auto whole = static_cast<std::int64_t>(scaled);
    above_ += times * whole;
    rest_ += times * static_cast<std::int64_t>((scaled - static_cast<double>(whole)) * fine_);
  }

  double value() const {
    return (static_cast<double>(above_) + static_cast<double>(rest_) * from_fine_) * from_coarse_;
  }

 private:
  // Most nodes have few rows: frexp and ldexp would take longer than everything else.
  static int exponent_above(double x) {  // x < 2^exponent, x >= 0
    return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1022;
  }
  static double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }

  double coarse_ = 1, fine_ = 1, from_coarse_ = 1, from_fine_ = 1;  // units by term, and their inverses
  std::int64_t above_ = 0, rest_ = 0;
};

}  // namespace spinney
