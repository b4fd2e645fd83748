// Lines in leaves: a leaf may add a linear function of some columns of numbers instead of one number. Each column is held to
// the values that the leaf has seen of it, so that no line runs away outside of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinney {

struct LeafLines {
  std::vector<std::uint32_t> begin;    // by node, and the end: where its terms begin; empty: no leaf has a line
  std::vector<double> base;            // by node: what it adds where all of its columns are at their middles
  std::vector<std::uint32_t> feature;  // by term
  std::vector<double> slope, middle, low, high;  // by term

  bool empty() const { return begin.empty(); }
  std::size_t size() const { return feature.size(); }
  bool has(std::size_t node) const { return !empty() && begin[node] < begin[node + 1]; }

  // What a leaf that has a line adds to a row; `constant` where the row lacks one of the values.
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

  void end_node(double node_base);  // after its terms were added
  void add_term(std::uint32_t column, double by, double around, double from, double to);
  void copy_node(const LeafLines& from, std::size_t node);  // as the next node
  void pad(std::size_t n_nodes);                            // up to so many nodes, the new ones without lines
  void append(const LeafLines& subtree);
  void multiply(double factor);
};

}  // namespace spinney
