// Coarse codes: an index over a number column that tells roughly where a row's value lies.
//
// An exact search need not sort rows that cannot hold the best cut. Codes are a monotone image of the values in 255
// steps of about equal size; sums over a step bound how good any cut inside it can be.
#pragma once

#include <cstdint>
#include <span>

#include "data/column.h"

namespace spinney {

inline constexpr std::size_t n_coarse = 255;  // codes 0 … 254
inline constexpr std::uint8_t coarse_missing = 255;

// Writes codes[row] for the rows listed (ascending). The steps come from a fixed sample of these rows.
void fill_coarse_codes(const Column& column, std::span<const Row> rows, std::uint8_t* codes);

}  // namespace spinney
