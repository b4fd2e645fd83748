// Parting words in place: those that go left first, each side in its order.
//
// Internal linkage on purpose: these are compiled once per instruction set and must never be merged by the linker.
#pragma once

#include <cstddef>

namespace spinney {
namespace {

// Parts words[i …], of which n_left before lie at the start and n_right in `spare`, and joins both sides. Both are written and
// one is kept: no branch to guess.
template <class Word, class GoesLeft>
[[gnu::always_inline]] inline std::size_t part_rest(Word* words, std::size_t n, Word* spare, std::size_t i,
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
