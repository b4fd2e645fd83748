// The kernel where the instruction set has no masks of its own, so that rows are noted as bytes. Included by one
// translation unit per instruction set, inside its namespace.

typedef std::int8_t Bytes __attribute__((vector_size(mask_bytes)));
typedef std::uint8_t Leaves __attribute__((vector_size(mask_bytes)));
typedef Bytes Rows;  // a byte each, 0 or -1

static inline Rows all_rows() { return ~Bytes{}; }
static inline Rows those_above(Rows here, Bytes code, Bytes cut) { return reinterpret_cast<Rows>(code > cut) & here; }
static inline Leaves count_leaves(Leaves leaf, Rows rows, Leaves n) {
  return leaf + (reinterpret_cast<Leaves>(rows) & n);
}

static inline void add_values(const MaskTree& tree, const std::uint8_t* leaf, std::size_t n, double* __restrict sums) {
  const double* values = tree.values;
#pragma GCC ivdep
  for (std::size_t r = 0; r < n; ++r) sums[r] += values[leaf[r]];
}

#include "predict/mask_body.h"
