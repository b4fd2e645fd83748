// One classification or regression tree.
#pragma once

#include "base/interrupt.h"
#include "criterion/target.h"
#include "data/column.h"
#include "grow/params.h"
#include "tree/tree.h"

namespace spinney {

// `max_bins` 0: exact splits. The table and the target's arrays must outlive the call.
Tree grow_cart(const Table& table, const TargetInput& target, Rule rule, const GrowParams& params,
               std::uint32_t max_bins, Interrupt& interrupt);

}  // namespace spinney
