// Reads values from columns: one switch on the type per range of rows, never per value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/interrupt.h"
#include "data/column.h"

namespace spinney {

// Calls f with a null pointer of the column's element type: `with_type(t, [&]<class T>(const T*) { … })`.
template <class F>
decltype(auto) with_type(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(static_cast<const float*>(nullptr));
    case DType::i8:
      return f(static_cast<const std::int8_t*>(nullptr));
    case DType::i16:
      return f(static_cast<const std::int16_t*>(nullptr));
    case DType::i32:
      return f(static_cast<const std::int32_t*>(nullptr));
    case DType::i64:
      return f(static_cast<const std::int64_t*>(nullptr));
    case DType::u8:
      return f(static_cast<const std::uint8_t*>(nullptr));
    case DType::u16:
      return f(static_cast<const std::uint16_t*>(nullptr));
    case DType::u32:
      return f(static_cast<const std::uint32_t*>(nullptr));
    case DType::u64:
      return f(static_cast<const std::uint64_t*>(nullptr));
    case DType::f64:
      break;
  }
  return f(static_cast<const double*>(nullptr));
}

template <class T>
inline T load(const Column& c, std::size_t i) {
  T value;
  __builtin_memcpy(&value, c.data + static_cast<std::ptrdiff_t>(i) * c.stride, sizeof(T));  // the data may be unaligned
  return value;
}

inline bool is_masked(const Column& c, std::size_t row) {
  return c.mask != nullptr && c.mask[static_cast<std::ptrdiff_t>(row) * c.mask_stride] != 0;
}

// Writes column[rows[i]] as double to values[i], for i in [0, n); missing is NaN, a category is its code.
void read_values(const Column& c, const Row* rows, std::size_t n, double* values);

// Writes all rows of some columns as double: column features[t] of row i to out[t * n_rows + i], or with `by_row` to
// out[i * n_features + t].
void read_block(const Table& table, const std::int32_t* features, std::size_t n_features, bool by_row, double* out);

// A matrix of doubles, whose rows and columns are some numbers apart.
struct Matrix {
  const double* first;
  std::ptrdiff_t row_stride, column_stride;
  std::size_t n_rows, n_columns;
};

// Copies a matrix by row and returns the sum of its squares.
double copy_with_squares(const Matrix& matrix, int n_threads, Interrupt& interrupt, double* out);

// Calls take(i, value) for i in [0, n), with values as above. They pass through a small buffer, so that only the
// function above depends on column types: a copy of each `take` for every type was a third of the engine's code.
template <class Take>
void read_rows(const Column& c, const Row* rows, std::size_t n, Take&& take) {
  constexpr std::size_t most = 256;
  double values[most];
  for (std::size_t begin = 0; begin < n; begin += most) {
    const std::size_t m = std::min(most, n - begin);
    read_values(c, rows + begin, m, values);
    for (std::size_t i = 0; i < m; ++i) take(begin + i, values[i]);
  }
}

// The position of the first stored entry of a sparse column for this row or a later one.
std::size_t first_stored(const Column& c, Row row);

// Calls take(row, value) for the stored entries of a sparse column in rows begin … end - 1.
template <class Take>
void read_stored(const Column& c, std::size_t begin, std::size_t end, Take&& take) {
  with_type(c.dtype, [&]<class T>(const T*) {
    for (std::size_t at = begin == 0 ? 0 : first_stored(c, static_cast<Row>(begin));
         at < c.n_sparse && static_cast<Row>(c.sparse_rows[at]) < end; ++at)
      take(static_cast<Row>(c.sparse_rows[at]), static_cast<double>(load<T>(c, at)));
  });
}

inline double value_at(const Column& c, Row row) {
  double value;
  read_values(c, &row, 1, &value);
  return value;
}

}  // namespace spinney
