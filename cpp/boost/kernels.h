// Loops of boosting that are compiled once per instruction set. All versions are bit-identical.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/types.h"
#include "loss/table.h"

namespace spinney {

// A packed gradient pair: the sum of gradients in the high half, the sum of hessians, which is never negative, in the
// low half. Both stay below 2^31.
using Packed = std::uint64_t;
inline std::int64_t gradient_of(Packed p) { return static_cast<std::int32_t>(p >> 32); }
inline std::int64_t hessian_of(Packed p) { return static_cast<std::uint32_t>(p); }

// Rounds away the last bits, in which equally good cuts may differ, so that the first of them is taken. Internal
// linkage, so that no copy compiled for wide vectors replaces a plain one.
static inline double without_rounding(double score) {
  const std::uint64_t rounded_bits = (std::bit_cast<std::uint64_t>(score) + 0x800) & ~std::uint64_t{0xfff};
  return std::bit_cast<double>(rounded_bits);
}

struct Pair {
  float gradient, hessian;
};

struct CutQuery {                    // in units of the packed sums
  double gradient = 0, hessian = 0;  // of the node
  double lambda = 0, min_hessian = 0;
  std::size_t first_cut = 0, end_cut = SIZE_MAX;  // only cuts in this range are considered
  double floor = 0;                               // cuts with a lower score are useless
};

struct CutFound {
  double score = -1;  // of both sides; < 0: no cut is admissible
  std::uint32_t cut = 0;
  Packed left = 0;
};

struct LossParams {
  double a = 0;  // Huber's delta, the quantile, or Tweedie's power
};

struct GradientSums {
  double gradient = 0, hessian = 0;  // sums of absolute values

  GradientSums& operator+=(const GradientSums& other) {
    gradient += other.gradient;
    hessian += other.hessian;
    return *this;
  }
};

struct WholeSums {
  std::int64_t gradient = 0, hessian = 0;
};

struct LossKernels {
  // `losses`, unless null, receives the unweighted losses of the rows; for some losses only their sum is right.
  void (*gradients)(const double* target, const double* score, const double* weight, std::size_t n, LossParams params,
                    Pair* out, double* losses);
  void (*values)(const double* target, const double* score, std::size_t n, LossParams params, double* out);
};

struct BoostKernels {
  // large[i] -= small[i]
  void (*subtract)(Packed* large, const Packed* small, std::size_t n);

  // Adds rows to the interleaved histograms of eight trees, eight sums per cell. `pairs` holds eight for each of the n
  // rows; lane l of a row adds to cell cells_per_lane * l + its code. For one-byte and two-byte codes.
  void (*add_eights)(const std::uint8_t* tile, std::size_t stride, std::size_t n_lanes, std::size_t cells_per_lane,
                     const Row* rows, std::size_t n, const Packed* pairs, Packed* cells);
  void (*add_wide_eights)(const std::uint16_t* tile, std::size_t stride, std::size_t n_lanes,
                          std::size_t cells_per_lane, const Row* rows, std::size_t n, const Packed* pairs,
                          Packed* cells);

  // The first best cut after one of the first n_cuts cells; `before` is left of all cells. `prefix` and `scores` are
  // scratch of n_cuts + 16 elements. A cut below the floor may or may not be found.
  CutFound (*best_cut)(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& query, Packed* prefix,
                       float* scores);

  // Returns whether a cut that separates one of n cells from the rest of the node may reach the floor. May be true for
  // some that miss it by rounding.
  bool (*may_separate_one)(const Packed* cells, std::size_t n, const CutQuery& query);

  // Stable partition: rows with codes[row] <= cut or codes[row] == also_left go left; `spare` holds n + 16 rows.
  // Returns the number on the left.
  std::size_t (*part)(Row* rows, std::size_t n, const std::uint8_t* codes, std::uint32_t cut, std::uint32_t also_left,
                      Row* spare);

  // The same by one bit per code (1 goes left), for one-byte and two-byte codes. There are at least 512 bits.
  std::size_t (*partition_by_bits)(Row* rows, std::size_t n, const std::uint8_t* codes, const std::uint32_t* bits,
                                   std::size_t n_bits, Row* spare);
  std::size_t (*partition_wide_by_bits)(Row* rows, std::size_t n, const std::uint16_t* codes, const std::uint32_t* bits,
                                        std::size_t n_bits, Row* spare);

  // The positions of the keys in ascending order; stable. Quadratic time: for a few hundred keys at most.
  void (*rank)(const double* keys, std::size_t n, std::uint32_t* places);

  // Rounds pairs to integers, up or down at random by (key, row), so that the expectation is exact.
  void (*quantise)(const Pair* pairs, std::size_t first, std::size_t n, float gradient_scale, float hessian_scale,
                   std::uint32_t key, Packed* out);

  // Sums of gradients and hessians over rows as truncated integers in units of 1 / scale.
  WholeSums (*sum_pairs)(const Pair* pairs, const Row* rows, std::size_t n, double gradient_scale,
                         double hessian_scale);

  std::array<LossKernels, n_losses> losses;  // by Loss; null for multiclass losses

  // Multiclass losses: scores and probabilities by class and row; the target is the class. `log_sums`, unless null,
  // receives the log-sum-exp of each row: the loss is that minus the score of the class.
  void (*softmax)(const double* const* scores, std::size_t n_classes, std::size_t n, double* const* proba,
                  double* log_sums);
  void (*class_gradients)(const double* proba, const double* target, const double* weight, std::size_t n,
                          std::uint32_t k, double factor, Pair* out);
  void (*softmax_loss)(const double* const* scores, std::size_t n_classes, const double* target, std::size_t n,
                       double* out);
};

const BoostKernels& boost_kernels();

const BoostKernels& boost_kernels_of(OfIsa<Isa::base>);
const BoostKernels& boost_kernels_of(OfIsa<Isa::avx2>);
const BoostKernels& boost_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
