#include "learn/partition.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "learn/chunks.h"

namespace spinney {

Partition::Partition(BoostingRows rows, BoostingRows held_out, BoostingParams params,
                     std::shared_ptr<const CodedTable> coded, const TablePlace& place)
    : state_(std::move(rows), std::move(held_out), std::move(params), place),
      gradients_(state_),
      sample_(state_, gradients_),
      leaves_(state_, gradients_, sample_),
      local_(state_, gradients_, sample_, leaves_) {
  state_.coded = std::move(coded);
  const std::size_t n = state_.n_rows();
  if (place.first_row % chunk_rows != 0 || place.first_row + n > place.n_all_rows) refuse_request();
  if (place.first_row + n < place.n_all_rows && n % chunk_rows != 0) refuse_request();
}

std::string Partition::answer(std::string_view request, Interrupt& interrupt) {
  MessageReader from(request);
  MessageWriter to;
  switch (static_cast<Request>(from.get<std::uint8_t>())) {
    case Request::gradients:
      put_state(to);
      break;
    case Request::plant:
      local_.plant(from, to, interrupt);
      break;
    case Request::split:
      local_.split(from, to, interrupt);
      local_.leaf_sums(from, to);
      break;
    case Request::leaf_sums:
      local_.leaf_sums(from, to);
      break;
    case Request::add:
      add(from, to);
      break;
    case Request::out_of_bag:
      out_of_bag(from, to);
      break;
    case Request::held_scores:
      put_scores(state_.held_out.scores, to);
      break;
    case Request::keep_scores:
      kept_ = state_.held_out.scores;
      break;
    case Request::kept_scores:
      put_scores(kept_, to);
      break;
    default:
      refuse_request();
  }
  return to.take();
}

void Partition::put_state(MessageWriter& to) {
  std::vector<LossSum> losses;
  to.put_run(gradients_.fill_chunks(&losses));
  to.put_run(losses);
  to.put_run(state_.held_out.table == nullptr ? std::vector<LossSum>{} : gradients_.chunk_losses(state_.held_out));
}

// Trees come with the numbers of their leaves if they were grown on these rows, else all rows find their way.
void Partition::add(MessageReader& from, MessageWriter& to) {
  const bool wants_state = from.get<std::uint8_t>() != 0;
  for (auto n_trees = from.get<std::uint32_t>(); n_trees > 0; --n_trees) {
    const auto k = from.get<std::uint32_t>();
    BoostedTree grown;
    Tree& tree = grown.tree;
    tree.feature = from.get_run<std::int32_t>();
    tree.right = from.get_run<std::uint32_t>();
    tree.flags = from.get_run<std::uint8_t>();
    tree.set = from.get_run<std::uint32_t>();
    tree.sets = from.get_run<std::uint32_t>();
    tree.value = from.get_run<double>();
    grown.cut = from.get_run<std::uint32_t>();
    const std::vector<std::uint32_t> nodes = from.get_run<std::uint32_t>(), names = from.get_run<std::uint32_t>();
    if (k >= state_.n_scores() || nodes.size() != names.size()) refuse_request();
    if (names.empty()) {
      std::vector<Row> every(state_.n_rows());
      std::iota(every.begin(), every.end(), Row{0});
      leaves_.walk({&grown, 1}, k, state_.coded->codes, every, state_.rows);
    } else {
      local_.add(grown, k, nodes, names);
      leaves_.walk({&grown, 1}, k, state_.coded->codes, sample_.out_of_bag(), state_.rows);
    }
    if (state_.held_out.table != nullptr)
      leaves_.walk({&grown, 1}, k, state_.coded->codes, state_.judged, state_.held_out);
  }
  if (!wants_state) return;
  local_.end_round();
  put_state(to);
}

// Every so many-th row of the table's list of rows out of bag: those with a weight, then those without.
void Partition::out_of_bag(MessageReader& from, MessageWriter& to) {
  const auto step = std::max<std::uint64_t>(1, from.get<std::uint64_t>());
  const auto n_all = from.get<std::uint64_t>();
  const auto places =
      from.get_run<std::uint64_t>();  // by partition: its first row, how many before it with and without weight
  const std::size_t n_weighted = local_.n_weighted_out_of_bag();
  for (std::size_t p = 0; p + 2 < places.size(); p += 3) {
    if (places[p] != state_.place.first_row) continue;
    for (std::size_t i = 0; i < sample_.out_of_bag().size(); ++i) {
      const std::uint64_t place = i < n_weighted ? places[p + 1] + i : n_all + places[p + 2] + (i - n_weighted);
      if (place % step != 0) continue;
      const Row r = sample_.out_of_bag()[i];
      to.put<std::uint64_t>(place / step);
      for (const PlacedPart& part : state_.parts) to.put<double>(state_.target_of(part, state_.rows)[r]);
      to.put<double>(state_.rows.weight == nullptr ? 1.0 : state_.rows.weight[r]);
      for (const auto& scores : state_.rows.scores) to.put<double>(scores[r]);
    }
  }
}

void Partition::put_scores(const std::vector<RowVector<double>>& scores, MessageWriter& to) const {
  if (scores.size() != state_.n_scores()) refuse_request();
  for (const auto& of_score : scores) to.put_all(std::span<const double>(of_score));
}

}  // namespace spinney
