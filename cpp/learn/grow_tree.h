// Growth of one tree on a prepared target, shared by single trees and forests.
#pragma once

#include <vector>

#include "base/interrupt.h"
#include "grow/grower.h"

namespace spinney {

Bins make_bins(const Table& table, const std::vector<Row>& rows, const double* weight, std::uint32_t max_bins,
               int n_threads, Interrupt& interrupt);

// The non-zero entries, if most values are 0 and a tree is grown from them.
Entries find_entries(const Table& table, Rule rule, const GrowParams& params, Interrupt& interrupt);

// The sorted rows of every column. Empty if an entry cannot hold a row, or there would be too many.
Presorted presort_columns(const Table& table, const Bins& bins, int n_threads, Interrupt& interrupt);

// Takes the target's row index. `buffers.rows` is left in the order of the grown tree's leaves.
GrownTree grow_tree(const Table& table, Target& target, const GrowParams& params, Bins& bins, GrowBuffers& buffers,
                    Interrupt& interrupt);

}  // namespace spinney
