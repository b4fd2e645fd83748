// The order of rows in which blocks of them are the leaves of a tree of boxes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/types.h"

namespace spinney {

// Blocks are halved repeatedly across the longest side of the remaining box. The order is the same for any number of
// threads.
std::vector<Row> tree_order(std::span<const double> rows, std::size_t n_rows, std::size_t n_terms, int n_threads,
                            Interrupt& interrupt);

}  // namespace spinney
