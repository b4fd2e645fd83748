// The loops of boosting worth compiling once per instruction set. All versions give the same bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/types.h"
#include "loss/table.h"

namespace spinney {

// A gradient pair: the gradient's sum in the high half, the hessian's, which is never negative, in the low half. Both
// keep below 2^31.
using Packed = std::uint64_t;
inline std::int64_t gradient_of(Packed p) { return static_cast<std::int32_t>(p >> 32); }
inline std::int64_t hessian_of(Packed p) { return static_cast<std::uint32_t>(p); }

// Without the last bits, in which equally good cuts may differ by rounding: of those the first is taken. Internal, so that
// no copy compiled for wide vectors takes the place of a plain one.
static inline double without_rounding(double score) {
  const std::uint64_t kept = (std::bit_cast<std::uint64_t>(score) + 0x800) & ~std::uint64_t{0xfff};
  return std::bit_cast<double>(kept);
}

struct Pair {
  float gradient, hessian;
};

struct CutQuery {                    // in units of the packed sums
  double gradient = 0, hessian = 0;  // of the node
  double lambda = 0, min_hessian = 0;
  std::size_t first_cut = 0, end_cut = SIZE_MAX;  // only cuts among these
  double floor = 0;                               // cuts of a lower score are of no use
};

struct CutFound {
  double score = -1;  // of both sides together; < 0: no cut is admissible
  std::uint32_t cut = 0;
  Packed left = 0;
};

struct LossParams {
  double a = 0;  // Huber's delta, the quantile, Tweedie's power
};

struct GradientSums {
  double gradient = 0, hessian = 0;  // of absolute values

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
  // `losses`, unless null, gets the rows' losses before their weights; where there are none, numbers of the same sum.
  void (*gradients)(const double* target, const double* score, const double* weight, std::size_t n, LossParams params,
                    Pair* out, double* losses);
  void (*values)(const double* target, const double* score, std::size_t n, LossParams params, double* out);
};

struct BoostKernels {
  // large[i] -= small[i]
  void (*subtract)(Packed* large, const Packed* small, std::size_t n);

  // Adds rows to histograms of eight trees that lie side by side, eight sums to a cell. `pairs` holds eight for each of the
  // n rows; lane l of a row adds to cell room * l + its code. For codes of one byte and of two.
  void (*add_eights)(const std::uint8_t* tile, std::size_t stride, std::size_t n_lanes, std::size_t room,
                     const Row* rows, std::size_t n, const Packed* pairs, Packed* cells);
  void (*add_wide_eights)(const std::uint16_t* tile, std::size_t stride, std::size_t n_lanes, std::size_t room,
                          const Row* rows, std::size_t n, const Packed* pairs, Packed* cells);

  // The first best cut after one of the first n_cuts cells; `before` lies left of all cells. `prefix` and `scores` are
  // scratch; both have 16 more than n_cuts. A cut may be found below the floor or not, as it happens.
  CutFound (*best_cut)(const Packed* cells, std::size_t n_cuts, Packed before, const CutQuery& query, Packed* prefix,
                       float* scores);

  // May a cut that parts one of n cells from the rest of the node score as much as the floor? True for some that miss it by
  // rounding.
  bool (*may_part_one)(const Packed* cells, std::size_t n, const CutQuery& query);

  // Stable partition: codes[row] <= cut, or == also_left, goes left; `spare` holds n + 16 rows. Returns how many did.
  std::size_t (*part)(Row* rows, std::size_t n, const std::uint8_t* codes, std::uint32_t cut, std::uint32_t also_left,
                      Row* spare);

  // The same by a bit a code, for codes of one byte and of two: 1 goes left. There are at least 512 bits.
  std::size_t (*part_by_bits)(Row* rows, std::size_t n, const std::uint8_t* codes, const std::uint32_t* bits,
                              std::size_t n_bits, Row* spare);
  std::size_t (*part_wide_by_bits)(Row* rows, std::size_t n, const std::uint16_t* codes, const std::uint32_t* bits,
                                   std::size_t n_bits, Row* spare);

  // Places in ascending order, equal keys in theirs. Takes n^2 steps: for a few hundred at most.
  void (*rank)(const double* keys, std::size_t n, std::uint32_t* places);

  // Rounds pairs to whole numbers, up or down at random by (key, row), so that the mean is right.
  void (*quantise)(const Pair* pairs, std::size_t first, std::size_t n, float gradient_scale, float hessian_scale,
                   std::uint32_t key, Packed* out);

  // Sums over rows of gradients and hessians as whole numbers of 1 / scale, each cut off.
  WholeSums (*sum_pairs)(const Pair* pairs, const Row* rows, std::size_t n, double gradient_scale,
                         double hessian_scale);

  std::array<LossKernels, n_losses> losses;  // by Loss; none for several classes

  // Several classes: scores and probabilities by class and row; the target is the class. `log_sums`, unless null, gets the
  // logarithms of the sums of exponentials: a row's loss is that less the score of its class.
  void (*softmax)(const double* const* scores, std::size_t n_classes, std::size_t n, double* const* shares,
                  double* log_sums);
  void (*class_gradients)(const double* shares, const double* target, const double* weight, std::size_t n,
                          std::uint32_t k, double factor, Pair* out);
  void (*softmax_loss)(const double* const* scores, std::size_t n_classes, const double* target, std::size_t n,
                       double* out);
};

const BoostKernels& boost_kernels();

const BoostKernels& boost_kernels_of(OfIsa<Isa::base>);
const BoostKernels& boost_kernels_of(OfIsa<Isa::avx2>);
const BoostKernels& boost_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
