// Gradient boosting of rows that are partitioned among processes: the same trees, bit for bit, as
// of the same rows in one place, however they are partitioned. See boost/rows.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "boost/partitioned_tree.h"
#include "learn/boosting_state.h"

namespace spinney {

// Carries requests to all partitions, each of which answers them in the order in which they are sent.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(const std::string& request) = 0;

  // Waits for the answers to the first request that was sent and not received yet, in the order of the partitions' rows. They
  // last until the next call.
  virtual std::vector<std::string_view> receive() = 0;
};

class PartitionedBoosting {
 public:
  // `weight` is of all rows; null: every row counts once. The partitions' scores are those after `n_done` rounds. A message is
  // worth this much work of a partition, in rows times columns: as long as a way to it and back takes.
  PartitionedBoosting(Coding coding, BoostingParams params, std::size_t n_rows, const double* weight,
                      std::uint32_t n_done, double work_of_message);

  // What a partition is to know of all rows; its own place is left open.
  const TablePlace& of_all_rows() const { return whole_; }

  // One more round: a tree for each score. If it fails, it may be asked for again once the partitions are as they were.
  void advance(Channel& channel, Interrupt& interrupt);

  double training_loss() const { return training_loss_; }
  double held_out_loss() const { return held_out_loss_; }  // NaN: no rows are held out
  double out_of_bag_before() const { return before_; }
  double out_of_bag_after() const { return after_; }

  // Requests that bring a new partition to where those are that have seen all rounds.
  const std::vector<std::string>& history() const { return history_; }
  static std::string first_request();

  // Mean loss of the rows that partitions hold out, of what they answer to it.
  static double held_out_loss(std::span<const std::string_view> answers);

  const std::vector<Tree>& trees() const { return trees_; }  // without those done before
  std::uint32_t n_rounds() const { return round_; }
  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(part_of_.size()); }

 private:
  struct Drawn {  // of a round
    std::vector<DrawnRows> of_partition;
    std::size_t n_rows() const;
  };

  using Trees = std::vector<std::unique_ptr<PartitionedTree>>;
  class Growth;  // of some trees beside one another

  std::vector<MessageReader> readers(Channel& channel, std::string request, Interrupt& interrupt);
  void read_state(std::vector<MessageReader> partitions);
  Trees plant(Channel& channel, std::uint32_t first, std::uint32_t n, bool takes_all, Drawn& drawn,
              Interrupt& interrupt);
  void set_values(std::uint32_t first, const Trees& trees, std::vector<BoostedTree>& grown) const;
  std::string added(std::uint32_t first, const std::vector<BoostedTree>& grown, bool is_new, bool wants_state) const;
  double mean_out_of_bag(Channel& channel, const Drawn& drawn, Interrupt& interrupt);
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
