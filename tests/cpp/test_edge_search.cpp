// Positions of values among edges, on every instruction set, compared with a plain count.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "data/edge_search.h"
#include "every_isa.h"

using namespace spinney;

namespace {

template <class T>
std::vector<std::uint32_t> counted(const std::vector<double>& edges, const std::vector<T>& values) {
  std::vector<std::uint32_t> counts;
  for (const T v : values) {
    std::uint32_t count = 0;
    for (const double edge : edges) count += edge < static_cast<double>(v);
    counts.push_back(count);
  }
  return counts;
}

// Edges, their neighbours, numbers in between, and NaN.
template <class T>
std::vector<T> values_for(const std::vector<double>& edges, std::mt19937_64& g) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
  std::vector<T> values{0, T(-0.0), infinity, -infinity, most, -most, std::numeric_limits<T>::quiet_NaN()};
  std::normal_distribution<T> normal;
  for (int i = 0; i < 50; ++i) values.push_back(normal(g));
  for (const double edge : edges)
    if (g() % 8 == 0 || edges.size() < 64)
      for (const T v : {static_cast<T>(edge), std::nextafter(static_cast<T>(edge), infinity),
                        std::nextafter(static_cast<T>(edge), -infinity)})
        values.push_back(v);
  return values;
}

std::vector<double> make_edges(std::size_t n, std::mt19937_64& g) {
  std::normal_distribution<double> normal;
  std::vector<double> edges(n);
  for (double& e : edges) e = g() % 2 ? normal(g) : static_cast<double>(static_cast<float>(normal(g)));
  if (n > 4) edges[1] = 1e300, edges[2] = -1e300;
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

}  // namespace

TEST(the_edges_below_a_value_are_counted) {
  std::mt19937_64 g(5);
  for (const std::size_t n : {0, 1, 2, 14, 15, 16, 17, 31, 100, 254, 255, 256, 257, 3000, 4095, 4096, 5000}) {
    const std::vector<double> edges = make_edges(n, g);
    const auto doubles = values_for<double>(edges, g);
    const auto floats = values_for<float>(edges, g);
    const auto expected = counted(edges, doubles), expected_short = counted(edges, floats);
    std::vector<float> rounded;
    for (const double e : edges) {
      auto f = static_cast<float>(e);
      if (static_cast<double>(f) > e) f = std::nextafter(f, -std::numeric_limits<float>::infinity());
      rounded.push_back(f);
    }
    const EdgeLevels<double> levels(edges);
    const EdgeLevels<float> short_levels(rounded);
    for (const EdgeKernels* kernels : of_every_isa([](auto isa) { return &edge_kernels_of(isa); })) {
      std::vector<std::uint32_t> got(doubles.size()), got_short(floats.size());
      kernels->search(levels, doubles.data(), doubles.size(), got.data());
      kernels->search_short(short_levels, floats.data(), floats.size(), got_short.data());
      CHECK(got == expected);
      CHECK(got_short == expected_short);
    }
    std::vector<std::uint32_t> got(floats.size());
    EdgeSearch(edges).find(floats.data(), floats.size(), got.data());
    CHECK(got == expected_short);
  }
}
