// The first splits of every tree, as the user gives them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

// Gives each threshold an edge of its own: the forced cuts are exact, whatever the bins are.
void force_edges(Coding& coding, const std::vector<ForcedSplit>& splits);

// A forced split of a node, as its rows make it. Rows without a value go where it saves more.
BoostSplit forced_split(const ForcedSplit& asked, const Coding& coding, const Codes& codes, std::span<const Row> rows,
                        const Packed* pairs, const SplitSearch& search, Units units, const Bounds& bounds);

}  // namespace spinney
