#include "predict/leaf_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/pool.h"

#if defined(__GNUC__)
#define SPINNEY_PREFETCH(address) __builtin_prefetch(address)
#else
#define SPINNEY_PREFETCH(address) static_cast<void>(address)
#endif

namespace spinney {

namespace {
constexpr std::size_t block_queries = 64;
constexpr double rounding = 1e-10;  // a level counts as reached if it is missed by less
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
}  // namespace

void LeafRows::add_tree(std::span<const std::uint32_t> leaf, std::span<const double> amount, std::size_t n_nodes) {
  const std::size_t first = first_node_.back(), begin = row_.size();
  std::vector<double> total(n_nodes, 0.0);
  std::vector<std::uint64_t> next(n_nodes + 1, 0);
  for (std::size_t r = 0; r < n_rows_; ++r) {
    if (!(amount[r] > 0)) continue;
    total[leaf[r]] += amount[r];
    ++next[leaf[r] + 1];
  }
  start_.resize(first + n_nodes + 1);
  for (std::size_t node = 0; node < n_nodes; ++node) {
    next[node + 1] += next[node];
    start_[first + node + 1] = begin + next[node + 1];
  }
  row_.resize(begin + next[n_nodes]);
  weight_in_leaf_.resize(row_.size());
  for (std::size_t r = 0; r < n_rows_; ++r) {
    if (!(amount[r] > 0)) continue;
    const std::size_t entry = begin + next[leaf[r]]++;
    row_[entry] = static_cast<std::uint32_t>(r);
    weight_in_leaf_[entry] = amount[r] / total[leaf[r]];
  }
  first_node_.push_back(first + n_nodes);
}

// The entries of a query's leaves, tree by tree. They are located one query ahead, so that fetching overlaps with
// summing: leaves are scattered, and waiting for each took twice as long as everything else.
struct LeafRows::Found {
  std::vector<std::uint64_t> begin, end;
  std::uint32_t n_used = 0;
};

// Sums of weights by position, and a bit for each non-zero position, so that positions are visited in order without
// sorting.
struct LeafRows::Scratch {
  std::vector<double> sum;
  std::vector<std::uint64_t> touched;
  Found now, next;
  std::uint32_t n_used = 0;

  // Calls body(position, sum) in ascending order of the positions, and clears them.
  template <class Body>
  void drain(Body&& body) {
    for (std::size_t w = 0; w < touched.size(); ++w) {
      for (std::uint64_t bits = touched[w]; bits != 0; bits &= bits - 1) {
        const std::size_t place = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        body(place, sum[place]);
        sum[place] = 0;
      }
      touched[w] = 0;
    }
  }
};

void LeafRows::find(const std::uint32_t* leaf, Found& found) const {
  const std::size_t width = n_trees();
  found.begin.clear();
  found.end.clear();
  found.n_used = 0;
  for (std::size_t t = 0; t < width; ++t) {
    if (leaf[t] == left_out) continue;
    const std::uint64_t* start = start_.data() + first_node_[t] + leaf[t];
    found.begin.push_back(start[0]);
    found.end.push_back(start[1]);
    found.n_used += start[0] < start[1];
  }
  for (const std::uint64_t begin : found.begin) {
    SPINNEY_PREFETCH(row_.data() + begin);
    SPINNEY_PREFETCH(weight_in_leaf_.data() + begin);
  }
}

// Calls body(query, scratch) after the weights of each query are summed; an empty `place` keeps the row order.
template <class Body>
void LeafRows::for_each_query(std::span<const std::uint32_t> leaf, std::span<const std::uint32_t> place, int n_threads,
                              Interrupt& interrupt, Body&& body) const {
  const std::size_t width = n_trees(), n_queries = width == 0 ? 0 : leaf.size() / width;
  const std::size_t n_tasks = (n_queries + block_queries - 1) / block_queries;
  std::vector<Scratch> by_worker(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_tasks, n_threads, [&](std::size_t task, int worker) {
    interrupt.check();
    Scratch& scratch = by_worker[static_cast<std::size_t>(worker)];
    if (scratch.sum.empty()) {
      scratch.sum.resize(n_rows_, 0.0);
      scratch.touched.resize((n_rows_ + 63) / 64, 0);
    }
    const std::size_t first = task * block_queries, last = std::min(n_queries, first + block_queries);
    find(leaf.data() + first * width, scratch.next);
    for (std::size_t q = first; q < last; ++q) {
      std::swap(scratch.now, scratch.next);
      if (q + 1 < last) find(leaf.data() + (q + 1) * width, scratch.next);
      scratch.n_used = scratch.now.n_used;
      for (std::size_t i = 0; i < scratch.now.begin.size(); ++i) {
        for (std::uint64_t e = scratch.now.begin[i]; e < scratch.now.end[i]; ++e) {
          const std::uint32_t p = place.empty() ? row_[e] : place[row_[e]];
          scratch.sum[p] += weight_in_leaf_[e];
          scratch.touched[p / 64] |= std::uint64_t{1} << (p % 64);
        }
      }
      body(q, scratch);
    }
  });
}

void LeafRows::quantiles(std::span<const std::uint32_t> leaf, std::span<const std::uint32_t> place,
                         std::span<const double> target, std::span<const double> levels, int n_threads,
                         Interrupt& interrupt, double* out) const {
  const std::size_t n_levels = levels.size();
  for_each_query(leaf, place, n_threads, interrupt, [&](std::size_t query, Scratch& scratch) {
    double* found = out + query * n_levels;
    std::size_t k = 0;
    double below = 0, last = nothing;
    scratch.drain([&](std::size_t p, double row_weight) {
      below += row_weight;
      last = target[p];
      while (k < n_levels && below >= (levels[k] - rounding) * scratch.n_used) found[k++] = last;
    });
    std::fill(found + k, found + n_levels, last);
  });
}

LeafRows::Weights LeafRows::weights(std::span<const std::uint32_t> leaf, int n_threads, Interrupt& interrupt) const {
  const std::size_t n_queries = n_trees() == 0 ? 0 : leaf.size() / n_trees();
  std::vector<Weights> blocks((n_queries + block_queries - 1) / block_queries);
  for_each_query(leaf, {}, n_threads, interrupt, [&](std::size_t query, Scratch& scratch) {
    Weights& block = blocks[query / block_queries];
    scratch.drain([&](std::size_t row, double row_weight) {
      block.row.push_back(static_cast<std::uint32_t>(row));
      block.weight.push_back(row_weight / scratch.n_used);
    });
    block.start.push_back(block.row.size());
  });
  Weights all;
  all.start.push_back(0);
  for (Weights& block : blocks) {
    const std::size_t before = all.row.size();
    for (const std::uint64_t end : block.start) all.start.push_back(before + end);
    all.row.insert(all.row.end(), block.row.begin(), block.row.end());
    all.weight.insert(all.weight.end(), block.weight.begin(), block.weight.end());
    block = {};
  }
  return all;
}

void LeafRows::effective_rows(std::span<const std::uint32_t> leaf, int n_threads, Interrupt& interrupt,
                              double* out) const {
  for_each_query(leaf, {}, n_threads, interrupt, [&](std::size_t query, Scratch& scratch) {
    double squares = 0;
    scratch.drain([&](std::size_t, double row_weight) { squares += row_weight * row_weight; });
    const auto n = static_cast<double>(scratch.n_used);
    out[query] = squares > 0 ? n * n / squares : nothing;
  });
}

}  // namespace spinney
