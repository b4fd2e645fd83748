// Partition of the rows of a node into those of its children.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

// Restores the ascending order of a node's rows after a partition that is not used.
inline void join_rows(Row* rows, std::size_t n_left, std::size_t n) {
  std::inplace_merge(rows, rows + n_left, rows + n);
}

class RowPartitioner {
 public:
  RowPartitioner(const Coding& coding, const Codes& codes, int n_threads);

  // Stable partition with the left rows first; returns their number. With one thread the scratch of `worker` is used,
  // so that workers may partition the rows of different nodes at once.
  std::size_t part(const BoostSplit& split, Row* rows, std::size_t n, int n_threads, int worker);

  // The same by copied codes of the column, if it is not listed; `codes` is the address that row 0 would have.
  std::size_t partition_by(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n, int worker);

  // Joins chunks that were partitioned separately and end at `ends`: left parts first, then right parts, each in chunk
  // order.
  std::size_t join(Row* rows, std::span<const std::size_t> ends, std::span<const std::size_t> n_left, int n_threads);

 private:
  std::size_t partition_serial(const BoostSplit& split, Row* rows, std::size_t n, const std::uint8_t* marks,
                               int worker);
  bool goes_left(const BoostSplit& split, std::uint32_t code) const;
  template <class Side>
  void mark(const BoostSplit& split, std::vector<std::uint8_t>& marks, Side&& side) const;
  Row* spare(std::size_t n, int worker);
  std::size_t partition_by_bits(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n,
                                Row* spare) const;

  const Coding& coding_;
  const Codes& codes_;
  std::vector<std::vector<Row>> spare_;           // by worker
  std::vector<std::vector<std::uint8_t>> marks_;  // by worker, then by row: `unmarked` between splits
  std::vector<Row> joined_;
};

}  // namespace spinney
