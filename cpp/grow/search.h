// What every search of a node's columns shares, whatever the criterion: the columns to try, and the split that comes of it.
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
  std::vector<std::uint8_t> coarse;   // by column and row, in one piece that goes back to the system; empty: none
  std::vector<BinnedColumn> columns;  // empty: exact; category columns stay empty inside
  Presorted presorted;                // of all rows, where many trees share it
  CoarseTiles tiles;                  // of the sorted rows, where they are kept and criteria have bounds
  RowKeys keys;                       // of all rows, where cuts are random
  RowRanks ranks;                     // of all rows, where nodes count the few columns that they try
  Entries entries;                    // of all rows, where most values are 0
  // Whether the sorted rows are for single trees, one after the other, each on all threads. Going through all of them in
  // order then pays for a node that has a good part of them.
  bool is_kept = false;
  static constexpr std::size_t least_share = 8;
  const std::uint8_t* coarse_codes(const Table& table, std::uint32_t f) const {  // null for category columns
    return table.columns[f].is_category() ? nullptr : coarse.data() + f * table.n_rows;
  }
  bool has(const Table& table, std::uint32_t f) const { return !columns.empty() && !table.columns[f].is_category(); }
};

// Columns that were tried at a node, and the best cut of each.
struct Tried {
  std::vector<std::uint32_t> columns;
  std::vector<Candidate> candidates;  // one per column
  // Scratch of one tree: the columns that a node may draw, always in the same order between two nodes, and the draws; by
  // column, whether it still varies.
  std::vector<std::uint32_t> order, swapped;
  std::vector<std::uint8_t> live;
};

// Below this many rows, sorting all of them is as fast as looking for the few that matter.
inline constexpr std::size_t coarse_rows = 4096;

// The rows of a node sorted by a column, as entries; with `local`, they carry positions in `rows`.
std::span<const Entry> sort_rows(ColumnSorter& sorter, const Table& table, const Bins& bins, std::uint32_t f,
                                 std::span<const Row> rows, bool local);

// Can a node do without a list of its columns? Where the draw is from all of them, and the search tells constant ones as
// quickly as a list does.
inline bool is_unlisted(const Rules& rules, bool tells_constants) {
  return tells_constants && rules.draws_columns() && rules.params.interaction_cst.empty();
}

// Puts columns of a node in a random order, so that the first of equally good ones is any of them.
void mix_columns(const OpenNode& node, std::vector<std::uint32_t>& columns);

// Calls search(columns, candidates) for the columns to try, and drops those that turn out constant from node.features,
// where that is needed.
using SearchColumns = void(std::span<const std::uint32_t>, std::span<Candidate>);
void search_drawn_columns(const Rules& rules, OpenNode& node, Tried& found, FunctionRef<SearchColumns> search,
                          bool tells_constants = false);

// A bin holds rows of several values: for the best cut of column f, where it is a cut between bins, finds those next to
// it among the node's rows, as sorting by value would.
void find_neighbours(const Rules& rules, const Bins& bins, std::uint32_t f, std::span<const Row> rows, Candidate& c);

// The threshold of a cut between two values, as the tree stores it.
double cut_of(const GrowParams& params, std::uint32_t feature, double below, double above);

// Rare categories that are one in the column have one code in its rows: puts all of them on the side of that one.
void spread_pool(const Column& column, std::vector<std::uint32_t>& left, std::vector<std::uint32_t>& right);

// Where rows go whose value the node has not seen: with the rare ones, where it has any, else to the heavier side.
void place_unknown(const Rules& rules, const Choice& choice, bool left_heavier, SplitRecord& split);

// The split as the tree stores it, all but the threshold. `codes` are the categories seen in the node, ascending (category
// columns).
SplitRecord describe_sides(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes);

// The same with its threshold.
SplitRecord describe_split(const Rules& rules, const Choice& choice, bool left_heavier,
                           const std::vector<std::uint32_t>& codes);

// Marks each row's side (1: left) and, for a category column, collects the categories seen.
void mark_sides(const Rules& rules, const Choice& choice, std::span<const Row> rows, std::vector<std::uint8_t>& side,
                std::vector<std::uint32_t>& codes);

// The same of a number column by its steps: values are read where the cut is inside of one.
void mark_sides(const Rules& rules, const CoarseTiles& tiles, const Choice& choice, std::span<const Row> rows,
                std::vector<std::uint8_t>& side);

}  // namespace spinney
