// Partition of the rows of a node into those of its children.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "boost/codes.h"
#include "boost/rows.h"
#include "boost/split.h"

namespace spinney {

// Restores the ascending order of a node's rows after a partition that is not used.
inline void join_rows(Row* rows, std::size_t n_left, std::size_t n) {
  std::inplace_merge(rows, rows + n_left, rows + n);
}

struct NodeRows {
  const BoostSplit* split = nullptr;
  Row* rows = nullptr;
  std::size_t n = 0;
  std::size_t n_left = 0;  // output; 0 before
};

class RowPartitioner {
 public:
  RowPartitioner(const Coding& coding, const Codes& codes, int n_threads);

  // Stable partition with the left rows first. Workers may partition the rows of different nodes at once.
  void part(std::span<NodeRows> nodes, ThreadTeam team);

  // The same for one node by copied codes of the column, if it is not listed; returns the number of left rows. `codes` is
  // the address that row 0 would have.
  std::size_t partition_by(const std::uint8_t* codes, const BoostSplit& split, Row* rows, std::size_t n, int worker);

  // Rows of a node that were partitioned separately. Chunks are ordered by node, then by row.
  struct Chunk {
    std::size_t node, begin, end, n_left;
  };
  // Joins the chunks of nodes, sets their `n_left` and puts left parts first, then right parts, each in chunk order.
  void join(std::span<NodeRows> nodes, std::span<const Chunk> chunks, int n_threads);

 private:
  static constexpr std::size_t alone = SIZE_MAX;  // instead of a beginning in `joined_`: a node of a single chunk
  void part_chunks(std::span<NodeRows> nodes, std::span<Chunk> chunks, const std::uint8_t* marks, ThreadTeam team);
  std::vector<std::size_t> first_joined(std::span<const NodeRows> nodes, std::span<const Chunk> chunks);
  Row* copy_to_joined(const Chunk& chunk, std::size_t first, const Row* rows);
  void move_back(std::span<NodeRows> nodes, std::span<const Chunk> chunks, const std::vector<std::size_t>& first,
                 int n_threads);
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
  std::vector<Row> joined_;                       // of nodes that are partitioned in chunks, node after node
};

// Assigns the rows of leaves to their children; the smaller child's histogram will be summed.
template <class Leaf>
void partition_leaves(RowPartitioner& partitioner, std::span<LeafSplit<Leaf>> splits, std::vector<Row>& rows,
                      ThreadTeam team) {
  std::vector<NodeRows> nodes;
  for (const LeafSplit<Leaf>& split : splits)
    nodes.push_back({&split.leaf->best, rows.data() + split.leaf->begin, split.leaf->n()});
  partitioner.part(nodes, team);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    splits[i].n_left = nodes[i].n_left;
    splits[i].child = 2 * nodes[i].n_left <= nodes[i].n ? ChildHistogram::left : ChildHistogram::right;
  }
}

}  // namespace spinney
