// The tree of boxes of an index.
#include "local/tree.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/pool.h"
#include "local/index.h"

namespace spinney {

namespace {

// A node over n blocks has 2 n - 1 nodes in its subtree, including itself, in preorder.
constexpr std::size_t right_child(std::size_t node, std::size_t n_left_blocks) { return node + 2 * n_left_blocks; }

// The rows of blocks [first, last) that are still unordered, and a box around them, not necessarily the smallest.
struct Part {
  std::size_t first, last;
  std::vector<double> low, high;
};

struct Ordering {
  static constexpr std::size_t n_lanes = NeighbourIndex::n_lanes;

  std::span<const double> rows;
  std::size_t n_rows, n_terms;
  std::vector<Row> order;

  // Halves the rows across the longest side of their box, by value and then by row number.
  std::pair<Part, Part> halve(const Part& part, std::vector<std::pair<double, Row>>& spare) {
    std::size_t longest = 0;
    for (std::size_t t = 1; t < n_terms; ++t)
      if (part.high[t] - part.low[t] > part.high[longest] - part.low[longest]) longest = t;
    const std::size_t begin = part.first * n_lanes, end = std::min(n_rows, part.last * n_lanes);
    const std::size_t middle = part.first + (part.last - part.first) / 2;
    spare.clear();
    for (std::size_t i = begin; i < end; ++i) spare.emplace_back(rows[order[i] * n_terms + longest], order[i]);
    const auto at_middle = spare.begin() + static_cast<std::ptrdiff_t>(middle * n_lanes - begin);
    std::nth_element(spare.begin(), at_middle, spare.end());
    for (std::size_t i = begin; i < end; ++i) order[i] = spare[i - begin].second;
    Part left{part.first, middle, part.low, part.high}, right{middle, part.last, part.low, part.high};
    left.high[longest] = right.low[longest] = at_middle->first;
    return {std::move(left), std::move(right)};
  }

  void finish(Part part, std::vector<std::pair<double, Row>>& spare) {
    while (part.last - part.first > 1) {
      auto [left, right] = halve(part, spare);
      finish(std::move(left), spare);
      part = std::move(right);
    }
  }
};

}  // namespace

std::vector<Row> tree_order(std::span<const double> rows, std::size_t n_rows, std::size_t n_terms, int n_threads,
                            Interrupt& interrupt) {
  Ordering ordering{rows, n_rows, n_terms, std::vector<Row>(n_rows)};
  std::iota(ordering.order.begin(), ordering.order.end(), Row{0});
  const std::size_t n_blocks = (n_rows + Ordering::n_lanes - 1) / Ordering::n_lanes;
  Part whole{0, n_blocks, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_terms)}, {}};
  whole.high = whole.low;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    whole.low[i % n_terms] = std::min(whole.low[i % n_terms], rows[i]);
    whole.high[i % n_terms] = std::max(whole.high[i % n_terms], rows[i]);
  }
  constexpr std::size_t n_parts = 16;
  std::vector<std::pair<double, Row>> spare;
  std::vector<Part> parts{std::move(whole)};
  while (parts.size() < n_parts && parts.front().last - parts.front().first > n_parts) {
    std::vector<Part> halves;
    for (const Part& part : parts) {
      interrupt.check();
      auto [left, right] = ordering.halve(part, spare);
      halves.push_back(std::move(left));
      halves.push_back(std::move(right));
    }
    parts = std::move(halves);
  }
  parallel_for(parts.size(), n_threads, [&](std::size_t task, int) {
    interrupt.check();
    std::vector<std::pair<double, Row>> own;
    ordering.finish(std::move(parts[task]), own);
  });
  return std::move(ordering.order);
}

void NeighbourIndex::fill_boxes(std::size_t node, std::size_t first, std::size_t last) {
  double *low = boxes_.data() + node * 2 * n_terms_, *high = low + n_terms_;
  if (last - first == 1) {
    const double* block = blocks_.data() + first * n_terms_ * n_lanes;
    for (std::size_t t = 0; t < n_terms_; ++t) {
      const auto [least, most] = std::minmax_element(block + t * n_lanes, block + (t + 1) * n_lanes);
      low[t] = *least, high[t] = *most;
    }
    return;
  }
  const std::size_t middle = first + (last - first) / 2, left = node + 1, right = right_child(node, middle - first);
  fill_boxes(left, first, middle);
  fill_boxes(right, middle, last);
  const double *one = boxes_.data() + left * 2 * n_terms_, *other = boxes_.data() + right * 2 * n_terms_;
  for (std::size_t t = 0; t < n_terms_; ++t) {
    low[t] = std::min(one[t], other[t]);
    high[t] = std::max(one[n_terms_ + t], other[n_terms_ + t]);
  }
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
  Place waiting[64];  // one per level, because blocks are halved
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
    scan_block(query, place.first, nearest);
  }
}

// Searches for some of the rows themselves and counts the visits, in approximate costs of one box or block.
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
