// The kernel, compiled once per instruction set; see base/cpu.h.

#include "base/vectorise.h"
#include "data/edge_search.h"

namespace spinney {

void search_edges(OfIsa<Isa::SPINNEY_ISA>, const double* values, std::size_t n, const double* edges,
                  std::uint32_t n_steps, std::uint32_t* out) {
  constexpr std::size_t lanes = 32;
  for (std::size_t begin = 0; begin < n; begin += lanes) {
    double v[lanes];
    std::int64_t at[lanes];
    const std::size_t m = n - begin < lanes ? n - begin : lanes;
    for (std::size_t i = 0; i < lanes; ++i) v[i] = values[begin + (i < m ? i : m - 1)];
    for (std::size_t i = 0; i < lanes; ++i) at[i] = 0;
    for (std::uint32_t s = n_steps; s-- > 0;) {
      const std::int64_t step = std::int64_t{1} << s;
      SPINNEY_IVDEP
      for (std::size_t i = 0; i < lanes; ++i) at[i] += edges[at[i] + step - 1] < v[i] ? step : 0;
    }
    for (std::size_t i = 0; i < m; ++i) out[begin + i] = static_cast<std::uint32_t>(at[i]);
  }
}

}  // namespace spinney
