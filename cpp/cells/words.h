// Sorted rows as scans read them: words of a code and a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/sort.h"

namespace spinney {

struct LongWord {  // 32 + 32 bits: any node
  using Type = Entry;
  static constexpr std::uint32_t missing = missing_code;
  static std::uint32_t code(Type w) { return code_of(w); }
  static std::uint32_t row(Type w) { return row_of(w); }
  static bool differ(Type w, Type next) { return code(w) != code(next); }
};

struct MarkedWord {  // any node, without codes: the top bit marks a value that differs from that of the previous word
  using Type = std::uint32_t;
  static constexpr std::uint32_t mark = 0x80000000u;
  static std::uint32_t row(Type w) { return w & ~mark; }
  static bool differ(Type, Type next) { return next >> 31; }
};

struct ShortWord {  // 16 + 16 bits: a block of at most 65,535 rows, identified by their position in the block
  using Type = std::uint32_t;
  static constexpr std::uint32_t missing = 0xffff;
  static std::uint32_t code(Type w) { return w >> 16; }
  static std::uint32_t row(Type w) { return w & 0xffff; }
  static bool differ(Type w, Type next) { return code(w) != code(next); }
};

// The number of words before the missing ones, which are at the end.
template <class Word>
std::size_t count_present(const typename Word::Type* words, std::size_t n) {
  if (n == 0 || Word::code(words[n - 1]) != Word::missing) return n;
  std::size_t low = 0, high = n;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (Word::code(words[middle]) == Word::missing)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace spinney
