#include "margin/rows.h"

#include <algorithm>

namespace spinney {

KernelRows::KernelRows(const double* terms, std::size_t n_rows, std::size_t n_terms, const Kernel& kernel)
    : n_rows_(n_rows), n_terms_(n_terms), by_row_(n_rows * n_terms), squares_(n_rows), kernel_(kernel) {
  for (std::size_t k = 0; k < n_terms; ++k)
    for (std::size_t i = 0; i < n_rows; ++i) by_row_[i * n_terms + k] = terms[k * n_rows + i];
  for (std::size_t i = 0; i < n_rows; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < n_terms; ++k) sum += by_row_[i * n_terms + k] * by_row_[i * n_terms + k];
    squares_[i] = sum;
  }
}

KernelRows::KernelRows(const double* matrix, std::size_t n_rows) : n_rows_(n_rows), matrix_(matrix) {}

double KernelRows::diagonal(std::size_t row) const {
  if (matrix_ != nullptr) return matrix_[row * n_rows_ + row];
  if (kernel_.kind == KernelKind::rbf) return 1.0;
  const std::uint32_t rows[] = {static_cast<std::uint32_t>(row)};
  double values[tile_rows], *out = values;
  fill<double>(rows, columns(rows), 0, 1, &out);
  return values[0];
}

KernelColumns KernelRows::columns(std::span<const std::uint32_t> rows) const {
  KernelColumns found;
  found.n = rows.size();
  if (matrix_ != nullptr) {
    found.rows.assign(rows.begin(), rows.end());
    return found;
  }
  found.tiles.assign(padded(rows.size()) * n_terms_, 0.0);
  found.squares.assign(padded(rows.size()), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* from = by_row_.data() + rows[i] * n_terms_;
    double* to = found.tiles.data() + i / tile_rows * n_terms_ * tile_rows + i % tile_rows;
    for (std::size_t k = 0; k < n_terms_; ++k) to[k * tile_rows] = from[k];
    found.squares[i] = squares_[rows[i]];
  }
  return found;
}

template <class T>
void KernelRows::fill(std::span<const std::uint32_t> rows, const KernelColumns& columns, std::size_t first_tile,
                      std::size_t n_tiles, T* const* out) const {
  if (matrix_ != nullptr) {
    const std::size_t first = first_tile * tile_rows, last = std::min(columns.n, first + n_tiles * tile_rows);
    for (std::size_t q = 0; q < rows.size(); ++q) {
      const double* from = matrix_ + rows[q] * n_rows_;
      for (std::size_t i = first; i < last; ++i) out[q][i - first] = static_cast<T>(from[columns.rows[i]]);
      std::fill(out[q] + (last - first), out[q] + n_tiles * tile_rows, T{0});
    }
    return;
  }
  constexpr std::size_t most = 64;
  const double* queries[most];
  double squares[most];
  const auto block = block_of<T>(margin_kernels());
  for (std::size_t q = 0; q < rows.size(); q += most) {
    const std::size_t n = std::min(most, rows.size() - q);
    for (std::size_t i = 0; i < n; ++i) {
      queries[i] = by_row_.data() + rows[q + i] * n_terms_;
      squares[i] = squares_[rows[q + i]];
    }
    block({&kernel_, queries, squares, n, n_terms_, columns.tiles.data() + first_tile * n_terms_ * tile_rows,
           columns.squares.data() + first_tile * tile_rows, n_tiles, out + q});
  }
}

template void KernelRows::fill<float>(std::span<const std::uint32_t>, const KernelColumns&, std::size_t, std::size_t,
                                      float* const*) const;
template void KernelRows::fill<double>(std::span<const std::uint32_t>, const KernelColumns&, std::size_t, std::size_t,
                                       double* const*) const;

}  // namespace spinney
