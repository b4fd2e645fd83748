// Loops of nearest-neighbour search, compiled for several instruction sets. All versions find the same neighbours.
//
// Rows are stored in blocks of 16, term by term: term t of the row in lane i of a block is at [16 t + i]. A key is a
// monotone function of the distance. It is summed in the order of the terms for every register width, so that it is
// bit-identical everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace spinney {

// The terms of the sum: squares, absolute differences or their powers; the largest difference; differing terms; or
// differences of at most 1 over the terms that both rows have.
enum class Metric { squares, absolute, powers, largest, differing, gower };

struct Measure {
  Metric metric = Metric::squares;
  double p = 2;  // exponent of powers

  bool operator==(const Measure&) const = default;
};

struct LocalKernels {
  static constexpr std::size_t n_lanes = 16, n_together = 4;

  // The keys of the rows of a block. Continues with the next block while all keys are above `limit`; returns the block
  // at which it stopped, with its keys, or n_blocks.
  std::size_t (*first_near)(const Measure& measure, const double* query, const double* blocks, std::size_t n_terms,
                            std::size_t n_blocks, double limit, double* keys);

  // An approximation of half[i] - x · row for n_together interleaved queries x. Continues with the next block while all
  // values are above the query's limit; returns the block at which it stopped, with a bit for each query that stopped
  // it, or n_blocks.
  std::size_t (*first_candidate_block)(const float* queries, const float* blocks, const float* half,
                                       std::size_t n_terms, std::size_t n_blocks, const float* limits,
                                       std::uint32_t* which);

  // The key of the point of the box from `low` to `high` that is nearest to a query; for squares, absolute, powers and
  // largest.
  double (*box_key)(const Measure& measure, const double* query, const double* low, const double* high,
                    std::size_t n_terms);
};

const LocalKernels& local_kernels();

const LocalKernels& local_kernels_of(OfIsa<Isa::base>);
const LocalKernels& local_kernels_of(OfIsa<Isa::avx2>);
const LocalKernels& local_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
