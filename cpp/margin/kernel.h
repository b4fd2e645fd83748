// Kernels: similarities of two rows of terms.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace spinney {

enum class KernelKind { linear, polynomial, rbf, sigmoid };

// linear u·v; polynomial (gamma u·v + coef0)^degree; rbf exp(-gamma |u - v|^2); sigmoid tanh(gamma u·v + coef0).
struct Kernel {
  KernelKind kind = KernelKind::linear;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;
};

inline constexpr std::size_t tile_rows = 8;  // rows that are interleaved term by term

inline constexpr std::size_t padded(std::size_t n) { return (n + tile_rows - 1) / tile_rows * tile_rows; }

// Kernel values between the query rows and some tiles of other rows.
template <class T>
struct KernelBlock {
  const Kernel* kernel;
  const double* const* queries;  // the terms of each query
  const double* query_squares;   // u·u of each query
  std::size_t n_queries, n_terms;
  const double* tiles;    // n_tiles times n_terms times tile_rows
  const double* squares;  // of the tiles' rows
  std::size_t n_tiles;
  T* const* out;  // n_tiles times tile_rows values for each query
};

// A small dual problem with its kernel matrix; see dual.h for the notation. Arrays are padded: a padding row may move
// neither up nor down. Steps are between rows on the same side of `split`.
template <class T>
struct SmallDual {
  std::size_t n, stride;  // stride: padded n
  std::size_t split;      // a multiple of tile_rows; stride: all rows are on one side
  const T* matrix;        // n rows of stride values
  const double *diagonal, *lowest, *highest;
  double *beta, *residual;  // residual: z - K beta
  double insensitive, tolerance;
  double *up, *down;  // scratch
  std::size_t most_steps;
};

struct SmallDualEnd {
  std::size_t n_steps;
  double violation;
};

// Functions that are compiled once per instruction set.
struct MarginKernels {
  void (*block_short)(const KernelBlock<float>& block);
  void (*block_long)(const KernelBlock<double>& block);
  // to[i] -= factors[0] * rows[0][i] + …, one row after the other; n is padded
  void (*subtract_short)(const float* const* rows, const double* factors, std::size_t n_rows, std::size_t n,
                         double* to);
  void (*subtract_long)(const double* const* rows, const double* factors, std::size_t n_rows, std::size_t n,
                        double* to);
  SmallDualEnd (*solve_short)(const SmallDual<float>& problem);
  SmallDualEnd (*solve_long)(const SmallDual<double>& problem);
  double (*dot)(const double* one, const double* other, std::size_t n);
  // The four dot products of two vectors with two others.
  void (*four_dots)(const double* const* one, const double* const* other, std::size_t n, double* out);
};

const MarginKernels& margin_kernels();
const MarginKernels& margin_kernels_of(OfIsa<Isa::base>);
const MarginKernels& margin_kernels_of(OfIsa<Isa::avx2>);
const MarginKernels& margin_kernels_of(OfIsa<Isa::avx512>);

template <class T>
inline auto block_of(const MarginKernels& k) {
  if constexpr (sizeof(T) == 4)
    return k.block_short;
  else
    return k.block_long;
}
template <class T>
inline auto subtract_of(const MarginKernels& k) {
  if constexpr (sizeof(T) == 4)
    return k.subtract_short;
  else
    return k.subtract_long;
}
template <class T>
inline auto solve_of(const MarginKernels& k) {
  if constexpr (sizeof(T) == 4)
    return k.solve_short;
  else
    return k.solve_long;
}

}  // namespace spinney
