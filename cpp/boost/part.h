// Parting the rows of a node into those of its children.
#pragma once

#include <cstddef>
#include <vector>

#include "boost/codes.h"
#include "boost/split.h"

namespace spinney {

class RowParter {
 public:
  RowParter(const Coding& coding, const Codes& codes, int n_threads);

  // Rows that go left first, each side in its order; returns how many go left. With one thread the scratch is that of
  // `worker`, so that workers may part rows of different nodes at once.
  std::size_t part(const BoostSplit& split, Row* rows, std::size_t n, int n_threads, int worker);

 private:
  std::size_t part_serial(const BoostSplit& split, Row* rows, std::size_t n, const std::uint8_t* marks, int worker);
  bool goes_left(const BoostSplit& split, std::uint32_t code) const;
  template <class Side>
  void mark(const BoostSplit& split, std::vector<std::uint8_t>& marks, Side&& side) const;
  std::size_t part_by_bits(const BoostSplit& split, Row* rows, std::size_t n, Row* spare) const;
  std::size_t join(Row* rows, std::size_t n, const std::vector<std::size_t>& n_left, int n_threads);

  const Coding& coding_;
  const Codes& codes_;
  std::vector<std::vector<Row>> spare_;           // by worker
  std::vector<std::vector<std::uint8_t>> marks_;  // by worker, then by row: `unmarked` between splits
  std::vector<Row> joined_;
};

}  // namespace spinney
