#include "data/read.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/pairwise.h"
#include "base/pool.h"

namespace spinney {

std::size_t first_stored(const Column& c, Row row) {
  const auto is_before = [&](std::int32_t stored) { return static_cast<Row>(stored) < row; };
  return static_cast<std::size_t>(std::partition_point(c.sparse_rows, c.sparse_rows + c.n_sparse, is_before) -
                                  c.sparse_rows);
}

// Ascending rows are merged with the stored entries; others are looked up one by one.
template <class T>
static void read_sparse(const Column& c, const Row* rows, std::size_t n, double* values) {
  const auto stored_row = [&](std::size_t at) { return static_cast<Row>(c.sparse_rows[at]); };
  std::size_t n_in_turn = 0;
  while (n_in_turn < n && rows[n_in_turn] == rows[0] + n_in_turn) ++n_in_turn;
  std::fill(values, values + n, 0.0);
  if (n == 0 || c.n_sparse == 0) return;
  if (n_in_turn == n) {
    for (std::size_t at = first_stored(c, rows[0]); at < c.n_sparse && stored_row(at) <= rows[n - 1]; ++at)
      values[stored_row(at) - rows[0]] = static_cast<double>(load<T>(c, at));
    return;
  }
  const bool ascend = std::is_sorted(rows, rows + n);
  std::size_t at = first_stored(c, rows[0]);
  for (std::size_t i = 0; i < n; ++i) {
    if (!ascend) at = first_stored(c, rows[i]);
    while (at < c.n_sparse && stored_row(at) < rows[i]) ++at;
    if (at < c.n_sparse && stored_row(at) == rows[i]) values[i] = static_cast<double>(load<T>(c, at));
  }
}

void read_values(const Column& c, const Row* rows, std::size_t n, double* values) {
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  with_type(c.dtype, [&]<class T>(const T*) {
    if (c.is_sparse()) {
      read_sparse<T>(c, rows, n, values);
    } else if (c.mask != nullptr) {
      for (std::size_t i = 0; i < n; ++i)
        values[i] = is_masked(c, rows[i]) ? missing : static_cast<double>(load<T>(c, rows[i]));
    } else if (c.is_category()) {
      for (std::size_t i = 0; i < n; ++i) {
        const T code = load<T>(c, rows[i]);
        values[i] = code < T{0} ? missing : static_cast<double>(code);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(load<T>(c, rows[i]));
    }
  });
}

// The first number of the first row, if the columns are neighbours in a matrix of doubles; else null.
static const double* matrix_of(const Table& table, const std::int32_t* features, std::size_t n_features) {
  const auto at = [&](std::size_t t) -> const Column& { return table.columns[static_cast<std::size_t>(features[t])]; };
  if (n_features == 0 || at(0).stride % 8 != 0) return nullptr;
  const Column& first = at(0);
  for (std::size_t t = 0; t < n_features; ++t) {
    const Column& c = at(t);
    const bool is_plain = c.dtype == DType::f64 && c.mask == nullptr && !c.is_category() && !c.is_sparse();
    if (!is_plain || c.data != first.data + t * sizeof(double) || c.stride != first.stride) return nullptr;
  }
  return reinterpret_cast<const double*>(first.data);
}

// Copies numbers and returns the sum of their squares, in a fixed order of additions.
static double copy_run(const double* from, std::ptrdiff_t stride, std::size_t n, double* out) {
  constexpr std::size_t lanes = 8;
  if (stride == 1)
    std::copy_n(from, n, out);
  else
    for (std::size_t i = 0; i < n; ++i) out[i] = from[static_cast<std::ptrdiff_t>(i) * stride];
  double sums[lanes] = {}, rest = 0;
  const std::size_t whole = n / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t j = 0; j < lanes; ++j) sums[j] += out[i + j] * out[i + j];
  for (std::size_t i = whole; i < n; ++i) rest += out[i] * out[i];
  return pairwise_sum(sums) + rest;
}

double copy_with_squares(const Matrix& matrix, int n_threads, Interrupt& interrupt, double* out) {
  constexpr std::size_t per_task = 65'536, per_run = 1024;  // numbers; those of a run stay in the cache
  const std::size_t n_columns = matrix.n_columns,
                    rows_per_task = std::max<std::size_t>(1, per_task / std::max<std::size_t>(1, n_columns));
  const std::size_t n_tasks = (matrix.n_rows + rows_per_task - 1) / rows_per_task;
  std::vector<double> squares(n_tasks);
  const auto estimated_ns = static_cast<double>(matrix.n_rows * n_columns);
  parallel_for_if_worth(estimated_ns, n_tasks, n_threads, [&](std::size_t task, int) {
    interrupt.check();
    const std::size_t end = std::min(matrix.n_rows, (task + 1) * rows_per_task);
    for (std::size_t i = task * rows_per_task; i < end; ++i) {
      const double* row = matrix.first + static_cast<std::ptrdiff_t>(i) * matrix.row_stride;
      for (std::size_t j = 0; j < n_columns; j += per_run)
        squares[task] += copy_run(row + static_cast<std::ptrdiff_t>(j) * matrix.column_stride, matrix.column_stride,
                                  std::min(per_run, n_columns - j), out + i * n_columns + j);
    }
  });
  return pairwise_sum(squares);
}

// Copies a matrix whose rows are `stride` numbers apart, or its transpose, in tiles that stay in the cache.
static void copy_matrix(const double* from, std::ptrdiff_t stride, std::size_t n_rows, std::size_t n_columns,
                        bool by_row, double* out) {
  const auto row = [&](std::size_t i) { return from + static_cast<std::ptrdiff_t>(i) * stride; };
  if (by_row) {
    for (std::size_t i = 0; i < n_rows; ++i) std::copy_n(row(i), n_columns, out + i * n_columns);
    return;
  }
  constexpr std::size_t side = 8;  // numbers of a cache line
  for (std::size_t begin = 0; begin < n_columns; begin += side) {
    const std::size_t end = std::min(begin + side, n_columns);
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t t = begin; t < end; ++t) out[t * n_rows + i] = row(i)[t];
  }
}

void read_block(const Table& table, const std::int32_t* features, std::size_t n_features, bool by_row, double* out) {
  if (const double* matrix = matrix_of(table, features, n_features); matrix != nullptr) {
    const std::ptrdiff_t stride = table.columns[static_cast<std::size_t>(features[0])].stride / 8;
    return copy_matrix(matrix, stride, table.n_rows, n_features, by_row, out);
  }
  constexpr std::size_t side = 64;  // rows and columns of a tile, whose values stay in the cache
  Row rows[side];
  double values[side];
  for (std::size_t begin = 0; begin < table.n_rows; begin += side) {
    const std::size_t n = std::min(side, table.n_rows - begin);
    for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(begin + i);
    for (std::size_t t = 0; t < n_features; ++t) {
      const Column& column = table.columns[static_cast<std::size_t>(features[t])];
      if (!by_row) {
        read_values(column, rows, n, out + t * table.n_rows + begin);
        continue;
      }
      read_values(column, rows, n, values);
      for (std::size_t i = 0; i < n; ++i) out[(begin + i) * n_features + t] = values[i];
    }
  }
}

}  // namespace spinney
