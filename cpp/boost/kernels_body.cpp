// Kernels, compiled once per instruction set; see base/cpu.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <limits>

#include "base/compress.h"
#include "base/lanes.h"
#include "base/vectorise.h"
#include "boost/kernels.h"
#include "loss/losses.h"

namespace spinney {
namespace {

void subtract(Packed* large, const Packed* small, std::size_t n) {
  SPINNEY_IVDEP
  for (std::size_t i = 0; i < n; ++i) large[i] -= small[i];
}

typedef Packed Eight __attribute__((vector_size(64), aligned(8), may_alias));

template <class Code>
void add_eights(const Code* tile, std::size_t stride, std::size_t n_lanes, std::size_t cells_per_lane, const Row* rows,
                std::size_t n, const Packed* pairs, Packed* cells) {
  for (std::size_t i = 0; i < n; ++i) {
    const Code* row = tile + rows[i] * stride;
    const Eight pair = *reinterpret_cast<const Eight*>(pairs + 8 * i);
    Packed* first = cells;
    for (std::size_t lane = 0; lane < n_lanes; ++lane, first += 8 * cells_per_lane)
      *reinterpret_cast<Eight*>(first + std::size_t{8} * row[lane]) += pair;
  }
}

#include "boost/kernels_cuts.h"
#include "boost/kernels_partition.h"

void rank(const double* keys, std::size_t n, std::uint32_t* places) {
  for (std::size_t i = 0; i < n; ++i) {
    const double key = keys[i];
    std::uint64_t place = 0;
    for (std::size_t j = 0; j < i; ++j) place += keys[j] <= key;
    for (std::size_t j = i + 1; j < n; ++j) place += keys[j] < key;
    places[i] = static_cast<std::uint32_t>(place);
  }
}

void quantise(const Pair* pairs, std::size_t first, std::size_t n, float gradient_scale, float hessian_scale,
              std::uint32_t key, Packed* out) {
  SPINNEY_IVDEP
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t z = static_cast<std::uint32_t>(first + i) * 0x9e3779b1u + key;
    z = (z ^ (z >> 16)) * 0x7feb352du;
    z = (z ^ (z >> 15)) * 0x846ca68bu;
    z ^= z >> 16;
    const float draw_gradient = static_cast<float>(static_cast<std::int32_t>(z & 0xffff)) * 0x1p-16f;
    const float draw_hessian = static_cast<float>(static_cast<std::int32_t>(z >> 16)) * 0x1p-16f;
    // rounds up with the probability of the remainder, which is exact: integers are unchanged
    const float g = pairs[i].gradient * gradient_scale, h = pairs[i].hessian * hessian_scale;
    std::int32_t whole = static_cast<std::int32_t>(g), whole_hessian = static_cast<std::int32_t>(h);
    whole -= static_cast<float>(whole) > g;
    whole += draw_gradient < g - static_cast<float>(whole);
    whole_hessian += draw_hessian < h - static_cast<float>(whole_hessian);
    out[i] = (static_cast<Packed>(static_cast<std::uint32_t>(whole)) << 32) + static_cast<Packed>(whole_hessian);
  }
}

WholeSums sum_pairs(const Pair* pairs, const Row* rows, std::size_t n, double gradient_scale, double hessian_scale) {
  constexpr std::size_t block = 128, ahead = 16;
  Pair near[block];
  WholeSums sums;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t m = n - begin < block ? n - begin : block;
    for (std::size_t i = 0; i < m; ++i) {
      __builtin_prefetch(pairs + rows[begin + i + ahead < n ? begin + i + ahead : n - 1]);
      near[i] = pairs[rows[begin + i]];
    }
    std::int64_t g = 0, h = 0;
    for (std::size_t i = 0; i < m; ++i) {
      g += static_cast<std::int64_t>(static_cast<double>(near[i].gradient) * gradient_scale);
      h += static_cast<std::int64_t>(static_cast<double>(near[i].hessian) * hessian_scale);
    }
    sums.gradient += g;
    sums.hessian += h;
  }
  return sums;
}

#include "boost/kernels_losses.h"

template <class Loss>
constexpr LossKernels kernels_of_loss() {  // of losses with one score
  if constexpr (requires { Loss::at(0.0, 0.0, 0.0).hessian; })
    return {.gradients = fill_gradients<Loss>, .values = fill_values<Loss>};
  else
    return {};
}

#define SPINNEY_LOSS_KERNELS(id, Type, ...) kernels_of_loss<Type>(),

}  // namespace

const BoostKernels& boost_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr BoostKernels table{
      .subtract = subtract,
      .add_eights = add_eights<std::uint8_t>,
      .add_wide_eights = add_eights<std::uint16_t>,
      .best_cut = best_cut,
      .may_separate_one = may_separate_one,
      .part = part,
      .partition_by_bits = partition_by_bits<std::uint8_t>,
      .partition_wide_by_bits = partition_by_bits<std::uint16_t>,
      .rank = rank,
      .quantise = quantise,
      .sum_pairs = sum_pairs,
      .losses = {{SPINNEY_LOSSES(SPINNEY_LOSS_KERNELS)}},
      .softmax = softmax,
      .class_gradients = class_gradients,
      .softmax_loss = softmax_loss,
  };
  return table;
}

}  // namespace spinney
