#include "predict/jackknife.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/pool.h"

namespace spinney {

namespace {

constexpr std::size_t n_sampled = 256;       // sample size for locating a quantile
constexpr std::size_t rows_in_cache = 2048;  // rows whose sums stay in first-level cache
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Scratch {
  std::vector<double> sums;  // by byte and value: sum over the trees of its bits
  std::vector<double> low, high, near;
  std::vector<std::pair<double, std::uint32_t>> ranked;
};

// Equivalent to (and faster than) std::nth_element: only scores between two of a sample are sorted.
double nth_smallest(std::span<const double> scores, std::size_t k, std::vector<double>& near) {
  const std::size_t n = scores.size();
  near.resize(n);
  double least = -infinity, most = infinity;
  if (n > 8 * n_sampled) {
    std::vector<double> sample(n_sampled);
    for (std::size_t i = 0; i < n_sampled; ++i) sample[i] = scores[i * n / n_sampled];
    std::sort(sample.begin(), sample.end());
    const double tree_weight = static_cast<double>(k) / static_cast<double>(n), middle = tree_weight * n_sampled;
    const double reach = 2 + 4 * std::sqrt(n_sampled * tree_weight * (1 - tree_weight));
    if (middle - reach >= 0) least = sample[static_cast<std::size_t>(middle - reach)];
    if (middle + reach < n_sampled) most = sample[static_cast<std::size_t>(middle + reach)];
  }
  std::size_t n_below = 0, n_near = 0;
  for (const double score : scores) {
    near[n_near] = score;
    n_below += score < least;
    n_near += score >= least && score <= most;
  }
  if (k < n_below || k >= n_below + n_near) {  // the sample was misleading
    std::copy(scores.begin(), scores.end(), near.begin());
    n_below = 0, n_near = n;
  }
  const auto wanted = near.begin() + static_cast<std::ptrdiff_t>(k - n_below);
  std::nth_element(near.begin(), wanted, near.begin() + static_cast<std::ptrdiff_t>(n_near));
  return *wanted;
}

// The smallest score such that the scores up to it have the needed weight.
double upper_point(const Errors& errors, std::span<const double> scores, Scratch& scratch) {
  if (errors.weight.empty()) {
    const double k = errors.needed - 1;
    if (k >= static_cast<double>(scores.size())) return infinity;
    return nth_smallest(scores, k > 0 ? static_cast<std::size_t>(k) : 0, scratch.near);
  }
  scratch.ranked.resize(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) scratch.ranked[i] = {scores[i], static_cast<std::uint32_t>(i)};
  std::sort(scratch.ranked.begin(), scratch.ranked.end());
  double below = 0;
  for (const auto& [score, row] : scratch.ranked)
    if ((below += errors.weight[row]) >= errors.needed) return score;
  return infinity;
}

void add_up_bytes(const Errors& errors, const double* by_tree, std::vector<double>& sums) {
  sums.assign(errors.n_bytes() * 256, 0.0);
  for (std::size_t b = 0; b < errors.n_bytes(); ++b) {
    double* table = &sums[b * 256];
    const unsigned n_trees = static_cast<unsigned>(std::min<std::size_t>(8, errors.n_trees - b * 8));
    for (unsigned bits = 1; bits < 1u << n_trees; ++bits) {
      const auto last = static_cast<unsigned>(std::bit_width(bits)) - 1;
      table[bits] = table[bits - (1u << last)] + by_tree[b * 8 + last];
    }
  }
}

// Sums over the trees that are out of bag for rows begin … end - 1, into out[0 …].
void sum_unseen(const Errors& errors, const double* sums, std::size_t begin, std::size_t end, double* out) {
  const std::size_t n_rows = errors.error.size(), n_bytes = errors.n_bytes(), n = end - begin;
  const std::uint8_t* bytes = errors.unseen.data() + begin;
  std::fill(out, out + n, 0.0);
  std::size_t b = 0;
  for (; b + 4 <= n_bytes; b += 4, sums += 4 * 256, bytes += 4 * n_rows) {
    const std::uint8_t *p0 = bytes, *p1 = p0 + n_rows, *p2 = p1 + n_rows, *p3 = p2 + n_rows;
    for (std::size_t i = 0; i < n; ++i)
      out[i] += (sums[p0[i]] + sums[256 + p1[i]]) + (sums[512 + p2[i]] + sums[768 + p3[i]]);
  }
  for (; b < n_bytes; ++b, sums += 256, bytes += n_rows)
    for (std::size_t i = 0; i < n; ++i) out[i] += sums[bytes[i]];
}

}  // namespace

void jackknife_plus(const Errors& errors, std::span<const double> by_tree, int n_threads, Interrupt& interrupt,
                    double* out) {
  const std::size_t n_rows = errors.error.size(), n_bytes = errors.n_bytes();
  std::vector<double> tree_weight(n_rows);  // weight of one tree in the mean without the row
  for (std::size_t i = 0; i < n_rows; ++i) {
    int n = 0;
    for (std::size_t b = 0; b < n_bytes; ++b) n += std::popcount(errors.unseen[b * n_rows + i]);
    tree_weight[i] = 1.0 / n;
  }
  std::vector<Scratch> scratches(static_cast<std::size_t>(n_threads));
  parallel_for(by_tree.size() / errors.n_trees, n_threads, [&](std::size_t query, int worker) {
    interrupt.check();
    Scratch& scratch = scratches[static_cast<std::size_t>(worker)];
    add_up_bytes(errors, &by_tree[query * errors.n_trees], scratch.sums);
    scratch.low.resize(n_rows);
    scratch.high.resize(n_rows);
    double* centre = scratch.high.data();
    for (std::size_t begin = 0; begin < n_rows; begin += rows_in_cache)
      sum_unseen(errors, scratch.sums.data(), begin, std::min(begin + rows_in_cache, n_rows), centre + begin);
    for (std::size_t i = 0; i < n_rows; ++i) {
      const double mean = centre[i] * tree_weight[i];
      scratch.low[i] = errors.error[i] - mean;
      scratch.high[i] = errors.error[i] + mean;
    }
    out[query * 2] = -upper_point(errors, scratch.low, scratch);
    out[query * 2 + 1] = upper_point(errors, scratch.high, scratch);
  });
}

}  // namespace spinney
