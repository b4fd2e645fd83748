// Sorts a few words in registers, included by kernels_body.cpp.
//
// Words form a matrix of n / 4 rows, one register each. A network sorts the four columns at once; then columns are
// merged, first 0 with 1 and 2 with 3, then both pairs, by bitonic networks with nearly all exchanges between
// registers. Registers have 16 bytes for every instruction set: for few words, wider ones would mix more lanes.
//
// Rejected without masks: counting the words below each word in n^2 steps, which is 20 times slower for 64 words on
// arm64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/lanes.h"

namespace spinney {
namespace {

typedef std::uint32_t FourWords __attribute__((vector_size(16)));

struct Exchange {
  std::uint8_t low, high;  // registers
};

// Calls visit(low, high) for each exchange of Batcher's odd-even merge sort of n numbers, n a power of two.
template <class Visit>
constexpr void visit_sort(std::size_t n, Visit visit) {
  for (std::size_t p = 1; p < n; p *= 2)
    for (std::size_t k = p; k > 0; k /= 2)
      for (std::size_t j = k % p; j + k < n; j += 2 * k)
        for (std::size_t i = j; i < j + k && i + k < n; ++i)
          if (i / (2 * p) == (i + k) / (2 * p)) visit(i, i + k);
}

// The same for a network that sorts a bitonic sequence (first ascending, then descending).
template <class Visit>
constexpr void visit_merge(std::size_t n, Visit visit) {
  for (std::size_t k = n / 2; k > 0; k /= 2)
    for (std::size_t i = 0; i < n; ++i)
      if ((i & k) == 0) visit(i, i + k);
}

template <bool is_merge, std::size_t n>
constexpr auto network() {
  constexpr auto visit_all = [](auto visit) {
    if constexpr (is_merge)
      visit_merge(n, visit);
    else
      visit_sort(n, visit);
  };
  constexpr std::size_t size = [&] {
    std::size_t count = 0;
    visit_all([&](std::size_t, std::size_t) { ++count; });
    return count;
  }();
  std::array<Exchange, size> all{};
  std::size_t at = 0;
  visit_all([&](std::size_t low, std::size_t high) {
    all[at++] = {static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high)};
  });
  return all;
}

SPINNEY_INLINE FourWords lower(FourWords a, FourWords b) { return a < b ? a : b; }
SPINNEY_INLINE FourWords upper(FourWords a, FourWords b) { return a < b ? b : a; }

// Unrolled: in a loop the registers would be stored in memory.
template <bool is_merge, std::size_t n_rows, std::size_t... i>
SPINNEY_INLINE void apply(FourWords* x, std::index_sequence<i...>) {
  constexpr auto all = network<is_merge, n_rows>();
  const auto exchange = [](FourWords& a, FourWords& b) __attribute__((always_inline)) {
    const FourWords low = lower(a, b);
    b = upper(a, b);
    a = low;
  };
  (exchange(x[all[i].low], x[all[i].high]), ...);
}
template <bool is_merge, std::size_t n_rows>
SPINNEY_INLINE void apply(FourWords* x) {
  apply<is_merge, n_rows>(x, std::make_index_sequence<network<is_merge, n_rows>().size()>{});
}

// Columns 0 and 1 are ascending, and so are 2 and 3. Leaves the lower half of both in 0 and the upper in 1; each is
// bitonic.
template <std::size_t n_rows, std::size_t... i>
SPINNEY_INLINE void halve_neighbours(FourWords* x, std::index_sequence<i...>) {
  const auto halve = [](FourWords& a, FourWords& b) __attribute__((always_inline)) {
    const FourWords t = __builtin_shufflevector(b, b, 1, 0, 3, 2);
    const FourWords low = lower(a, t), high = upper(a, t);
    a = __builtin_shufflevector(low, high, 0, 5, 2, 7);
    b = __builtin_shufflevector(low, high, 1, 4, 3, 6);
  };
  (halve(x[i], x[n_rows - 1 - i]), ...);
}

// Columns 0 and 1 together are ascending, and so are 2 and 3. Leaves the lower half in 0 and 1, the upper in 2 and 3.
template <std::size_t n_rows, std::size_t... i>
SPINNEY_INLINE void halve_pairs(FourWords* x, std::index_sequence<i...>) {
  const auto halve = [](FourWords& a, FourWords& b) __attribute__((always_inline)) {
    const FourWords t = __builtin_shufflevector(b, b, 3, 2, 1, 0);
    const FourWords low = lower(a, t), high = upper(a, t);
    // then column 0 with 1 and 2 with 3, row by row
    const auto next = [](FourWords v) __attribute__((always_inline)) {
      const FourWords s = __builtin_shufflevector(v, v, 1, 0, 3, 2);
      return __builtin_shufflevector(lower(v, s), upper(v, s), 0, 5, 2, 7);
    };
    a = next(__builtin_shufflevector(low, high, 0, 1, 6, 7));
    b = next(__builtin_shufflevector(low, high, 3, 2, 5, 4));
  };
  (halve(x[i], x[n_rows - 1 - i]), ...);
}

// Stores four rows; column c goes to to + c * stride.
SPINNEY_INLINE void store_columns(const FourWords* x, std::uint32_t* to, std::size_t stride) {
  const FourWords a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
                  b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5),
                  c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
                  d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  const FourWords columns[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                                __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
  for (std::size_t k = 0; k < 4; ++k) __builtin_memcpy(to + k * stride, &columns[k], sizeof columns[k]);
}

template <std::size_t n_rows, std::size_t... row>
SPINNEY_INLINE void sort_rows(std::uint32_t* words, std::size_t n, std::index_sequence<row...>) {
  FourWords x[n_rows];
  const FourWords place{0, 1, 2, 3}, end = FourWords{} + static_cast<std::uint32_t>(n);
  const auto read = [&](std::size_t r) __attribute__((always_inline)) {
    __builtin_memcpy(&x[r], words + 4 * r, sizeof x[r]);
    // padding sorts after the last word
    x[r] |= reinterpret_cast<FourWords>(place + static_cast<std::uint32_t>(4 * r) >= end);
  };
  (read(row), ...);
  using Half = std::make_index_sequence<n_rows / 2>;
  apply<false, n_rows>(x);
  halve_neighbours<n_rows>(x, Half{});
  apply<true, n_rows>(x);
  halve_pairs<n_rows>(x, Half{});
  apply<true, n_rows>(x);
  for (std::size_t r = 0; r < n_rows; r += 4) store_columns(x + r, words + r, n_rows);
}

template <std::size_t n_rows>
void sort_rows(std::uint32_t* words, std::size_t n) {
  sort_rows<n_rows>(words, n, std::make_index_sequence<n_rows>{});
}

}  // namespace
}  // namespace spinney
