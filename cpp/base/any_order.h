// Sums of doubles whose bits do not depend on the order of the terms.
//
// A term becomes two whole numbers, one for what lies above a unit and one for the rest; the units follow from the largest
// size that a term can have and from how many there are. Whole numbers add up to the same in any order. Together they
// hold 58 bits and more below the largest term, for 2^32 terms; mostly 80.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace spinney {

class AnyOrderSum {
 public:
  // `largest` bounds the sizes of the terms, `count` how many there are (a term that is added k times counts as k).
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
  // Nodes of a few rows are many: frexp and ldexp would take longer than all the rest.
  static int exponent_above(double x) {  // x < 2^exponent, x >= 0
    return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1022;
  }
  static double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }

  double coarse_ = 1, fine_ = 1, from_coarse_ = 1, from_fine_ = 1;  // units by term, and back
  std::int64_t above_ = 0, rest_ = 0;
};

}  // namespace spinney
