// A tree that is grown on rows which are dealt out to pieces: see boost/rows.h.
//
// It is the tree that the same rows would grow in one place. Leaves whose turn will come soon are split ahead of it, a batch
// at a time, as each batch is a way to all pieces and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/message.h"
#include "boost/growing.h"
#include "boost/rows.h"

namespace spinney {

class DealtTree final : private GrowingTree {
 public:
  DealtTree(const Coding& coding, const BoostParams& params, Units units, std::uint64_t key, int n_threads);

  // The root, from what the pieces say of it, each its sum and cells.
  void plant(std::size_t n_rows, std::span<MessageReader> pieces);

  bool is_grown() const { return asked_.empty() && is_done(); }

  // Adds what it wants to know next to a message, and returns how many questions these are.
  std::uint32_t ask(std::uint32_t tree, MessageWriter& to);

  // Reads the answers to what was asked.
  void read(std::span<MessageReader> pieces);

  BoostedTree finished();

 private:
  struct Counting {  // a leaf of fewer rows than its hessian had promised
    Leaf* leaf;
    std::vector<std::vector<Row>> counts;  // by column, then by code; empty: not counted
    std::uint32_t column;                  // to be counted next
  };
  struct Asked {
    Leaf* leaf;
    OfChild histogram = OfChild::none;
    std::uint32_t left = 0, right = 0;  // names of the children
    bool is_count = false;
    std::size_t counting = 0;
  };

  void let_go(Leaf& leaf) override { leaf.histogram.reset(); }
  void rejoin(Leaf&) override {}  // the order of a leaf's rows is of no matter

  OfChild child_to_add_up(const Leaf& leaf) const;
  Histogram read_cells(std::span<MessageReader> pieces) const;
  void read_division(const Asked& asked, std::span<MessageReader> pieces);
  void read_count(const Asked& asked, std::span<MessageReader> pieces);
  void search_children(Leaf& leaf, Leaf& small, Leaf& large, Histogram cells);
  BoostSplit best_of(const Leaf& leaf, const std::vector<std::vector<Row>>* counts = nullptr);

  const int n_threads_;
  const PlainCells cells_;
  std::vector<SplitScratch> scratch_;  // by thread
  std::vector<Asked> asked_;
  std::vector<Counting> counting_;
  std::uint32_t n_names_ = 1;  // the root's is 0
};

}  // namespace spinney
