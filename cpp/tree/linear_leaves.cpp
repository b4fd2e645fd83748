#include "tree/linear_leaves.h"

#include "tree/splits.h"

namespace spinney {

void LinearLeaves::end_node(double node_base) {
  if (begin.empty()) begin.push_back(0);
  begin.push_back(static_cast<std::uint32_t>(size()));
  base.push_back(node_base);
}

void LinearLeaves::add_term(std::uint32_t column, double by, double around, double from, double to) {
  feature.push_back(column);
  slope.push_back(by);
  middle.push_back(around);
  low.push_back(from);
  high.push_back(to);
}

void LinearLeaves::copy_node(const LinearLeaves& from, std::size_t node) {
  for (std::uint32_t t = from.begin[node]; t < from.begin[node + 1]; ++t)
    add_term(from.feature[t], from.slope[t], from.middle[t], from.low[t], from.high[t]);
  end_node(from.base[node]);
}

void LinearLeaves::pad(std::size_t n_nodes) {
  while (base.size() < n_nodes) end_node(0);
}

void LinearLeaves::append(const LinearLeaves& subtree) {
  const auto shift = static_cast<std::uint32_t>(size());
  if (begin.empty()) begin.push_back(0);
  for (std::size_t i = 1; i < subtree.begin.size(); ++i) begin.push_back(subtree.begin[i] + shift);
  extend(base, subtree.base);
  extend(feature, subtree.feature);
  extend(slope, subtree.slope);
  extend(middle, subtree.middle);
  extend(low, subtree.low);
  extend(high, subtree.high);
}

void LinearLeaves::multiply(double factor) {
  for (double& b : base) b *= factor;
  for (double& s : slope) s *= factor;
}

}  // namespace spinney
