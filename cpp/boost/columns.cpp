#include "boost/columns.h"

#include <algorithm>

#include "base/draw.h"

namespace spinney {

namespace {

std::size_t fraction_of(std::size_t n, double fraction) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(fraction * static_cast<double>(n) + 0.5),
                                 std::min<std::size_t>(n, 1), n);
}

std::vector<std::uint32_t> draw(std::vector<std::uint32_t> columns, double fraction, const std::vector<double>& weights,
                                std::uint64_t key) {
  const std::size_t n = fraction_of(columns.size(), fraction);
  if (n == columns.size()) return columns;
  shuffle_columns(columns, n, weights, RandomStream(key));
  columns.resize(n);
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::vector<std::uint8_t> by_column(const std::vector<std::uint32_t>& columns, std::size_t n_columns) {
  std::vector<std::uint8_t> flags(n_columns, 0);
  for (const std::uint32_t f : columns) flags[f] = 1;
  return flags;
}

}  // namespace

DrawnColumns::DrawnColumns(const Coding& coding, const BoostParams& params, std::uint64_t key)
    : params_(params), key_(key) {
  for (std::uint32_t f = 0; f < coding.columns.size(); ++f)
    if (coding.columns[f].n_codes > 1 && (params.feature_weights.empty() || params.feature_weights[f] > 0))
      columns_.push_back(f);
  columns_ = draw(std::move(columns_), params.max_features_per_tree, params.feature_weights, derive(key, 1));
  in_use_ = by_column(columns_, coding.columns.size());
}

bool DrawnColumns::is_in(std::span<const std::uint32_t> groups, std::uint32_t column) const {
  return std::any_of(groups.begin(), groups.end(), [&](std::uint32_t g) {
    const auto& group = params_.interaction_cst[g];
    return std::find(group.begin(), group.end(), column) != group.end();
  });
}

std::vector<std::uint8_t> DrawnColumns::of_node(std::uint32_t depth, std::uint64_t path,
                                                std::span<const std::uint32_t> groups) const {
  if (params_.interaction_cst.empty() && params_.max_features_per_level >= 1 && params_.max_features >= 1)
    return in_use_;
  std::vector<std::uint32_t> columns = columns_;
  if (!params_.interaction_cst.empty() && depth > 0)
    std::erase_if(columns, [&](std::uint32_t f) { return !is_in(groups, f); });
  const std::vector<double>& weights = params_.feature_weights;
  columns = draw(std::move(columns), params_.max_features_per_level, weights, derive(derive(key_, 2), depth));
  columns = draw(std::move(columns), params_.max_features, weights, derive(derive(key_, 3), path));
  return by_column(columns, in_use_.size());
}

}  // namespace spinney
