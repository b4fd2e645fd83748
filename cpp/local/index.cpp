#include "local/index.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/pool.h"
#include "local/tree.h"

namespace spinney {

namespace {

constexpr std::size_t n_together = LocalKernels::n_together;
constexpr std::size_t queries_per_task = 32, bytes_at_once = std::size_t{1} << 17;

// An order in which rows that are close in the table are far apart, so that search limits tighten quickly for any table
// order: multiples of an integer close to n times the golden ratio and coprime to n.
std::vector<Row> scattered(std::size_t n) {
  std::size_t step = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(n) * 0.6180339887498949));
  while (std::gcd(step, n) != 1) ++step;
  std::vector<Row> order(n);
  std::size_t at = 0;
  for (Row& row : order) {
    row = static_cast<Row>(at);
    at = (at + step) % n;
  }
  return order;
}

bool adds_up(Metric metric) { return metric != Metric::differing && metric != Metric::gower; }

}  // namespace

NeighbourIndex::NeighbourIndex(std::span<const double> rows, std::size_t n_rows, std::size_t n_terms, Measure measure,
                               Search search, std::size_t k, int n_threads, Interrupt& interrupt)
    : n_rows_(n_rows), n_terms_(n_terms), n_blocks_((n_rows + n_lanes - 1) / n_lanes), measure_(measure) {
  // With many terms hardly any box is too far away, and blocks are best scanned one by one as soon as they are chosen.
  constexpr std::size_t most_terms = 20, fewest_blocks = 16;
  const bool may_pay = n_terms_ <= most_terms && n_blocks_ >= fewest_blocks;
  const bool wants_tree = search == Search::tree || (search == Search::cheaper && may_pay);
  if (wants_tree && adds_up(measure.metric) && n_terms_ > 0) {
    fill_blocks(rows, tree_order(rows, n_rows_, n_terms_, n_threads, interrupt));
    boxes_.assign((2 * n_blocks_ - 1) * 2 * n_terms_, 0.0);
    fill_boxes(0, 0, n_blocks_);
    // Keys and boxes are sums of equally many rounded non-negative terms; powers have larger errors.
    box_slack_ = measure.metric == Metric::powers ? 1e-9 : static_cast<double>(n_terms_ + 8) * 0x1p-50;
    if (search == Search::tree || tree_is_cheaper(rows, k, interrupt)) return;
    boxes_ = {};
  }
  fill_blocks(rows, scattered(n_rows_));
  if (measure.metric == Metric::squares && n_terms_ > 0) fill_rough(rows);
}

void NeighbourIndex::fill_blocks(std::span<const double> rows, const std::vector<Row>& order) {
  blocks_ = LargeArray<double>(n_blocks_ * n_terms_ * n_lanes);
  row_of_.assign(n_blocks_ * n_lanes, no_row);
  std::copy(order.begin(), order.end(), row_of_.begin());
  for (std::size_t block = 0; block < n_blocks_; ++block) {
    const double* from[n_lanes];
    for (std::size_t lane = 0; lane < n_lanes; ++lane)
      from[lane] = rows.data() + order[std::min(block * n_lanes + lane, n_rows_ - 1)] * n_terms_;
    double* to = blocks_.data() + block * n_terms_ * n_lanes;
    for (std::size_t t = 0; t < n_terms_; ++t)
      for (std::size_t lane = 0; lane < n_lanes; ++lane) *to++ = from[lane][t];
  }
}

// ---- all rows ---------------------------------------------------------------------------------------------------------

void NeighbourIndex::fill_rough(std::span<const double> rows) {
  center_.assign(n_terms_, 0.0);
  std::vector<double> low(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_terms_)), high = low;
  for (std::size_t row = 1; row < n_rows_; ++row)
    for (std::size_t t = 0; t < n_terms_; ++t) {
      low[t] = std::min(low[t], rows[row * n_terms_ + t]);
      high[t] = std::max(high[t], rows[row * n_terms_ + t]);
    }
  double farthest = 0;
  for (std::size_t t = 0; t < n_terms_; ++t) {
    center_[t] = low[t] + (high[t] - low[t]) / 2;
    farthest = std::max({farthest, high[t] - center_[t], center_[t] - low[t]});
  }
  factor_ = farthest > 0 ? std::exp2(-std::ceil(std::log2(farthest))) : 1.0;
  // For s = h - x · y in single precision, u = 2^-24: x and y are rounded (2 u |x| |y|), and so are the n_terms
  // products and sums (u times the sum of the sizes, at most h = |y|² / 2 and |x| |y|). As |x| |y| <= (|x|² + |y|²) /
  // 2, the error is below (n_terms + 5) u (|x|² / 2 + |y|²); the rest covers the rounding of this bound.
  rough_slack_ = 1.1 * static_cast<double>(n_terms_ + 6) * 0x1p-24;
  rough_ = LargeArray<float>(blocks_.size());
  half_ = LargeArray<float>(row_of_.size());
  for (std::size_t block = 0; block < n_blocks_; ++block) {
    const double* from = blocks_.data() + block * n_terms_ * n_lanes;
    float* to = rough_.data() + block * n_terms_ * n_lanes;
    double squares[n_lanes] = {};
    for (std::size_t t = 0; t < n_terms_; ++t)
      for (std::size_t lane = 0; lane < n_lanes; ++lane) {
        const double number = (*from++ - center_[t]) * factor_;
        *to++ = static_cast<float>(number);
        squares[lane] += number * number;
      }
    for (std::size_t lane = 0; lane < n_lanes; ++lane)
      half_.data()[block * n_lanes + lane] = static_cast<float>(squares[lane] * (0.5 - rough_slack_));
  }
}

// The maximum of a rough number for which the key may still be at most `key`.
float NeighbourIndex::rough_limit(double key, double squared_length) const {
  const double exact = (key * factor_ * factor_ - squared_length) / 2;
  const double highest = exact + rough_slack_ * squared_length + static_cast<double>(n_terms_) * 1e-30;
  return static_cast<float>(highest + std::abs(highest) * 0x1p-22);
}

struct NeighbourIndex::Group {
  std::vector<float> queries;          // n_terms x n_together
  double squared_lengths[n_together];  // in the units of the rough rows
  float limits[n_together];            // minus infinity: not searched
};

NeighbourIndex::Group NeighbourIndex::make_group(const double* queries, std::size_t n) const {
  constexpr double longest = 1e12;  // squared; larger values might overflow single precision
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Group group{.queries = std::vector<float>(n_terms_ * n_together, 0.0f), .squared_lengths = {}, .limits = {}};
  for (std::size_t i = 0; i < n_together; ++i) {
    group.limits[i] = -infinity;
    if (i >= n) continue;
    double squares = 0;
    for (std::size_t t = 0; t < n_terms_; ++t) {
      const double number = (queries[i * n_terms_ + t] - center_[t]) * factor_;
      squares += number * number;
    }
    if (!(squares <= longest)) continue;
    group.limits[i] = infinity;
    group.squared_lengths[i] = squares;
    for (std::size_t t = 0; t < n_terms_; ++t)
      group.queries[t * n_together + i] = static_cast<float>((queries[i * n_terms_ + t] - center_[t]) * factor_);
  }
  return group;
}

void NeighbourIndex::scan_all_roughly(const double* queries, std::span<Nearest> nearest, Interrupt& interrupt) const {
  const LocalKernels& kernels = local_kernels();
  std::vector<Group> groups;
  for (std::size_t i = 0; i < nearest.size(); i += n_together)
    groups.push_back(make_group(queries + i * n_terms_, std::min(n_together, nearest.size() - i)));
  const std::size_t at_once = std::max<std::size_t>(1, bytes_at_once / (n_terms_ * n_lanes * sizeof(float)));
  for (std::size_t first = 0; first < n_blocks_; first += at_once) {
    interrupt.check();
    const std::size_t last = std::min(n_blocks_, first + at_once);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Group& group = groups[g];
      for (std::size_t b = first; b < last; ++b) {
        std::uint32_t which = 0;
        b += kernels.first_candidate_block(group.queries.data(), rough_.data() + b * n_terms_ * n_lanes,
                                           half_.data() + b * n_lanes, n_terms_, last - b, group.limits, &which);
        for (; which != 0; which &= which - 1) {
          const auto i = static_cast<std::size_t>(__builtin_ctz(which)), query = g * n_together + i;
          scan_block(queries + query * n_terms_, b, nearest[query]);
          group.limits[i] = rough_limit(nearest[query].limit(), group.squared_lengths[i]);
        }
      }
    }
  }
  for (std::size_t query = 0; query < nearest.size(); ++query)
    if (groups[query / n_together].limits[query % n_together] == -std::numeric_limits<float>::infinity())
      scan_all(queries + query * n_terms_, nearest[query], interrupt);
}

void NeighbourIndex::scan_block(const double* query, std::size_t block, Nearest& nearest) const {
  double keys[n_lanes];
  const double* rows = blocks_.data() + block * n_terms_ * n_lanes;
  if (local_kernels().first_near(measure_, query, rows, n_terms_, 1, nearest.limit(), keys) != 0) return;
  for (std::size_t i = 0; i < n_lanes; ++i)
    if (keys[i] <= nearest.limit() && row_of_[block * n_lanes + i] != no_row)
      nearest.meet({keys[i], row_of_[block * n_lanes + i]});
}

void NeighbourIndex::scan_all(const double* query, Nearest& nearest, Interrupt& interrupt) const {
  const LocalKernels& kernels = local_kernels();
  double keys[n_lanes];
  for (std::size_t b = 0; b < n_blocks_; ++b) {
    b += kernels.first_near(measure_, query, blocks_.data() + b * n_terms_ * n_lanes, n_terms_, n_blocks_ - b,
                            nearest.limit(), keys);
    for (std::size_t i = 0; i < n_lanes && b < n_blocks_; ++i)
      if (keys[i] <= nearest.limit() && row_of_[b * n_lanes + i] != no_row)
        nearest.meet({keys[i], row_of_[b * n_lanes + i]});
  }
  interrupt.check();
}

// ---- the search -------------------------------------------------------------------------------------------------------

void NeighbourIndex::search_task(const double* queries, std::span<Nearest> nearest, Interrupt& interrupt) const {
  if (!has_tree() && half_.size() != 0) return scan_all_roughly(queries, nearest, interrupt);
  Visits visits;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    if (has_tree())
      walk(queries + i * n_terms_, nearest[i], visits);
    else
      scan_all(queries + i * n_terms_, nearest[i], interrupt);
  }
  interrupt.check();
}

void NeighbourIndex::nearest(const double* queries, std::size_t n_queries, std::size_t k, Row* rows, double* keys,
                             int n_threads, Interrupt& interrupt) const {
  const std::size_t n_tasks = (n_queries + queries_per_task - 1) / queries_per_task;
  parallel_for(n_tasks, n_threads, [&](std::size_t task, int) {
    const std::size_t first = task * queries_per_task, n = std::min(queries_per_task, n_queries - first);
    std::vector<Nearest> nearest(n, Nearest(k));
    search_task(queries + first * n_terms_, nearest, interrupt);
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<Neighbour>& found = nearest[i].sorted();
      for (std::size_t j = 0; j < k; ++j) {
        rows[(first + i) * k + j] = found[j].row;
        keys[(first + i) * k + j] = found[j].key;
      }
    }
  });
}

}  // namespace spinney
