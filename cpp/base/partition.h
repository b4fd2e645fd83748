// Stable partition in place: the words that go left come first.
//
// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.
#pragma once

#include <cstddef>

namespace spinney {
namespace {

// Partitions words[i …]; the n_left words before them are at the start and n_right are in `spare`. Then joins both
// sides. Each word is written to both sides and only one counter advances, which avoids a branch.
template <class Word, class GoesLeft>
[[gnu::always_inline]] inline std::size_t partition_rest(Word* words, std::size_t n, Word* spare, std::size_t i,
                                                         std::size_t n_left, std::size_t n_right, GoesLeft goes_left) {
  for (; i < n; ++i) {
    const Word word = words[i];
    const bool left = goes_left(i, word);
    words[n_left] = word;
    spare[n_right] = word;
    n_left += left;
    n_right += !left;
  }
  __builtin_memcpy(words + n_left, spare, n_right * sizeof(Word));
  return n_left;
}

}  // namespace
}  // namespace spinney
