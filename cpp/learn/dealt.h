// Gradient boosting of rows that are dealt out to pieces, which may lie in other processes: the same trees, bit for bit, as
// of the same rows in one place, however they are dealt out. See boost/rows.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "boost/dealt_tree.h"
#include "boost/rows.h"
#include "learn/boosting_state.h"
#include "learn/piece.h"

namespace spinney {

// Carries questions to all pieces, each of which answers them in the order in which they are sent.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(const std::string& question) = 0;

  // Waits for the answers to the first question that was sent and not received yet, in the order of the pieces' rows. They
  // last until the next call.
  virtual std::vector<std::string_view> receive() = 0;
};

class DealtBoosting {
 public:
  // `weight` is of all rows; null: every row counts once. The pieces' scores are those after `n_done` rounds. A message is
  // worth this much work of a piece, in rows times columns: as long as a way to it and back takes.
  DealtBoosting(Coding coding, BoostingParams params, std::size_t n_rows, const double* weight, std::uint32_t n_done,
                double work_of_message);

  // What a piece is to know of all rows; its own place is left open.
  const TablePlace& of_all_rows() const { return whole_; }

  // One more round: a tree for each score. If it fails, it may be asked for again once the pieces are as they were.
  void advance(Way& way, Interrupt& interrupt);

  double training_loss() const { return training_loss_; }
  double held_out_loss() const { return held_out_loss_; }  // NaN: no rows are held out
  double out_of_bag_before() const { return before_; }
  double out_of_bag_after() const { return after_; }

  // Questions that bring a new piece to where those are that have seen all rounds.
  const std::vector<std::string>& history() const { return history_; }
  static std::string first_question();

  // Mean loss of the rows that pieces hold out, of what they answer to it.
  static double held_out_loss(std::span<const std::string_view> answers);

  const std::vector<Tree>& trees() const { return trees_; }  // without those done before
  std::uint32_t n_rounds() const { return round_; }
  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(part_of_.size()); }

 private:
  struct Drawn {  // of a round, by piece
    std::vector<std::uint64_t> first_row, n_in_bag, n_weighted, n_out_of_bag;
    std::size_t n_rows() const;
  };

  using Trees = std::vector<std::unique_ptr<DealtTree>>;
  class Growth;  // of some trees beside one another

  std::vector<MessageReader> readers(Way& way, std::string question, Interrupt& interrupt);
  void read_state(std::vector<MessageReader> pieces);
  Trees plant(Way& way, std::uint32_t first, std::uint32_t n, bool takes_all, Drawn& drawn, Interrupt& interrupt);
  void set_values(std::uint32_t first, const Trees& trees, std::vector<BoostedTree>& grown) const;
  std::string added(std::uint32_t first, const std::vector<BoostedTree>& grown, bool is_new, bool wants_state) const;
  double mean_out_of_bag(Way& way, const Drawn& drawn, Interrupt& interrupt);
  const BoostParams& tree_params(std::uint32_t k) const { return of_score_.empty() ? params_.tree : of_score_[k]; }

  Coding coding_;
  BoostingParams params_;
  TablePlace whole_;
  bool is_weighted_;
  double work_of_message_;
  std::vector<PlacedPart> parts_;
  std::vector<std::size_t> part_of_;  // by score
  std::vector<BoostParams> of_score_;
  std::vector<GradientSums> totals_;  // by score; empty: not known yet
  std::vector<double> least_gains_;   // by score: that the last tree made a split for
  double training_loss_, held_out_loss_, before_, after_;
  std::vector<std::string> history_;
  std::uint32_t round_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace spinney
