// An index for nearest-neighbour search with two strategies and identical results:
//
// all rows  every query scans every block of rows. Squared distances are first approximated in single precision as
//           |row|² / 2 - query · row; a block is skipped if none of its rows can be near, whatever the rounding.
// tree      blocks are the leaves of a tree of boxes; those that are too far away are skipped.
//
// Everything else is computed in double precision, always in the same order of additions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "base/large_array.h"
#include "base/types.h"
#include "local/kernels.h"
#include "local/nearest.h"

namespace spinney {

enum class Search { all_rows, tree, cheaper };

class NeighbourIndex {
 public:
  static constexpr std::size_t n_lanes = LocalKernels::n_lanes;
  static constexpr Row no_row = ~Row{0};

  // rows: row-major, n_terms numbers each; they are copied. k: the expected number of neighbours, which decides which
  // search is cheaper. Only distances that are sums of differences, or their maximum, have a tree.
  NeighbourIndex(std::span<const double> rows, std::size_t n_rows, std::size_t n_terms, Measure measure, Search search,
                 std::size_t k, int n_threads, Interrupt& interrupt);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_terms() const { return n_terms_; }
  bool has_tree() const { return !boxes_.empty(); }

  // The k nearest rows of each query and their keys, nearest first; 1 <= k <= n_rows.
  void nearest(const double* queries, std::size_t n_queries, std::size_t k, Row* rows, double* keys, int n_threads,
               Interrupt& interrupt) const;

 private:
  struct Visits {
    std::size_t n_boxes = 0, n_blocks = 0;
  };
  // Queries of one task that are searched together.
  struct Group;

  void fill_blocks(std::span<const double> rows, const std::vector<Row>& order);
  void fill_rough(std::span<const double> rows);
  void fill_boxes(std::size_t node, std::size_t first, std::size_t last);
  bool tree_is_cheaper(std::span<const double> rows, std::size_t k, Interrupt& interrupt) const;

  void walk(const double* query, Nearest& nearest, Visits& visits) const;
  void scan_block(const double* query, std::size_t block, Nearest& nearest) const;
  void scan_all(const double* query, Nearest& nearest, Interrupt& interrupt) const;
  void scan_all_roughly(const double* queries, std::span<Nearest> nearest, Interrupt& interrupt) const;
  Group make_group(const double* queries, std::size_t n) const;
  float rough_limit(double key, double squared_length) const;
  void search_task(const double* queries, std::span<Nearest> nearest, Interrupt& interrupt) const;

  std::size_t n_rows_, n_terms_, n_blocks_;
  Measure measure_;
  LargeArray<double> blocks_;  // n_blocks x n_terms x n_lanes
  std::vector<Row> row_of_;    // n_blocks x n_lanes; the last lanes may be no_row

  // ---- tree: a node over blocks [first, last) is halved; its left child is the next node
  // -------------------------------
  std::vector<double> boxes_;  // n_nodes x {low, high} x n_terms
  double box_slack_ = 0;       // relative rounding difference of keys and boxes

  // ---- squared distances without a tree
  // -------------------------------------------------------------------------------
  LargeArray<float> rough_;     // as blocks_, minus center_, times factor_
  LargeArray<float> half_;      // n_blocks x n_lanes: half the squared length minus a bound of the rounding error
  std::vector<double> center_;  // by term
  double factor_ = 1;           // a power of 2 that makes the largest number at most 1
  double rough_slack_ = 0;      // error of a product, relative to the squared lengths of both sides
};

}  // namespace spinney
