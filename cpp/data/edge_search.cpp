#include "data/edge_search.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace spinney {

EdgeSearch::EdgeSearch(const std::vector<double>& edges) {
  n_steps_ = static_cast<std::uint32_t>(std::bit_width(edges.size()));
  edges_.assign((std::size_t{1} << n_steps_) - 1, std::numeric_limits<double>::infinity());
  std::copy(edges.begin(), edges.end(), edges_.begin());
}

void EdgeSearch::find(const double* values, std::size_t n, std::uint32_t* out) const {
  by_isa([&](auto isa) { search_edges(isa, values, n, edges_.data(), n_steps_, out); });
}

}  // namespace spinney
