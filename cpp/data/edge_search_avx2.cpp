#if defined(__x86_64__)
#include <cstddef>
#include <cstdint>

namespace spinney::avx2 {

#include "data/edge_search_body.h"

void search_edges(const double* values, std::size_t n, const double* edges, std::uint32_t n_steps, std::uint32_t* out);
void search_edges(const double* values, std::size_t n, const double* edges, std::uint32_t n_steps, std::uint32_t* out) {
  search(values, n, edges, n_steps, out);
}

}  // namespace spinney::avx2
#endif
