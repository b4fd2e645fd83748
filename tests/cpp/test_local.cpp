// Nearest neighbours, on every instruction set, compared with plain loops over all rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "base/interrupt.h"
#include "check.h"
#include "every_isa.h"
#include "local/index.h"
#include "local/kernels.h"

using namespace spinney;

namespace {

constexpr std::size_t n_lanes = LocalKernels::n_lanes;

std::vector<double> numbers(std::size_t n, std::mt19937_64& g, bool has_ties) {
  std::normal_distribution<double> normal;
  std::vector<double> found(n);
  for (double& x : found) x = has_ties ? std::round(2 * normal(g)) : normal(g);
  return found;
}

double plain_key(Metric metric, const double* a, const double* b, std::size_t n_terms, std::size_t stride) {
  double sum = 0, n_common = 0;
  for (std::size_t t = 0; t < n_terms; ++t) {
    const double apart = a[t] - b[t * stride];
    if (metric == Metric::squares) sum += apart * apart;
    if (metric == Metric::absolute) sum += std::abs(apart);
    if (metric == Metric::largest) sum = std::max(sum, std::abs(apart));
    if (metric == Metric::differing) sum += a[t] == b[t * stride] ? 0.0 : 1.0;
    if (metric == Metric::gower && apart == apart) sum += std::min(1.0, std::abs(apart)), n_common += 1;
  }
  if (metric != Metric::gower) return sum;
  return n_common == 0 ? 1.0 : sum / n_common;
}

}  // namespace

TEST(keys_are_bit_identical_on_every_instruction_set) {
  std::mt19937_64 g(1);
  const auto all = of_every_isa([](auto isa) { return &local_kernels_of(isa); });
  for (const std::size_t n_terms : {1, 3, 12, 20})
    for (const Metric metric : {Metric::squares, Metric::absolute, Metric::largest, Metric::differing, Metric::gower}) {
      std::vector<double> block = numbers(n_terms * n_lanes, g, metric == Metric::differing),
                          query = numbers(n_terms, g, metric == Metric::differing);
      if (metric == Metric::gower) block[3] = query[0] = std::numeric_limits<double>::quiet_NaN();
      for (const LocalKernels* kernels : all) {
        double keys[n_lanes];
        const double most = std::numeric_limits<double>::infinity();
        CHECK_EQ(kernels->first_near({metric, 2}, query.data(), block.data(), n_terms, 1, most, keys), 0u);
        for (std::size_t i = 0; i < n_lanes; ++i)
          CHECK_EQ(keys[i], plain_key(metric, query.data(), block.data() + i, n_terms, n_lanes));
      }
    }
  for (const LocalKernels* kernels : all) {  // powers have no reference implementation here: all agree with the first
    const std::vector<double> block = numbers(5 * n_lanes, g, false), query = numbers(5, g, false);
    double first[n_lanes], other[n_lanes];
    const double most = std::numeric_limits<double>::infinity();
    all[0]->first_near({Metric::powers, 2.5}, query.data(), block.data(), 5, 1, most, first);
    kernels->first_near({Metric::powers, 2.5}, query.data(), block.data(), 5, 1, most, other);
    CHECK(std::equal(first, first + n_lanes, other));
  }
}

TEST(blocks_without_a_neighbour_are_skipped) {
  std::mt19937_64 g(2);
  const std::vector<double> blocks = numbers(7 * 4 * n_lanes, g, false), query(4, 50.0);
  for (const LocalKernels* kernels : of_every_isa([](auto isa) { return &local_kernels_of(isa); })) {
    double keys[n_lanes];
    CHECK_EQ(kernels->first_near({}, query.data(), blocks.data(), 4, 7, 10.0, keys), 7u);
    std::vector<double> near = blocks;
    near[5 * 4 * n_lanes + 2] = near[5 * 4 * n_lanes + n_lanes + 2] = near[5 * 4 * n_lanes + 2 * n_lanes + 2] =
        near[5 * 4 * n_lanes + 3 * n_lanes + 2] = 51.0;
    CHECK_EQ(kernels->first_near({}, query.data(), near.data(), 4, 7, 10.0, keys), 5u);
    CHECK_EQ(keys[2], 4.0);
  }
}

TEST(all_searches_find_the_same_rows_on_any_number_of_threads) {
  std::mt19937_64 g(3);
  Interrupt interrupt;
  for (const std::size_t n_rows : {1, 15, 16, 17, 500, 3000})
    for (const std::size_t n_terms : {1, 3, 12})
      for (const bool has_ties : {false, true}) {
        const std::vector<double> rows = numbers(n_rows * n_terms, g, has_ties),
                                  queries = numbers(37 * n_terms, g, has_ties);
        const std::size_t k = std::min<std::size_t>(n_rows, 9);
        for (const Metric metric : {Metric::squares, Metric::absolute, Metric::largest}) {
          std::vector<Row> expected;
          for (std::size_t q = 0; q < 37; ++q) {
            std::vector<Neighbour> all;
            for (std::size_t i = 0; i < n_rows; ++i)
              all.push_back(
                  {plain_key(metric, &queries[q * n_terms], &rows[i * n_terms], n_terms, 1), static_cast<Row>(i)});
            std::sort(all.begin(), all.end());
            for (std::size_t j = 0; j < k; ++j) expected.push_back(all[j].row);
          }
          for (const Search search : {Search::all_rows, Search::tree, Search::cheaper})
            for (const int n_threads : {1, 3}) {
              const NeighbourIndex index(rows, n_rows, n_terms, {metric, 2}, search, k, n_threads, interrupt);
              std::vector<Row> found(37 * k);
              std::vector<double> keys(37 * k);
              index.nearest(queries.data(), 37, k, found.data(), keys.data(), n_threads, interrupt);
              CHECK(found == expected);
            }
        }
      }
}
