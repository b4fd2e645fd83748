// One classification or regression tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "criterion/target.h"
#include "data/column.h"
#include "grow/params.h"
#include "tree/tree.h"

namespace spinney {

struct Cart {
  Tree tree;
  std::vector<std::uint32_t> resting_node;  // by row, where splits are weighed; UINT32_MAX: not grown on
};

// `max_bins` 0: exact splits. The table and the target's arrays must outlive the call.
Cart grow_cart(const Table& table, const TargetInput& target, Rule rule, const GrowParams& params,
               std::uint32_t max_bins, Interrupt& interrupt);

}  // namespace spinney
