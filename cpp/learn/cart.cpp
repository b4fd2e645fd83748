#include "learn/cart.h"

#include <algorithm>

#include "cells/coarse.h"
#include "learn/grow_tree.h"

namespace spinney {

CartIndex::CartIndex(const Table& table, int n_threads, Interrupt& interrupt) : n_columns_(table.n_columns()) {
  bins_.sorts_for_one_tree = true;
  if (std::any_of(table.columns.begin(), table.columns.end(), [](auto& c) { return c.is_sparse(); })) return;
  bins_.presorted = presort_columns(table, bins_, n_threads, interrupt);
}

Bins* CartIndex::bins_for(const Table& table, const Target& target, const GrowParams& params, std::uint32_t max_bins,
                          Interrupt& interrupt) {
  const bool is_additive = target.rule != Rule::absolute_error && target.rule != Rule::user;
  const bool fits =
      bins_.presorted.n_rows > 0 && table.n_rows == bins_.presorted.n_rows && table.n_columns() == n_columns_;
  if (!fits || !is_additive || max_bins > 0 || params.random_cuts || params.surrogate_params.on) return nullptr;
  if (bins_.tiles.n_rows == 0 && table.n_rows >= coarse_rows && target.is_scalar() && has_bounds(target.rule))
    bins_.tiles = CoarseTiles(table, bins_.presorted, params.n_threads, interrupt);
  return &bins_;
}

// An index for the exact search of large nodes, if there are enough of them.
static Bins make_coarse(const Table& table, const Target& target, const GrowParams& params, Interrupt& interrupt) {
  Bins bins;
  const bool pays = !params.surrogate_params.on && target.rows.size() >= 8 * coarse_rows && target.is_scalar() &&
                    has_bounds(target.rule) && !params.random_cuts && params.max_features >= table.n_columns();
  if (!pays) return bins;
  bins.coarse = make_coarse_codes(table, target.rows, params.n_threads, interrupt);
  return bins;
}

Cart grow_cart(const Table& table, const TargetInput& input, Rule rule, const GrowParams& params,
               std::uint32_t max_bins, Interrupt& interrupt, CartIndex* index) {
  Target target(input, rule);
  Bins own;
  Bins* bins = index == nullptr ? nullptr : index->bins_for(table, target, params, max_bins, interrupt);
  if (bins == nullptr) {
    bins = &own;
    if (max_bins > 0) {
      own = make_bins(table, target.rows, target.input.weight, max_bins, params.n_threads, interrupt);
    } else {
      own.entries = find_entries(table, rule, params, interrupt);
      if (own.entries.empty()) own = make_coarse(table, target, params, interrupt);
    }
  }
  GrowBuffers buffers;
  GrownTree grown = grow_tree(table, target, params, *bins, buffers, interrupt);
  const bool has_room = grown.tree.feature.capacity() > grown.tree.size();
  Cart cart{has_room ? Tree(grown.tree) : std::move(grown.tree), {}};
  if (index == nullptr && !params.surrogate_params.on) return cart;
  cart.resting_node.assign(table.n_rows, UINT32_MAX);
  const auto rest = [&](std::uint32_t node, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) cart.resting_node[buffers.rows[i]] = node;
  };
  if (params.surrogate_params.on) {
    for (std::uint32_t node = 0; node < grown.resting.size(); ++node)
      rest(node, grown.resting[node].first, grown.resting[node].second);
    return cart;
  }
  std::size_t begin = 0;
  for (std::uint32_t node = 0; node < cart.tree.size(); ++node) {
    if (!cart.tree.is_leaf(node)) continue;
    rest(node, begin, begin + cart.tree.n_rows[node]);
    begin += cart.tree.n_rows[node];
  }
  return cart;
}

}  // namespace spinney
