#include "boost/forced.h"

#include <algorithm>
#include <cmath>

namespace spinney {

// Adds an edge if there is a free code; else replaces the nearest edge that is not forced.
static void force_edge(CodedColumn& column, double threshold, const std::vector<double>& forced) {
  const auto at = std::lower_bound(column.edges.begin(), column.edges.end(), threshold);
  if (at != column.edges.end() && *at == threshold) return;
  const bool has_room = column.is_wide ? column.n_codes < 0xffff : column.n_codes < 256;
  if (has_room) {
    column.edges.insert(at, threshold);
    ++column.n_codes;
    return;
  }
  double* nearest = nullptr;
  for (double& edge : column.edges)
    if (std::find(forced.begin(), forced.end(), edge) == forced.end() &&
        (nearest == nullptr || std::abs(edge - threshold) < std::abs(*nearest - threshold)))
      nearest = &edge;
  if (nearest != nullptr) *nearest = threshold;
  std::sort(column.edges.begin(), column.edges.end());
}

void force_edges(Coding& coding, const std::vector<ForcedSplit>& splits) {
  for (const ForcedSplit& split : splits) {
    CodedColumn& column = coding.columns[split.feature];
    if (column.is_category) continue;
    std::vector<double> forced;
    for (const ForcedSplit& other : splits)
      if (other.feature == split.feature) forced.push_back(other.threshold);
    force_edge(column, split.threshold, forced);
  }
}

BoostSplit forced_split(const ForcedSplit& forced, const Coding& coding, const Codes& codes, std::span<const Row> rows,
                        const Packed* pairs, const SplitSearch& search, Units units, const Bounds& bounds) {
  const CodedColumn& column = coding.columns[forced.feature];
  BoostSplit split;
  split.feature = forced.feature;
  split.is_category = column.is_category;
  split.left_codes = forced.left_codes;
  if (!column.is_category)
    split.cut = static_cast<std::uint32_t>(
        std::lower_bound(column.edges.begin(), column.edges.end(), forced.threshold) - column.edges.begin());
  Packed total = 0, left = 0, missing = 0;
  codes.touch(rows);
  for (const Row r : rows) {
    const std::uint32_t code = codes.code(coding, forced.feature, r);
    total += pairs[r];
    if (column.has_missing && code + 1 == column.n_codes) {
      missing += pairs[r];
      split.saw_missing = true;
    } else if (column.is_category ? std::binary_search(split.left_codes.begin(), split.left_codes.end(), code)
                                  : code <= split.cut) {
      left += pairs[r];
    }
  }
  const auto score_of_node = [&](Packed sum) {
    return search.score_of_node(static_cast<double>(gradient_of(sum)) * units.gradient,
                                static_cast<double>(hessian_of(sum)) * units.hessian, bounds, 0);
  };
  const auto saves = [&](Packed side) {
    return score_of_node(side) + score_of_node(total - side) - score_of_node(total);
  };
  split.missing_left = split.saw_missing && saves(left + missing) > saves(left);
  if (split.missing_left) left += missing;
  split.gain = saves(left);
  split.left = {gradient_of(left), hessian_of(left)};
  return split;
}

}  // namespace spinney
