// Loops of the search for neighbours, compiled for several instruction sets. All versions give the same neighbours.
//
// Rows lie in blocks of 16, term by term: number t of the row in lane i of a block is at [16 t + i]. A key is what distances
// are compared by. It is summed in the order of the terms, whatever the registers hold, so that it has the same bits
// everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace spinney {

// What is added up over the terms: squares, absolute differences or their powers; the largest difference; differing terms;
// differences of 1 at most, over the terms that both rows have.
enum class Metric { squares, absolute, powers, largest, differing, gower };

struct Measure {
  Metric metric = Metric::squares;
  double p = 2;  // of powers

  bool operator==(const Measure&) const = default;
};

struct LocalKernels {
  static constexpr std::size_t n_lanes = 16, n_together = 4;

  // Keys of the rows of a block. Goes on to the next block while all keys are above `limit`; returns the block that it
  // stopped at, whose keys it wrote, or n_blocks.
  std::size_t (*first_near)(const Measure& measure, const double* query, const double* blocks, std::size_t n_terms,
                            std::size_t n_blocks, double limit, double* keys);

  // A rough half[i] - x · row for n_together queries x, interleaved. Goes on to the next block while it is above the
  // query's limit for all; returns the block that it stopped at, and sets a bit for each query that stopped it, or n_blocks.
  std::size_t (*first_promising)(const float* queries, const float* blocks, const float* half, std::size_t n_terms,
                                 std::size_t n_blocks, const float* limits, std::uint32_t* which);

  // Key of what lies nearest to a query in the box from `low` to `high`; of squares, absolute, powers and largest.
  double (*box_key)(const Measure& measure, const double* query, const double* low, const double* high,
                    std::size_t n_terms);
};

const LocalKernels& local_kernels();

const LocalKernels& local_kernels_of(OfIsa<Isa::base>);
const LocalKernels& local_kernels_of(OfIsa<Isa::avx2>);
const LocalKernels& local_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
