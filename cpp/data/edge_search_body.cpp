// Kernels, compiled once per instruction set; see base/cpu.h.

#include "base/lanes.h"
#include "data/edge_search.h"

namespace spinney {
namespace {

// The number of edges of a block below a value.
template <class T>
SPINNEY_INLINE std::uint32_t count_below(const T* block, T value) {
  constexpr std::size_t width = 16;
  return count_of(load<width>(block) < every<width>(value));
}

// n_levels 0: as many levels as `first` has.
template <std::size_t n_levels, class T>
SPINNEY_INLINE void search_levels(const T* edges, const std::size_t* first, std::size_t n_first, const T* values,
                                  std::size_t n, std::uint32_t* out) {
  constexpr std::size_t width = 16;
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t at = 0;
    for (std::size_t level = 0; level < (n_levels == 0 ? n_first : n_levels); ++level)
      at = width * at + count_below(edges + first[level] + width * at, values[i]);
    out[i] = static_cast<std::uint32_t>(at);
  }
}

template <class T>
void search(const EdgeLevels<T>& levels, const T* values, std::size_t n, std::uint32_t* out) {
  const std::size_t *first = levels.first.data(), n_levels = levels.first.size();
  if (n_levels == 1) return search_levels<1>(levels.edges.data(), first, n_levels, values, n, out);
  if (n_levels == 2) return search_levels<2>(levels.edges.data(), first, n_levels, values, n, out);
  search_levels<0>(levels.edges.data(), first, n_levels, values, n, out);
}

}  // namespace

const EdgeKernels& edge_kernels_of(OfIsa<Isa::SPINNEY_ISA>) {
  static constexpr EdgeKernels table{.search = search<double>, .search_short = search<float>};
  return table;
}

}  // namespace spinney
