#include "data/edge_search.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/cpu.h"

namespace spinney {

namespace base {
namespace {
#include "data/edge_search_body.h"
}
}  // namespace base
namespace avx2 {
void search_edges(const double* values, std::size_t n, const double* edges, std::uint32_t n_steps, std::uint32_t* out);
}
namespace avx512 {
void search_edges(const double* values, std::size_t n, const double* edges, std::uint32_t n_steps, std::uint32_t* out);
}

EdgeSearch::EdgeSearch(const std::vector<double>& edges) {
  n_steps_ = static_cast<std::uint32_t>(std::bit_width(edges.size()));
  edges_.assign((std::size_t{1} << n_steps_) - 1, std::numeric_limits<double>::infinity());
  std::copy(edges.begin(), edges.end(), edges_.begin());
}

void EdgeSearch::find(const double* values, std::size_t n, std::uint32_t* out) const {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::search_edges(values, n, edges_.data(), n_steps_, out);
    case Isa::avx2:
      return avx2::search_edges(values, n, edges_.data(), n_steps_, out);
    case Isa::base:
      break;
  }
#endif
  base::search(values, n, edges_.data(), n_steps_, out);
}

}  // namespace spinney
