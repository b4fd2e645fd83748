// Gradient boosting: rounds of trees, each fitted to the gradient of a loss at the scores so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/spilled_vector.h"
#include "boost/coded_table.h"
#include "boost/grow.h"
#include "boost/kernels.h"
#include "boost/roots.h"
#include "learn/boosting_options.h"
#include "learn/leaf_lines.h"
#include "learn/part_losses.h"

namespace spinney {

// Rows with their targets. Scores are by column, then by row; they start where the caller says.
struct BoostingRows {
  const Table* table = nullptr;
  const double* target = nullptr;  // part by part; multinomial: the class
  const double* weight = nullptr;  // null: every row counts once
  std::vector<RowVector<double>> scores;
};

// The key of a tree's random streams.
std::uint64_t key_of_boosted_tree(std::uint64_t seed, std::uint32_t round, std::uint32_t score);

class Boosting {
 public:
  // Tables, targets and weights must outlive this. `held_out.table` may be null, or the same table: then the rows held
  // out are those that have a weight there. `coded` are these tables in codes; null: they are coded here.
  Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
           Interrupt& interrupt, std::shared_ptr<const CodedTable> coded = nullptr);
  ~Boosting();

  // Gradients and hessians of the present scores, by score column and row, not yet times the rows' weights: a loss from
  // outside has them set before each round.
  void set_gradients(const double* gradients, const double* hessians);

  // One more round: a tree for each score column; with vector leaves these are the same but for their
  // values. `judges_out_of_bag`: whether the losses of rows not drawn are wanted.
  void advance(Interrupt& interrupt, bool judges_out_of_bag = true);

  // Sets the leaves of an earlier tree of a score column anew by these rows, and adds it to their scores: the trees of all
  // columns in turn make a round. `leaf` is by row.
  Tree refit(std::uint32_t k, const Tree& old, std::span<const std::uint32_t> leaf, double decay);

  // Scores without the rounds that the next one will drop.
  std::vector<RowVector<double>> scores_to_fit() const;

  // By round: what its trees are multiplied by once so many rounds are done, as later ones have dropped them.
  std::vector<double> worths(std::uint32_t n_rounds) const;

  // Mean loss at the present scores, without what does not depend on them; NaN, here and below, if it is one from outside.
  double training_loss();  // the gradients of the next round come with it
  double held_out_loss() const { return mean_loss(held_out_); }

  // Mean loss, before and after the last round, of rows that it did not draw; NaN where it drew all.
  struct OutOfBagLoss {
    double before, after;
  };
  OutOfBagLoss out_of_bag_loss() const { return {loss_before_, mean_out_of_bag()}; }
  std::span<const Row> out_of_bag() const { return out_of_bag_; }  // and rows of no weight

  const std::vector<Tree>& trees() const { return trees_; }
  const BoostingRows& rows() const { return rows_; }
  const BoostingRows& held_out() const { return held_out_; }
  std::uint32_t n_rounds() const { return round_; }
  const std::vector<std::vector<std::uint32_t>>& dropped() const { return dropped_; }  // by round, if any may be
  int n_threads() const { return params_.tree.n_threads; }

 protected:
  // Rows `first_row` … of a table whose other rows are elsewhere, and what is known of all of them.
  struct Share {
    std::size_t first_row = 0, n_all_rows = 0;
    double weight_scale = 1, count_by_weight = 1;
  };
  Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::shared_ptr<const CodedTable> coded,
           const Share& share);

  struct Workspace;  // of a tree being grown
  struct VectorSpace;
  using Part = PlacedPart;

  void place_parts();
  void weigh_rows();
  void draw_rows();
  void part_by_chance();
  void add_weightless();
  void draw_largest_and_some(std::uint64_t key);
  void measure_rows();
  void weigh_drawn_rows();
  bool begins_step() const { return round_ % params_.n_parallel_trees == 0; }
  const RowVector<Row>& rows_of_round() const { return params_.subsample < 1 ? in_bag_ : all_; }
  void fill_pairs(std::vector<LossSum>* losses);
  std::vector<GradientSums> fill_chunks(std::vector<LossSum>* losses);
  void add_up(const std::vector<GradientSums>& sums);
  void find_bend(Part& part) const;
  void fill_pairs_of(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums, LossSum* loss);
  void fill_pairs_of_normal(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums, LossSum* loss);
  void fill_pairs_of_classes(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums, LossSum* loss);
  BoostedTree grow(std::uint32_t k, Workspace& space, Interrupt& interrupt);
  void grow_vector(Interrupt& interrupt);
  void grow_round(Interrupt& interrupt, bool judges_out_of_bag);
  void keep(std::vector<BoostedTree> grown);
  std::vector<std::uint32_t> draw_drops() const;
  void take_off(std::span<const std::uint32_t> rounds);
  void put_back(std::vector<std::uint32_t> rounds);
  void add_rounds(std::span<const std::uint32_t> rounds, const std::vector<double>& worth, double factor,
                  const Codes& codes, std::span<const Row> rows, std::vector<RowVector<double>>& scores) const;
  std::uint32_t n_trees_apart() const;
  std::uint64_t key_of_tree(std::uint32_t k) const { return key_of_boosted_tree(params_.tree.seed, round_, k); }
  void fill_roots(Interrupt& interrupt);
  Units quantise(std::uint32_t k, Packed* packed) const;
  void set_values(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const;
  double refitted_value(const GrownLeaf& leaf, std::uint32_t k, std::span<const Row> rows) const;
  void weigh(BoostedTree& grown, std::span<const Row> rows) const;
  void add_to_scores(const BoostedTree& grown, std::uint32_t k, std::span<const Row> rows);
  void add_lines(BoostedTree& grown, std::uint32_t k, std::span<const Row> rows) const;
  void walk(std::span<const BoostedTree> grown, std::uint32_t first, const Codes& codes, std::span<const Row> rows,
            BoostingRows& to) const;
  void walk_others(std::span<const BoostedTree> grown, std::uint32_t first);
  double mean_loss(const BoostingRows& rows) const;
  double mean_out_of_bag() const;
  std::vector<LossSum> chunk_losses(const BoostingRows& rows) const;
  LossSum sum_of_losses(const BoostingRows& rows, std::size_t begin, std::size_t end) const;
  bool is_outside() const { return traits_of(parts_[0].loss).is_outside; }
  const Part& part_of(std::uint32_t k) const { return parts_[part_of_[k]]; }
  const double* target_of(const Part& part, const BoostingRows& rows) const;
  const BoostParams& tree_params(std::uint32_t k) const { return of_score_.empty() ? params_.tree : of_score_[k]; }
  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(part_of_.size()); }
  std::size_t n_rows() const { return rows_.table->n_rows; }
  static void touch(const BoostingRows& rows, std::size_t n);  // all that is known of so many rows is about to be read
  void touch(std::size_t n_bytes) const {
    if (rows_.table->spill) rows_.table->spill->touch(n_bytes);
  }
  void average(Tree& tree) const;
  double stands_for(Row r) const {
    return params_.draws_by_gradient ? std::max(1.0, whole_size_ / static_cast<double>(sizes_[r])) : 1.0;
  }
  double weight_of(Row r) const { return (rows_.weight == nullptr ? 1.0 : rows_.weight[r]) * stands_for(r); }

  BoostingRows rows_, held_out_;
  BoostingParams params_;
  std::vector<Part> parts_;
  std::vector<std::size_t> part_of_;   // by score
  std::vector<BoostParams> of_score_;  // where trees of different scores are grown by different rules
  std::shared_ptr<const CodedTable> coded_;
  std::vector<std::unique_ptr<Workspace>> spaces_;  // by thread that grows a tree of its own; the first always
  std::unique_ptr<VectorSpace> vector_space_;
  std::unique_ptr<RootHistograms> roots_;            // where the trees of a round are planted together
  std::vector<Units> units_;                         // of the pairs there, by class
  RowVector<Row> all_, in_bag_, out_of_bag_;         // all_: rows of positive weight
  RowVector<Row> judged_;                            // rows held out
  std::vector<LargeArray<Pair>> pairs_;              // by class
  std::vector<GradientSums> totals_;                 // by class
  bool has_pairs_ = false;                           // pairs_ and totals_ are those of the present scores
  double loss_before_ = 0;                           // the last round, of the rows out of bag
  std::vector<float> sizes_;                         // of the rows' gradients, where these say which are drawn
  double whole_size_ = 0;                            // a row of which is drawn for certain
  std::vector<RowVector<double>> step_scores_;       // before the rounds that belong together, if leaves are refitted
  double step_share_ = 1;                            // of a step, where its rows have lost others
  std::vector<std::vector<std::uint32_t>> cuts_;     // by tree, if rounds may be dropped
  std::vector<std::vector<std::uint32_t>> dropped_;  // by round
  double weight_scale_ = 1;
  double even_weight_ = 0;  // that all rows of positive weight have, as those of a fold; 0: they differ, or have none
  std::size_t first_row_ = 0, n_all_rows_ = 0;  // where a part of a table begins, and the whole table's rows
  std::uint32_t round_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace spinney
