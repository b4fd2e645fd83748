// One classification or regression tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interrupt.h"
#include "criterion/target.h"
#include "data/column.h"
#include "grow/params.h"
#include "grow/search.h"
#include "tree/tree.h"

namespace spinney {

struct Cart {
  Tree tree;
  std::vector<std::uint32_t>
      resting_node;  // by row, if splits are recorded or there is an index; UINT32_MAX: not a training row
};

// Sorted columns, shared by trees that are grown on one table with different weights or targets. The trees are
// bit-identical to those grown without it.
class CartIndex {
 public:
  CartIndex(const Table& table, int n_threads, Interrupt& interrupt);

  // Where it is useful for such a tree, else null.
  Bins* bins_for(const Table& table, const Target& target, const GrowParams& params, std::uint32_t max_bins,
                 Interrupt& interrupt);

 private:
  std::size_t n_columns_;
  Bins bins_;
};

// `max_bins` 0: exact splits. The table and the target's arrays must outlive the call.
Cart grow_cart(const Table& table, const TargetInput& target, Rule rule, const GrowParams& params,
               std::uint32_t max_bins, Interrupt& interrupt, CartIndex* index = nullptr);

}  // namespace spinney
