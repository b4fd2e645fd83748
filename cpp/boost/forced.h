// Forced splits: the user's first splits of every tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

// Adds an edge for each threshold, so that forced splits are exact whatever the bins are.
void force_edges(Coding& coding, const std::vector<ForcedSplit>& splits);

// Evaluates a forced split on the rows of a node. Rows with a missing value go to the side with the larger gain.
BoostSplit forced_split(const ForcedSplit& forced, const Coding& coding, const Codes& codes, std::span<const Row> rows,
                        const Packed* pairs, const SplitSearch& search, Units units, const Bounds& bounds);

}  // namespace spinney
