// The loops worth compiling once per instruction set. All versions give the same bits.
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

  // Gini's merit of the cuts behind each of n cells, less a constant: the sum over both sides of Σ_k S_k^2 / W. Cells are
  // runs of `lanes` (a multiple of 8) weights by class, taken in the order of `present`; `start` is left of all cuts.
  // -infinity where a side weighs less than min_weight. `spare` holds n numbers. Eight lanes are added up, then folded in
  // halves: a fixed order.
  void (*gini_of_cells)(const std::uint32_t* cells, std::size_t lanes, const std::uint32_t* present, std::size_t n,
                        const std::uint32_t* start, const double* total, double weight, double min_weight, double* out,
                        double* spare);

  // The same of the cuts behind each of n rows, all but the last: words are code << 16 | place, ascending; packed[place]
  // is weight << 8 | class. `total` is the weight, then that of each class; `squares` the sum of the latter's squares.
  // -infinity between rows of one code. `left` is 0 for each class, and is not when this returns.
  void (*gini_of_rows)(const std::uint32_t* words, const std::uint32_t* packed, std::size_t n,
                       const std::int64_t* total, std::int64_t squares, std::int64_t* left, double* out, double* spare);

  // The first best of n > 0 cuts by squared error, whose left sides add up to s_left[i] and weigh w_left[i]. Reads both
  // arrays up to the next multiple of 8. `shares`: a sum is the weight of some of the rows, from 0 to what all of them weigh.
  std::size_t (*best_square)(const std::int64_t* s_left, const std::int64_t* w_left, std::size_t n,
                             std::int64_t s_total, std::int64_t w_total, bool shares, double* score);

  // The same of at most 512 cuts, where cut i leaves n_before + i + 1 of n_total rows on the left, at least two in all, and
  // each weighs 1. one_by[i] is what about_one_by_places has for that many rows; it writes n_total - 1 numbers, and up to
  // the next multiple of 8. Reads both arrays up to the next multiple of 8.
  void (*about_one_by_places)(std::size_t n_total, double* out);
  std::size_t (*best_place)(const std::int64_t* s_left, std::size_t n_before, std::size_t n, std::int64_t s_total,
                            std::int64_t n_total, const double* one_by, double* score);

  // Sorts at most 128 words, no two of which are equal; `words` holds the next power of two that is at least 16, and those
  // behind the n-th may be overwritten.
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

  // Writes the keys of n rows in some columns, one column after the other. A row of `keys` has `stride` of them; those of
  // rows further on are fetched ahead where a row is not too long for it. `out` holds 15 more than are written for good.
  void (*read_keys)(const std::uint32_t* keys, std::size_t stride, const std::uint32_t* rows, std::size_t n,
                    const std::uint32_t* columns, std::size_t n_columns, std::uint32_t* out);

  // The same of one column, whose keys lie side by side.
  void (*read_column)(const std::uint32_t* keys, const std::uint32_t* rows, std::size_t n, std::uint32_t* out);

  // Lowest and highest of the n > 0 keys of each of some columns, which lie one after the other. Up to 15 keys behind the
  // last are read.
  void (*key_ranges)(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, std::uint32_t* low,
                     std::uint32_t* high);
  void (*rank_range)(const std::uint16_t* ranks, std::size_t n, std::uint16_t* low, std::uint16_t* high);

  // Writes the places of the keys that are `one` or `other`, ascending, and returns their number; `places` holds n.
  std::size_t (*places_of_keys)(const std::uint32_t* keys, std::size_t n, std::uint32_t one, std::uint32_t other,
                                std::uint32_t* places);

  // How many of the n keys of each of some columns are at most its cut, and the sum of their values: counts[c], sums[c].
  // Bytes are 0 or 1. They are read up to the next multiple of 16, and so are the keys of the last column.
  void (*sum_bytes)(const std::uint32_t* keys, std::size_t n, std::size_t n_columns, const std::uint32_t* cuts,
                    const std::uint8_t* values, std::uint32_t* counts, std::uint32_t* sums);
  // The same of one column; returns the number.
  std::size_t (*sum_values)(const std::uint32_t* keys, std::size_t n, std::uint32_t cut, const std::int64_t* values,
                            std::int64_t* sum);
};

const Kernels& kernels();

const Kernels& kernels_of(OfIsa<Isa::base>);
const Kernels& kernels_of(OfIsa<Isa::avx2>);
const Kernels& kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
