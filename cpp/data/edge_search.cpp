#include "data/edge_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spinney {

namespace {

std::vector<float> rounded_down(const std::vector<double>& edges) {
  std::vector<float> rounded;
  for (const double edge : edges) {
    const auto near = static_cast<float>(edge);
    const bool is_above = static_cast<double>(near) > edge;
    rounded.push_back(is_above ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near);
  }
  return rounded;
}

const EdgeKernels& edge_kernels() {
  return by_isa([](auto isa) -> const EdgeKernels& { return edge_kernels_of(isa); });
}

}  // namespace

template <class T>
EdgeLevels<T>::EdgeLevels(const std::vector<T>& sorted) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  std::vector<std::vector<T>> levels{sorted};  // from the last to the first
  // An infinity at the end, so that some edge is never below a value.
  levels[0].resize((sorted.size() / width + 1) * width, infinity);
  while (levels.back().size() > width) {
    const std::vector<T>& below = levels.back();
    std::vector<T> above((below.size() / width + width - 1) / width * width, infinity);
    for (std::size_t block = 0; block < below.size() / width; ++block) above[block] = below[(block + 1) * width - 1];
    levels.push_back(std::move(above));
  }
  for (std::size_t i = levels.size(); i-- > 0;) {
    first.push_back(edges.size());
    edges.insert(edges.end(), levels[i].begin(), levels[i].end());
  }
}

template struct EdgeLevels<double>;
template struct EdgeLevels<float>;

EdgeSearch::EdgeSearch(const std::vector<double>& edges) : edges_(edges), short_edges_(rounded_down(edges)) {}

void EdgeSearch::find(const double* values, std::size_t n, std::uint32_t* out) const {
  edge_kernels().search(edges_, values, n, out);
}

void EdgeSearch::find(const float* values, std::size_t n, std::uint32_t* out) const {
  edge_kernels().search_short(short_edges_, values, n, out);
}

}  // namespace spinney
