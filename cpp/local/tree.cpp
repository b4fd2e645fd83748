// The tree of boxes of an index.
#include <algorithm>
#include <cmath>
#include <utility>

#include "local/index.h"

namespace spinney {

namespace {

// A node over n blocks has 2 n - 1 nodes below it, itself included, in preorder.
constexpr std::size_t right_child(std::size_t node, std::size_t n_left_blocks) { return node + 2 * n_left_blocks; }

}  // namespace

void NeighbourIndex::grow_tree(std::span<const double> rows, std::vector<Row>& order, Interrupt& interrupt) {
  boxes_.assign((2 * n_blocks_ - 1) * 2 * n_terms_, 0.0);
  // Keys and boxes are sums of as many rounded terms, none of them negative; powers err more.
  box_slack_ = measure_.metric == Metric::powers ? 1e-9 : static_cast<double>(n_terms_ + 8) * 0x1p-50;
  interrupt.check();
  grow_node(rows, order, 0, 0, n_blocks_);
}

void NeighbourIndex::grow_node(std::span<const double> rows, std::vector<Row>& order, std::size_t node,
                               std::size_t first, std::size_t last) {
  const std::size_t begin = first * n_lanes, end = std::min(n_rows_, last * n_lanes);
  double *low = boxes_.data() + node * 2 * n_terms_, *high = low + n_terms_;
  std::copy_n(rows.data() + order[begin] * n_terms_, n_terms_, low);
  std::copy_n(low, n_terms_, high);
  for (std::size_t i = begin + 1; i < end; ++i)
    for (std::size_t t = 0; t < n_terms_; ++t) {
      const double number = rows[order[i] * n_terms_ + t];
      low[t] = std::min(low[t], number);
      high[t] = std::max(high[t], number);
    }
  if (last - first == 1) return;
  std::size_t widest = 0;
  for (std::size_t t = 1; t < n_terms_; ++t)
    if (high[t] - low[t] > high[widest] - low[widest]) widest = t;
  const std::size_t middle = first + (last - first) / 2;
  const auto at = [&](std::size_t place) { return order.begin() + static_cast<std::ptrdiff_t>(place); };
  std::nth_element(at(begin), at(middle * n_lanes), at(end), [&](Row a, Row b) {
    return std::pair(rows[a * n_terms_ + widest], a) < std::pair(rows[b * n_terms_ + widest], b);
  });
  grow_node(rows, order, node + 1, first, middle);
  grow_node(rows, order, right_child(node, middle - first), middle, last);
}

void NeighbourIndex::walk(const double* query, Nearest& nearest, Visits& visits) const {
  struct Place {
    double key;
    std::size_t node, first, last;
  };
  const LocalKernels& kernels = local_kernels();
  const auto key_of = [&](std::size_t node) {
    const double* low = boxes_.data() + node * 2 * n_terms_;
    return kernels.box_key(measure_, query, low, low + n_terms_, n_terms_) * (1 - box_slack_);
  };
  Place waiting[64];  // one for each level: blocks are halved
  std::size_t n_waiting = 0;
  waiting[n_waiting++] = {0, 0, 0, n_blocks_};
  while (n_waiting > 0) {
    Place place = waiting[--n_waiting];
    if (place.key > nearest.limit()) continue;
    while (place.last - place.first > 1) {
      const std::size_t middle = place.first + (place.last - place.first) / 2;
      Place near{0, place.node + 1, place.first, middle},
          far{0, right_child(place.node, middle - place.first), middle, place.last};
      near.key = key_of(near.node);
      far.key = key_of(far.node);
      visits.n_boxes += 2;
      if (far.key < near.key) std::swap(near, far);
      if (far.key <= nearest.limit()) waiting[n_waiting++] = far;
      place = near;
      if (place.key > nearest.limit()) break;
    }
    if (place.last - place.first > 1 || place.key > nearest.limit()) continue;
    ++visits.n_blocks;
    meet_block(query, place.first, nearest);
  }
}

// Walks to some of the rows themselves and counts what is met, in rough costs of one box or block.
bool NeighbourIndex::tree_is_cheaper(std::span<const double> rows, std::size_t k, Interrupt& interrupt) const {
  constexpr std::size_t n_tried = 32;
  Visits visits;
  for (std::size_t i = 0; i < n_tried; ++i) {
    Nearest nearest(std::min(k, n_rows_));
    walk(rows.data() + i * (n_rows_ / n_tried) * n_terms_, nearest, visits);
    interrupt.check();
  }
  const double n_terms = static_cast<double>(n_terms_);
  const double block = 30 + 12 * n_terms, box = 15 + 4 * n_terms,
               of_all = measure_.metric == Metric::squares ? 6 + 2 * n_terms : block;
  const double by_tree = static_cast<double>(visits.n_blocks) * block + static_cast<double>(visits.n_boxes) * box;
  return by_tree < of_all * static_cast<double>(n_blocks_ * n_tried);
}

}  // namespace spinney
