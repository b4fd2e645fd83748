// A tree grown on rows that are partitioned among processes, by messages (boost/row_messages.h).
//
// The tree is the same as on the same rows in one process. Leaves that will be split soon are split speculatively, a
// batch at a time, because each batch is a round trip to all partitions. Requests are sent ahead, and the calls of
// boost/rows.h read the answers: partitions answer in the order of the requests, so a batch may be sent before another
// one is answered.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/message.h"
#include "boost/grower.h"
#include "boost/row_messages.h"

namespace spinney {

class RemoteRows {
 public:
  using Growth = GrowingTree;
  using Leaf = GrowingLeaf;

  RemoteRows(const GrowingTree& tree, const Coding& coding, int n_threads, Interrupt& interrupt);

  // The calls read from these answers, one per partition.
  void read_from(std::span<MessageReader> partitions) {
    partitions_ = partitions;
    n_partitions_ = partitions.size();
  }

  void init_root(Leaf& root);
  void partition(std::span<LeafSplit<Leaf>> splits, ThreadTeam team);
  void histograms(std::span<LeafSplit<Leaf>> splits, ThreadTeam team);

  void release(Leaf& leaf, int) { leaf.histogram.reset(); }
  void rejoin(Leaf&, std::size_t) {}  // partitions sort the rows if needed

  double work_of(const Leaf& leaf) const {  // for each partition: rows times columns
    return static_cast<double>(leaf.n()) * static_cast<double>(cells_.columns().size()) /
           static_cast<double>(n_partitions_);
  }
  std::uint32_t name_children(
      const Leaf& leaf);  // returns the number of the left child; the right child has the next one

  struct Counting {  // a leaf with fewer rows than its hessian indicated
    Leaf* leaf;
    std::vector<std::vector<Row>> counts;  // by column, then by code; empty: not counted
    std::uint32_t column;                  // next column to count
    bool is_requested = false;
  };
  std::vector<std::unique_ptr<Counting>>& counting() { return counting_; }
  const std::vector<std::unique_ptr<Counting>>& counting() const { return counting_; }

  // Reads the counts of a leaf's column; returns true and sets `best` if the best split is found.
  bool read_count(Counting& counting, BoostSplit& best);

  // Nodes without children or sums so far: the sums of all leaves follow from theirs.
  std::vector<std::uint32_t> without_sums() const;
  void read_sums(std::span<const std::uint32_t> names);
  std::optional<LeafSums> sums_of(std::uint32_t name) const;

 private:
  struct Named {
    std::uint32_t left = 0;  // number of the left child; 0: none
    std::optional<LeafSums> sums;
  };

  template <class T>
  T read_sum() {
    T sum{};
    for (MessageReader& partition : partitions_) sum += partition.get<T>();
    return sum;
  }
  Histogram read_cells(std::size_t n_cells);
  void search_children(LeafSplit<Leaf>& split, Histogram cells);
  BoostSplit best_of(const Leaf& leaf, const std::vector<std::vector<Row>>* counts = nullptr);

  const GrowingTree& tree_;
  const Coding& coding_;
  const int n_threads_;
  const PlainCells cells_;
  std::span<MessageReader> partitions_;
  std::size_t n_partitions_ = 1;
  std::vector<SplitScratch> scratch_;  // by thread
  std::vector<std::unique_ptr<Counting>> counting_;
  std::vector<Named> named_{1};  // by node number; the root is 0
};

class PartitionedTree final : private TreeGrower<RemoteRows> {
 public:
  // `least_gain`: the gain of the last split of the previous tree; leaves with such gains are likely to be split.
  PartitionedTree(const Coding& coding, const BoostParams& params, Units units, std::uint64_t key, double least_gain,
                  int n_threads, Interrupt& interrupt);

  // Sets up the root from the answers of the partitions, each its sum and cells.
  void init_root(std::size_t n_rows, std::span<MessageReader> partitions);

  bool is_grown() const { return batches_.empty() && is_done(); }

  // The work of each partition for the next request: rows times columns.
  double work_to_request() const;

  // The next request; `some`: about half of it.
  RowBatch request(std::uint32_t tree, bool some);

  // Reads the answers to the oldest batch that was requested and not read.
  void read(std::span<MessageReader> partitions);

  // Returns whether no further splits will be needed beyond those made or requested, as far as known.
  bool is_end_in_sight() const;

  RemoteRows& rows() { return rows_; }
  const RemoteRows& rows() const { return rows_; }
  using TreeGrower::finished, TreeGrower::least_gain;

 private:
  struct Batch {
    std::vector<LeafSplit<Leaf>> splits;
    std::vector<RemoteRows::Counting*> counts;
  };

  std::vector<Leaf*> leaves_to_request() const;
  ChildHistogram child_to_add_up(const Leaf& leaf) const;

  const double least_gain_before_;
  std::deque<Batch> batches_;  // requested and not read yet
};

}  // namespace spinney
