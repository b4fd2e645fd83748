// Statistics of one weight and one sum: a regression target, or two classes. `stat` is {W, S}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "criterion/entropy.h"
#include "criterion/misclassification.h"
#include "criterion/poisson.h"
#include "criterion/squared_error.h"
#include "criterion/target.h"

namespace spinney {

// Resizes to at least n elements without clearing, and never shrinks.
template <class T>
T* resized(std::vector<T>& v, std::size_t n) {
  if (v.size() < n) v.resize(n);
  return v.data();
}

// Storage of the rows' weights and values; `Local` holds a contiguous copy of a few rows, numbered from 0.
struct ByteRows {                                 // two classes, every weight 1
  static constexpr bool sums_are_weights = true;  // a value is the row's weight, or 0
  const std::uint8_t* v;
  std::int64_t value(std::uint32_t r) const { return v[r]; }
  static constexpr std::int64_t weight(std::uint32_t) { return 1; }
  struct Local {
    std::vector<std::uint8_t> v;
    ByteRows fill(const ByteRows& all, std::span<const Row> rows) {
      std::uint8_t* const near = resized(v, rows.size() + 15);  // kernels read four or sixteen bytes at once
      for (std::size_t i = 0; i < rows.size(); ++i) near[i] = all.v[rows[i]];
      return {near};
    }
  };
};

struct PackedRows {  // two classes, integer weights below 2^16: weight << 16 | value
  static constexpr bool sums_are_weights = true;
  const std::uint32_t* packed;
  std::int64_t value(std::uint32_t r) const { return packed[r] & 0xffff; }
  std::int64_t weight(std::uint32_t r) const { return packed[r] >> 16; }
  struct Local {
    std::vector<std::uint32_t> packed;
    PackedRows fill(const PackedRows& all, std::span<const Row> rows) {
      std::uint32_t* const near = resized(packed, rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) near[i] = all.packed[rows[i]];
      return {near};
    }
  };
};

struct FlaggedRows {  // two classes, any weights: weight << 1 | 1 if the class is the second, in one word per row
  static constexpr bool sums_are_weights = true;
  const std::int64_t* flagged;
  std::int64_t value(std::uint32_t r) const { return flagged[r] >> 1 & -(flagged[r] & 1); }
  std::int64_t weight(std::uint32_t r) const { return flagged[r] >> 1; }
  struct Local {
    std::vector<std::int64_t> flagged;
    FlaggedRows fill(const FlaggedRows& all, std::span<const Row> rows) {
      std::int64_t* const near = resized(flagged, rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) near[i] = all.flagged[rows[i]];
      return {near};
    }
  };
};

struct UnitRows {  // every weight 1
  static constexpr bool sums_are_weights = false;
  const std::int64_t* v;
  std::int64_t value(std::uint32_t r) const { return v[r]; }
  static constexpr std::int64_t weight(std::uint32_t) { return 1; }
  struct Local {
    std::vector<std::int64_t> v;
    UnitRows fill(const UnitRows& all, std::span<const Row> rows) {
      std::int64_t* const near = resized(v, rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) near[i] = all.v[rows[i]];
      return {near};
    }
  };
};

struct WeightedRows {
  static constexpr bool sums_are_weights = false;
  const std::int64_t* v;
  const std::int64_t* w;
  std::int64_t value(std::uint32_t r) const { return v[r]; }
  std::int64_t weight(std::uint32_t r) const { return w[r]; }
  struct Local {
    std::vector<std::int64_t> v, w;
    WeightedRows fill(const WeightedRows& all, std::span<const Row> rows) {
      const WeightedRows near{resized(v, rows.size()), resized(w, rows.size())};
      for (std::size_t i = 0; i < rows.size(); ++i) {
        v[i] = all.v[rows[i]];
        w[i] = all.w[rows[i]];
      }
      return near;
    }
  };
};

template <class Rows>
struct Scalar {
  using Local = typename Rows::Local;

  Rows rows;
  Rule rule;

  static constexpr std::size_t width() { return 2; }
  void add(std::uint32_t row, std::int64_t* stat) const {
    stat[0] += rows.weight(row);
    stat[1] += rows.value(row);
  }
  // The score of a cut; comparable between the cuts of one node only.
  double score(const std::int64_t* left, const std::int64_t* total) const {
    const auto number = [](std::int64_t x) { return static_cast<double>(x); };
    const double sl = number(left[1]), wl = number(left[0]);
    const double sr = number(total[1] - left[1]), wr = number(total[0] - left[0]);
    switch (rule) {
      case Rule::entropy:
      case Rule::gain_ratio:
        return Entropy::pair(sl, wl, sr, wr);
      case Rule::misclassification:
        return Misclassification::pair(sl, wl, sr, wr);
      case Rule::poisson:
        return Poisson::pair(sl, wl, sr, wr);
      case Rule::rate:
        return Rate::pair(sl, wl, sr, wr);
      default:
        return SquaredError::pair(sl, wl, sr, wr);
    }
  }
  Scalar on(const Rows& other) const { return {other, rule}; }
};

}  // namespace spinney
