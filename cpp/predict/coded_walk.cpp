#include "predict/coded_walk.h"

#include <algorithm>
#include <array>

#include "base/cpu.h"

namespace spinney {

// Several rows at a time: while one waits for memory, the others go on.
static void walk(const CodedTree& tree, const std::uint32_t* members, std::size_t n, std::uint32_t* leaf) {
  constexpr std::size_t lanes = 16;
  for (std::size_t begin = 0; begin < n; begin += lanes) {
    const std::size_t last = std::min(lanes, n - begin) - 1;
    std::array<std::uint32_t, lanes> at{};
    std::array<const std::uint32_t*, lanes> row;
    for (std::size_t k = 0; k < lanes; ++k)
      row[k] = tree.codes + std::size_t{members[begin + std::min(k, last)]} * tree.width;
    std::uint32_t moved = 1;
    while (moved != 0) {
      moved = 0;
      for (std::size_t k = 0; k < lanes; ++k) {
        const std::uint32_t next = next_of(tree.nodes[at[k]], at[k], row[k], tree.shift, tree.mask);
        moved |= next ^ at[k];
        at[k] = next;
      }
    }
    std::copy_n(at.begin(), last + 1, leaf + begin);
  }
}

static void count_below(const double* thresholds, std::size_t n, const double* x, std::size_t n_x,
                        std::uint32_t* count) {
  constexpr std::size_t lanes = 8;
  for (std::size_t i = 0; i < n_x; i += lanes) {
    std::array<std::uint32_t, lanes> below{};
    std::size_t left = n;
    for (; left > 1; left -= left / 2) {
      const auto half = static_cast<std::uint32_t>(left / 2);
      for (std::size_t k = 0; k < lanes; ++k)  // by masks, as above
        below[k] += half & (0u - std::uint32_t{thresholds[below[k] + half - 1] < x[i + k]});
    }
    for (std::size_t k = 0; k < lanes; ++k) count[i + k] = below[k] + (left == 1 && thresholds[below[k]] < x[i + k]);
  }
}

const CodedKernels base::coded_kernels{walk, count_below};

const CodedKernels& coded_kernels() {
#if defined(__x86_64__)
  if (isa() == Isa::avx512) return avx512::coded_kernels;
#endif
  return base::coded_kernels;
}

}  // namespace spinney
