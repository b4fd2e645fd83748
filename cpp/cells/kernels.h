// Loops that are compiled once per instruction set. All versions are bit-identical.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace spinney {

struct Kernels {
  // out[i] = Criterion::pair(s_left[i], w_left[i], s_right[i], w_right[i])
  using Score = void (*)(const double* s_left, const double* w_left, const double* s_right, const double* w_right,
                         std::size_t n, double* out);
  Score squared_error, entropy, misclassification, poisson, rate;

  // Index of the first largest score; n > 0, no NaN.
  std::size_t (*first_largest)(const double* scores, std::size_t n);

  // The Gini merit of the cuts after each of n cells, minus a constant: the sum over both sides of Σ_k S_k^2 / W. Cells
  // are arrays of `lanes` (a multiple of 8) class weights, taken in the order of `present`; `start` is to the left of
  // all cuts. -infinity if the weight of a side is below min_weight. `spare` holds n numbers. Eight lanes are summed
  // and then folded in halves, which is a fixed order.
  void (*gini_of_cells)(const std::uint32_t* cells, std::size_t lanes, const std::uint32_t* present, std::size_t n,
                        const std::uint32_t* start, const double* total, double weight, double min_weight, double* out,
                        double* spare);

  // The same for the cuts after each of n rows except the last: words are code << 16 | position, ascending;
  // packed[position] is weight << 8 | class. `total` is the weight, then that of each class; `squares` the sum of the
  // latter's squares. -infinity between rows with the same code. `left` is 0 for each class on entry and modified on
  // return.
  void (*gini_of_rows)(const std::uint32_t* words, const std::uint32_t* packed, std::size_t n,
                       const std::int64_t* total, std::int64_t squares, std::int64_t* left, double* out, double* spare);

  // The first best of n > 0 cuts by squared error, whose left sides have the sums s_left[i] and weights w_left[i].
  // Reads both arrays up to the next multiple of 8. `sums_are_weights`: a sum is the weight of some of the rows, from 0
  // to their total weight.
  std::size_t (*best_square)(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n,
                             std::int64_t s_total, std::int64_t w_total, bool sums_are_weights, double* score);

  // The same for at most 512 cuts between rows of weight 1, where cut i leaves n_before + i + 1 of n_total >= 2 rows on
  // the left. one_by[i] is the result of about_one_by_places for n_total rows, which writes n_total - 1 numbers and up
  // to the next multiple of 8. Reads both arrays up to the next multiple of 8.
  void (*about_one_by_places)(std::size_t n_total, double* out);
  std::size_t (*best_place)(const std::int64_t* s_left, std::size_t n_before, std::size_t n, std::int64_t s_total,
                            std::int64_t n_total, const double* one_by, double* score);

  // Sorts at most 128 distinct words; `words` has the size of the next power of two that is at least 16, and elements
  // after the n-th may be overwritten.
  void (*sort_few)(std::uint32_t* words, std::size_t n);

  // Stable partition of words by side[word & 0xffff] (1: left), in place; `spare` holds n + 16 words.
  // Returns the number that went left. `side` may be read 3 bytes past its end.
  std::size_t (*partition)(std::uint32_t* words, std::size_t n, const std::uint8_t* side, std::uint32_t* spare);

  // Stable partition of rows by their keys: those at most `cut` first. `spare` holds n + 16 rows.
  // Returns the number that went left.
  std::size_t (*partition_by_key)(std::uint32_t* rows, std::size_t n, const std::uint32_t* keys, std::uint32_t cut,
                                  std::uint32_t* spare);

  // The same by 16-bit ranks.
  std::size_t (*partition_by_rank)(std::uint32_t* rows, std::size_t n, const std::uint16_t* ranks, std::uint16_t cut,
                                   std::uint32_t* spare);
  std::size_t (*partition_flags_by_rank)(std::uint64_t* flags, std::size_t n, const std::uint16_t* ranks,
                                         std::uint16_t cut, std::uint64_t* spare);

  // out[i] = the 32 bits at bits + 8 * stride * rows[i], shifted to the right and masked to at most 16.
  void (*read_ranks)(const std::uint8_t* bits, std::size_t stride, const std::uint32_t* rows, std::size_t n,
                     std::uint32_t shift, std::uint32_t mask, std::uint16_t* out);

  // Writes the keys of n rows in some columns, one column after the other. A row of `keys` has `stride` of them; later
  // rows are prefetched unless a row is too long. `out` has 15 more elements than are finally written.
  void (*read_keys)(const std::uint32_t* keys, std::size_t stride, const std::uint32_t* rows, std::size_t n,
                    const std::uint32_t* columns, std::size_t n_columns, std::uint32_t* out);

  // The same for one column with contiguous keys.
  void (*read_column)(const std::uint32_t* keys, const std::uint32_t* rows, std::size_t n, std::uint32_t* out);

  // Lowest and highest of the n > 0 keys of each of some consecutive columns. Up to 15 keys past the last are read.
  void (*key_ranges)(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, std::uint32_t* low,
                     std::uint32_t* high);
  void (*rank_range)(const std::uint16_t* ranks, std::size_t n, std::uint16_t* low, std::uint16_t* high);

  // Writes the positions of the keys that are `one` or `other`, ascending, and returns their number; `places` holds n.
  std::size_t (*places_of_keys)(const std::uint32_t* keys, std::size_t n, std::uint32_t one, std::uint32_t other,
                                std::uint32_t* places);

  // The number of the n keys of each of some columns that are at most its cut, and the sum of their values: counts[c],
  // sums[c]. Bytes are 0 or 1. They are read up to the next multiple of 16, and so are the keys of the last column.
  void (*sum_bytes)(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, const std::uint32_t* cuts,
                    const std::uint8_t* values, std::uint32_t* counts, std::uint32_t* sums);
  // The same for one column; returns the number.
  std::size_t (*sum_values)(const std::uint32_t* keys, std::size_t n, std::uint32_t cut, const std::int64_t* values,
                            std::int64_t* sum);
};

const Kernels& kernels();

const Kernels& kernels_of(OfIsa<Isa::base>);
const Kernels& kernels_of(OfIsa<Isa::avx2>);
const Kernels& kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
