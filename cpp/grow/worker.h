// The operations of tree growth that depend on the criterion.
//
// The loops that build a tree are compiled once and use a Worker, which is compiled for each criterion. A call concerns
// a node or a column, never a single row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/interrupt.h"
#include "data/sort.h"
#include "grow/block.h"
#include "grow/search.h"

namespace spinney {

class Worker;
using Workers = std::span<const std::unique_ptr<Worker>>;  // one per thread, all of the same criterion

// The criterion, and scratch of one thread.
class Worker {
 public:
  virtual ~Worker() = default;

  virtual std::size_t stat_width() const = 0;
  virtual void add(std::span<const Row> rows, std::int64_t* stat) const = 0;

  // The best cut of a column in a node.
  virtual Candidate search_column(const Rules& rules, const Bins& bins, const OpenNode& node, std::span<const Row> rows,
                                  std::uint32_t f) = 0;
  // The best cuts of several columns, divided among the workers, of which this is one.
  virtual void search_columns(Workers workers, const Rules& rules, const Bins& bins, const OpenNode& node,
                              std::span<const Row> rows, std::span<const std::uint32_t> columns,
                              std::span<Candidate> candidates, Interrupt& interrupt) = 0;
  virtual void forget_rows() {}  // the rows searched last are about to change or disappear

  // The columns of a block, in each form that its cuts may need; null if the criterion does not support it.
  virtual std::unique_ptr<BlockColumns> sorted_columns(const Rules& rules, const Bins& bins) = 0;
  virtual std::unique_ptr<BlockColumns> drawn_columns(const Rules& rules, const Bins& bins) = 0;
  virtual std::unique_ptr<BlockColumns> ranked_columns(const Rules& rules, const Bins& bins) = 0;
  virtual std::unique_ptr<BlockColumns> sparse_columns(const Rules& rules, const Bins& bins) = 0;

  ColumnSorter sorter;
  TriedColumns tried;
};

// Compiled for every criterion, in the files worker_*.cpp, which together take most of a minute.
template <class Criterion>
std::unique_ptr<Worker> make_worker(const Criterion& criterion);

// Calls body(i, worker) for i in [0, n_columns), in parallel if there are many rows.
void for_each_column(Workers workers, std::size_t n_rows, std::size_t n_columns, Interrupt& interrupt,
                     FunctionRef<void(std::size_t, Worker&)> body);

// Finds the best split of a node.
std::optional<Choice> find_split(Workers workers, const Rules& rules, const Bins& bins, OpenNode& node,
                                 std::span<const Row> rows, Interrupt& interrupt);

}  // namespace spinney
