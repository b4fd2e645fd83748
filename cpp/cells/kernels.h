// The loops worth compiling once per instruction set. All versions give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

struct Kernels {
  // out[i] = Criterion::pair(s_left[i], w_left[i], s_right[i], w_right[i])
  using Score = void (*)(const double* s_left, const double* w_left, const double* s_right, const double* w_right,
                         std::size_t n, double* out);
  Score squared_error, entropy, misclassification, poisson, rate;

  // Index of the first largest score; n > 0, no NaN.
  std::size_t (*first_largest)(const double* scores, std::size_t n);

  // Stable partition of words by side[word & 0xffff] (1: left), in place; `spare` holds n + 16 words.
  // Returns the number that went left. `side` may be read 3 bytes past its end.
  std::size_t (*partition)(std::uint32_t* words, std::size_t n, const std::uint8_t* side, std::uint32_t* spare);
};

const Kernels& kernels();

namespace base {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}

}  // namespace spinney
