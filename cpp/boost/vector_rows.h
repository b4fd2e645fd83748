// Rows in memory behind the calls of boost/rows.h, for trees whose leaves have a value for each of several scores.
//
// A histogram has a section for each score, filled as those of trees of one score are. The threads share its tiles and scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "boost/coded_table.h"
#include "boost/growing.h"
#include "boost/part.h"
#include "boost/rows.h"
#include "boost/vector_split.h"

namespace spinney {

using VectorLeaf = GrowingNode<VectorSplit, std::vector<Sums>>;

inline const std::vector<Sums>& left_sums(const VectorSplit& split) { return split.left_sums; }
std::vector<Sums> difference(const std::vector<Sums>& a, const std::vector<Sums>& b);

struct VectorTree {
  BoostedTree grown;                    // values and impurities are left to the caller
  std::vector<std::vector<Sums>> sums;  // by node, then by score
};

class VectorGrowingTree : public TreeGrowth<VectorLeaf> {
 public:
  using Terms = std::span<const ScoreTerms>;
  VectorGrowingTree(const Coding& coding, const BoostParams& params, std::uint64_t key, Terms scores)
      : TreeGrowth(coding, params, key), search_(coding, params, scores) {}

  const VectorSearch& search() const { return search_; }
  std::vector<std::vector<Sums>>& sums() { return sums_; }  // by node of the assembled tree, then by score

 protected:
  ~VectorGrowingTree() = default;
  void bound(const Leaf&, Leaf&, Leaf&) const {}  // splits that break a monotonic constraint are not found
  void describe(NodeRecord& node, BoostedTree& grown, std::size_t at) override;

 private:
  const VectorSearch search_;
  std::vector<std::vector<Sums>> sums_;
};

// What trees use one after the other.
struct VectorMemory {
  VectorMemory(const CodedTable& coded, std::size_t n_scores, int threads)
      : table(coded),
        n_threads(threads),
        n_cells(coded.tiles.n_cells() + (coded.tiles.listed().empty() ? 0 : coded.tiles.listed().n_cells())),
        pool(n_cells * n_scores, threads),
        parter(coded.coding, coded.codes, threads),
        scratch(static_cast<std::size_t>(threads)),
        cells(static_cast<std::size_t>(threads), std::vector<std::vector<Packed>>(n_scores)) {}

  const CodedTable& table;
  const int n_threads;
  const std::size_t n_cells;  // of one score
  HistogramPool pool;
  RowParter parter;
  std::vector<VectorSearch::Scratch> scratch;           // by worker
  std::vector<std::vector<std::vector<Packed>>> cells;  // by worker and score
};

class VectorRows {
 public:
  using Growth = VectorGrowingTree;
  using Leaf = VectorLeaf;
  static constexpr bool takes_given_splits = false;

  VectorRows(const VectorGrowingTree& tree, VectorMemory& memory, std::span<const ScoreTerms> scores,
             std::vector<Row>& rows, int n_threads, Interrupt& interrupt);

  std::size_t n_rows() const { return rows_.size(); }
  void plant(Leaf& root);
  void partition(std::span<LeafSplit<Leaf>> splits, Crew crew);
  void histograms(std::span<LeafSplit<Leaf>> splits, Crew crew);

  void release(Leaf& leaf, int worker) { memory_.pool.give_back(std::move(leaf.histogram), worker); }
  void rejoin(Leaf& leaf, std::size_t n_left) { join_rows(rows_.data() + leaf.begin, n_left, leaf.n()); }

  std::size_t most_nodes() const { return 1; }
  bool may_take_one_thread(const Leaf&) const { return tiles_.size() < 4 * static_cast<std::size_t>(n_threads_); }
  double least_ns() const { return 4.0 * static_cast<double>(memory_.n_cells * scores_.size()); }
  double estimated_ns() const { return fill_ns(rows_.size()) + least_ns(); }
  double estimated_ns(const Leaf& leaf) const { return leaf.n() + fill_ns(leaf.n()) / 2 + 2 * least_ns(); }

 private:
  double fill_ns(std::size_t n) const {
    return static_cast<double>(n) * static_cast<double>(lanes_.size() * scores_.size()) / 2;
  }
  template <class Body>
  void for_each_task(double ns, std::size_t n_tasks, Crew crew, Body&& body) const;
  Packed* of_score(const Leaf& leaf, std::size_t k) const { return leaf.histogram.get() + k * memory_.n_cells; }
  Packed* listed_of(const Leaf& leaf, std::size_t k) const { return of_score(leaf, k) + memory_.table.tiles.n_cells(); }
  void fill(const Leaf& leaf, const Leaf* large, Crew crew);
  void fill_tile(std::uint32_t tile, std::size_t k, const Leaf& leaf, const Leaf* large) const;
  VectorSplit search(const Leaf& leaf, bool is_counted, Crew crew);
  VectorSplit search_column(std::uint32_t f, const Leaf& leaf, const VectorTerms& terms, bool is_counted, int worker);
  const Packed* listed_cells(std::uint32_t f, const Leaf& leaf, std::size_t k, Packed total) const;

  const VectorGrowingTree& tree_;
  VectorMemory& memory_;
  const std::span<const ScoreTerms> scores_;
  std::vector<Row>& rows_;
  const int n_threads_;
  Interrupt& interrupt_;
  std::vector<std::uint32_t> tiles_, lanes_;  // in use
};

VectorTree grow_vector_tree(VectorMemory& memory, const BoostParams& params, std::uint64_t key,
                            std::span<const ScoreTerms> scores, std::vector<Row>& rows, Interrupt& interrupt);

}  // namespace spinney
