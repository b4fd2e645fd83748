// Where values lie among sorted edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cpu.h"

namespace spinney {

// Edges, ascending, padded with infinities so that every search takes as many steps.
class EdgeSearch {
 public:
  explicit EdgeSearch(const std::vector<double>& edges);

  // out[i] = number of edges below values[i]; 0 for NaN.
  void find(const double* values, std::size_t n, std::uint32_t* out) const;

 private:
  std::vector<double> edges_;
  std::uint32_t n_steps_ = 0;
};

// The search itself: n_steps halvings of 2^n_steps - 1 edges.
void search_edges(OfIsa<Isa::base>, const double* values, std::size_t n, const double* edges, std::uint32_t n_steps,
                  std::uint32_t* out);
void search_edges(OfIsa<Isa::avx2>, const double* values, std::size_t n, const double* edges, std::uint32_t n_steps,
                  std::uint32_t* out);
void search_edges(OfIsa<Isa::avx512>, const double* values, std::size_t n, const double* edges, std::uint32_t n_steps,
                  std::uint32_t* out);

}  // namespace spinney
