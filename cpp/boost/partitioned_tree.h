// A tree that is grown on rows which are partitioned among processes: see boost/rows.h.
//
// It is the tree that the same rows would grow in one place. Leaves whose turn will come soon are split ahead of it, a batch
// at a time, as each batch is a way to all partitions and back. Partitions answer in the order in which they are asked, so that a
// batch may be asked for before the answers to another one are there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/message.h"
#include "boost/growing.h"
#include "boost/row_messages.h"

namespace spinney {

class PartitionedTree final : private GrowingTree {
 public:
  // `least_gain`: that the tree before it made a split for; it tells which leaves this one is likely to split.
  PartitionedTree(const Coding& coding, const BoostParams& params, Units units, std::uint64_t key, double least_gain,
                  int n_threads);

  // The root, from what the partitions say of it, each its sum and cells.
  void plant(std::size_t n_rows, std::span<MessageReader> partitions);

  bool is_grown() const { return batches_.empty() && is_done(); }

  // How much work each partition has with what it would ask for: rows times columns.
  double work_to_ask_for() const;

  // What it wants to know next; `some`: about half of that.
  RowBatch ask(std::uint32_t tree, bool some);

  // Reads the answers to the first batch that was asked for and not read yet.
  void read(std::span<MessageReader> partitions);

  // Whether no split will be wanted beyond those that are made or asked for, as far as it is known.
  bool is_end_in_sight() const;

  // Nodes that have no children, nor sums yet: the sums of all leaves can be told from them.
  std::vector<std::uint32_t> without_sums() const;

  // Reads sums of nodes; those of a leaf, if they are known, or those of the nodes below it.
  void read_sums(std::span<const std::uint32_t> names, std::span<MessageReader> partitions);
  std::optional<LeafSums> sums_of(std::uint32_t name) const;

  BoostedTree finished();

  // That a split was made for; 0: for any.
  double least_gain() const;

 private:
  struct Counting {                        // a leaf of fewer rows than its hessian had promised
    Leaf* leaf;                            // null: it is counted
    std::vector<std::vector<Row>> counts;  // by column, then by code; empty: not counted
    std::uint32_t column;                  // to be counted next
    bool is_asked = false;
  };
  struct Asked {
    Leaf* leaf;
    ChildHistogram histogram = ChildHistogram::none;
    std::uint32_t left = 0;        // name of the left child; the right one's is the next
    Counting* counting = nullptr;  // null: it is to be parted
  };
  struct Named {
    std::uint32_t left = 0;  // name of the left child; 0: there is none
    std::optional<LeafSums> sums;
  };

  void let_go(Leaf& leaf) override { leaf.histogram.reset(); }
  void rejoin(Leaf&) override {}  // the order of a leaf's rows is of no matter

  std::vector<Leaf*> leaves_to_ask_for() const;
  ChildHistogram child_to_add_up(const Leaf& leaf) const;
  Histogram read_cells(std::span<MessageReader> partitions) const;
  void read_split(const Asked& asked, std::size_t n_left, std::span<MessageReader> partitions);
  void read_count(Counting& counting, std::span<MessageReader> partitions);
  void search_children(Leaf& leaf, Leaf& small, Leaf& large, Histogram cells);
  BoostSplit best_of(const Leaf& leaf, const std::vector<std::vector<Row>>* counts = nullptr);

  const double least_gain_before_;
  const int n_threads_;
  const PlainCells cells_;
  std::size_t n_partitions_ = 1;
  std::vector<SplitScratch> scratch_;       // by thread
  std::deque<std::vector<Asked>> batches_;  // that were asked for and not read yet
  std::vector<std::unique_ptr<Counting>> counting_;
  std::vector<Named> named_{1};  // by name: the root's is 0
};

}  // namespace spinney
