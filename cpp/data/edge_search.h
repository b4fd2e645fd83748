// Positions of values among sorted edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cpu.h"

namespace spinney {

// Sorted edges in blocks of 16, padded with infinities; above them, blocks of the last edge of each block below, up to
// a single block. A value is compared with one block of each level at once.
template <class T>
struct EdgeLevels {
  static constexpr std::size_t width = 16;

  explicit EdgeLevels(const std::vector<T>& sorted);

  std::vector<T> edges;            // the single block first
  std::vector<std::size_t> first;  // first block of each level
};

class EdgeSearch {
 public:
  explicit EdgeSearch(const std::vector<double>& edges);

  // out[i] = number of edges below values[i]; 0 for NaN.
  void find(const double* values, std::size_t n, std::uint32_t* out) const;
  void find(const float* values, std::size_t n, std::uint32_t* out) const;

 private:
  EdgeLevels<double> edges_;
  EdgeLevels<float>
      short_edges_;  // the largest floats that are not above the edges, so that the same floats are above them
};

struct EdgeKernels {
  void (*search)(const EdgeLevels<double>& levels, const double* values, std::size_t n, std::uint32_t* out);
  void (*search_short)(const EdgeLevels<float>& levels, const float* values, std::size_t n, std::uint32_t* out);
};

const EdgeKernels& edge_kernels_of(OfIsa<Isa::base>);
const EdgeKernels& edge_kernels_of(OfIsa<Isa::avx2>);
const EdgeKernels& edge_kernels_of(OfIsa<Isa::avx512>);

}  // namespace spinney
