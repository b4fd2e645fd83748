// Distributed gradient boosting on partitioned rows: the trees are bit-identical to those grown in one process, for any
// partitioning. See boost/rows.h.
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

// Sends requests to all partitions, each of which answers them in order.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(const std::string& request) = 0;

  // Waits for the answers to the oldest open request, in partition order. They are valid until the next call.
  virtual std::vector<std::string_view> receive() = 0;
};

class PartitionedBoosting {
 public:
  // `weight` is of all rows; null: every row counts once. The partitions' scores are those after `n_done` rounds.
  // `work_of_message` is the work of a partition, in rows times columns, that takes as long as a round trip.
  PartitionedBoosting(Coding coding, BoostingParams params, std::size_t n_rows, const double* weight,
                      std::uint32_t n_done, double work_of_message);

  // The statistics of all rows that a partition needs; the caller sets its position.
  const TablePlace& of_all_rows() const { return whole_; }

  // Performs one more round: a tree for each score. A failed round may be repeated once the partitions have their
  // previous state.
  void advance(Channel& channel, Interrupt& interrupt);

  double training_loss() const { return training_loss_; }
  double held_out_loss() const { return held_out_loss_; }  // NaN: no validation set
  double out_of_bag_before() const { return before_; }
  double out_of_bag_after() const { return after_; }

  // The requests that bring a new partition to the current state.
  const std::vector<std::string>& history() const { return history_; }
  static std::string first_request();

  // Mean loss of the validation rows, from the partitions' answers.
  static double held_out_loss(std::span<const std::string_view> answers);

  const std::vector<Tree>& trees() const { return trees_; }  // without trees from before n_done
  std::uint32_t n_rounds() const { return round_; }
  std::uint32_t n_scores() const { return static_cast<std::uint32_t>(component_of_.size()); }

 private:
  struct Drawn {  // of a round
    std::vector<DrawnRows> of_partition;
    std::size_t n_rows() const;
  };

  using Trees = std::vector<std::unique_ptr<PartitionedTree>>;
  class Growth;  // grows several trees at the same time

  std::vector<MessageReader> readers(Channel& channel, std::string request, Interrupt& interrupt);
  void read_state(std::vector<MessageReader> partitions);
  Trees init_root(Channel& channel, std::uint32_t first, std::uint32_t n, bool takes_all, Drawn& drawn,
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
  std::vector<PlacedComponent> parts_;
  std::vector<std::size_t> component_of_;  // by score
  std::vector<BoostParams> of_score_;
  std::vector<GradientSums> totals_;  // by score; empty: unknown
  std::vector<double> least_gains_;   // by score: the gain of the last split of the previous tree
  double training_loss_, held_out_loss_, before_, after_;
  std::vector<std::string> history_;
  std::uint32_t round_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace spinney
