// Linear leaves: a leaf may add a linear function of some number columns instead of a constant. Each column is clipped
// to its range in the leaf, so that predictions do not extrapolate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinney {

struct LinearLeaves {
  std::vector<std::uint32_t> begin;    // by node, then the end: index of its first term; empty: all leaves are constant
  std::vector<double> base;            // by node: its value where all columns are at their centres
  std::vector<std::uint32_t> feature;  // by term
  std::vector<double> slope, middle, low, high;  // by term

  bool empty() const { return begin.empty(); }
  std::size_t size() const { return feature.size(); }
  bool has(std::size_t node) const { return !empty() && begin[node] < begin[node + 1]; }

  // The value of a linear leaf for a row; `constant` if one of the columns is missing.
  template <class ValueOf>
  double at(std::size_t node, double constant, ValueOf&& value_of) const {
    double sum = base[node];
    for (std::uint32_t t = begin[node]; t < begin[node + 1]; ++t) {
      const double x = value_of(feature[t]);
      if (x != x) return constant;
      sum += slope[t] * (std::min(std::max(x, low[t]), high[t]) - middle[t]);
    }
    return sum;
  }

  void end_node(double node_base);  // call it after the node's terms were added
  void add_term(std::uint32_t column, double by, double around, double from, double to);
  void copy_node(const LinearLeaves& from, std::size_t node);  // as the next node
  void pad(std::size_t n_nodes);                               // up to n_nodes nodes, the new ones constant
  void append(const LinearLeaves& subtree);
  void multiply(double factor);
};

}  // namespace spinney
