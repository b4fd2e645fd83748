// The parts of a node's column search that all criteria share: the columns to try, and the resulting split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "data/bins.h"
#include "data/coarse.h"
#include "data/entries.h"
#include "data/keys.h"
#include "data/presort.h"
#include "data/ranks.h"
#include "data/sort.h"
#include "grow/rules.h"

namespace spinney {

// Codes of the number columns: bins, or an index for the exact search of large nodes, or neither.
struct Bins {
  std::vector<std::uint8_t> coarse;   // by column and row, in one allocation; empty: none
  std::vector<BinnedColumn> columns;  // empty: exact; category columns stay empty inside
  Presorted presorted;                // of all rows, if many trees share it
  CoarseTiles tiles;                  // of the presorted rows, if they are available and criteria have bounds
  RowKeys keys;                       // of all rows, for random cuts
  RowRanks ranks;                     // of all rows, for nodes that count the few columns they try
  Entries entries;                    // of all rows, for tables with mostly zeros
  // Whether the presorted rows serve single trees, one after the other, each on all threads. A node with a large part
  // of the rows is then searched by going through all of them in order.
  bool sorts_for_one_tree = false;
  static constexpr std::size_t least_fraction = 8;
  const std::uint8_t* coarse_codes(const Table& table, std::uint32_t f) const {  // null for category columns
    return table.columns[f].is_category() ? nullptr : coarse.data() + f * table.n_rows;
  }
  bool has(const Table& table, std::uint32_t f) const { return !columns.empty() && !table.columns[f].is_category(); }
};

// The columns that were tried at a node, and the best cut of each.
struct TriedColumns {
  std::vector<std::uint32_t> columns;
  std::vector<Candidate> candidates;  // one per column
  // Scratch of one tree: the columns that a node may draw, in the same order before every node, the draws, and by
  // column whether it still varies.
  std::vector<std::uint32_t> order, swapped;
  std::vector<std::uint8_t> live;
};

// For fewer rows, sorting all of them is as fast as selecting the relevant ones.
inline constexpr std::size_t coarse_rows = 4096;

// The rows of a node sorted by a column, as entries; with `local`, they carry positions in `rows`.
std::span<const Entry> sort_rows(ColumnSorter& sorter, const Table& table, const Bins& bins, std::uint32_t f,
                                 std::span<const Row> rows, bool local);

// Returns whether a node needs no list of its columns: the draw is from all of them, and the search detects constant
// columns as quickly as a list.
inline bool is_unlisted(const Rules& rules, bool finds_constants) {
  return finds_constants && rules.draws_columns() && rules.params.interaction_cst.empty();
}

// Shuffles the columns of a node, so that ties are broken at random.
void mix_columns(const OpenNode& node, std::vector<std::uint32_t>& columns);

// Calls search(columns, candidates) for the columns to try, and removes constant columns from node.features where that
// is needed.
using SearchColumns = void(std::span<const std::uint32_t>, std::span<Candidate>);
void search_drawn_columns(const Rules& rules, OpenNode& node, TriedColumns& found, FunctionRef<SearchColumns> search,
                          bool finds_constants = false);

// A bin holds rows of several values: if the best cut of column f is between bins, finds the values next to it among
// the node's rows, as sorting by value would.
void find_neighbours(const Rules& rules, const Bins& bins, std::uint32_t f, std::span<const Row> rows, Candidate& c);

// The threshold of a cut between two values, as the tree stores it.
double cut_of(const GrowParams& params, std::uint32_t feature, double below, double above);

// Rare categories that are pooled have one code in the column's rows: sends all of them to the side of that code.
void spread_pool(const Column& column, std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right);

// Sets the side of unseen values: that of the rare categories if the node has any, else the heavier side.
void place_unknown(const Rules& rules, const Choice& choice, bool left_heavier, SplitRecord& split);

// The split as the tree stores it, without the threshold. `codes` are the node's categories, ascending (category
// columns).
SplitRecord describe_sides(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes);

// The same with its threshold.
SplitRecord describe_split(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes);

// Marks the side of each row (1: left) and, for a category column, collects the categories.
void mark_sides(const Rules& rules, const Choice& choice, std::span<const Row> rows, std::vector<std::uint8_t>& side,
                std::vector<std::uint32_t>& codes);

// The same for a number column by its coarse steps: values are read only in the step of the cut.
void mark_sides(const Rules& rules, const CoarseTiles& tiles, const Choice& choice, std::span<const Row> rows,
                std::vector<std::uint8_t>& side);

}  // namespace spinney
