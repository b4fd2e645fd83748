// Parting the rows of a node into those of its children.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

// The rows of a node in ascending order again, after they were partitioned in vain.
inline void join_rows(Row* rows, std::size_t n_left, std::size_t n) {
  std::inplace_merge(rows, rows + n_left, rows + n);
}

class RowParter {
 public:
  RowParter(const Coding& coding, const Codes& codes, int n_threads);

  // Rows that go left first, each side in its order; returns how many go left. With one thread the scratch is that of
  // `worker`, so that workers may part rows of different nodes at once.
  std::size_t part(const BoostSplit& split, Row* rows, std::size_t n, int n_threads, int worker);

  // The same by codes of the column that are elsewhere, if it is not listed; `codes` is where that of row 0 would be.
  std::size_t part_by(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n, int worker);

  // Rows were parted in chunks, which end at `ends`: left parts first, then right parts, each in the order of the chunks.
  std::size_t join(Row* rows, std::span<const std::size_t> ends, std::span<const std::size_t> n_left, int n_threads);

 private:
  std::size_t part_serial(const BoostSplit& split, Row* rows, std::size_t n, const std::uint8_t* marks, int worker);
  bool goes_left(const BoostSplit& split, std::uint32_t code) const;
  template <class Side>
  void mark(const BoostSplit& split, std::vector<std::uint8_t>& marks, Side&& side) const;
  Row* spare(std::size_t n, int worker);
  std::size_t part_by_bits(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n,
                           Row* spare) const;

  const Coding& coding_;
  const Codes& codes_;
  std::vector<std::vector<Row>> spare_;           // by worker
  std::vector<std::vector<std::uint8_t>> marks_;  // by worker, then by row: `unmarked` between splits
  std::vector<Row> joined_;
};

}  // namespace spinney
