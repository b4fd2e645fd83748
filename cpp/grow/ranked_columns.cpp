#include "grow/ranked_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/read.h"

namespace spinney {

bool RankedColumns::fits(const Target& target, std::span<const Row> rows) {
  if (!is_class_rule(target.rule) || target.is_two_class() || target.input.n_outputs != 1) return false;
  std::int64_t most = 0, sum = 0;
  for (const Row r : rows) {
    most = std::max(most, target.fixed_weight_of(r));
    sum += target.fixed_weight_of(r);
  }
  return most <= ClassCounts::most_weight && sum <= INT32_MAX;
}

void RankedColumns::start(const OpenNode&, std::span<Row> rows) {
  const TargetInput& input = rules_.target.input;
  places_.assign(rows.begin(), rows.end());
  std::size_t most_values = 0;
  for (const RowRanks::Place& place : all_.places) most_values = std::max<std::size_t>(most_values, place.n_values);
  counts_.start(input.n_classes[0], most_values + 1, all_.n_flags);
  packed_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    packed_[i] = static_cast<std::uint32_t>(rules_.target.fixed_weight_of(rows[i])) << 8 |
                 static_cast<std::uint32_t>(input.codes[rows[i]]);
  spare_.resize(rows.size() + 16);
  if (all_.row_bytes <= most_copied)
    for (std::size_t i = 0; i < copies_.size(); ++i)
      copies_[i].bits.resize(std::min(rows.size() * all_.row_bytes, copy_bytes[i]));
  if (all_.n_flags == 0) return;
  flags_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) flags_[i] = all_.flags.data()[rows[i]];
  spare_flags_.resize(rows.size() + 16);
}

void RankedColumns::search(const OpenNode& node, std::span<const std::uint32_t> columns,
                           std::span<Candidate> candidates) {
  const bool is_small = finds_constants(node);
  draw_near(node);
  if (is_small) find_differences(node);
  read_.clear();
  std::uint64_t requested = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const RowRanks::Place& place = all_.places[columns[c]];
    candidates[c].score = no_score;
    candidates[c].constant = is_small && !differs(place);
    if (candidates[c].constant) continue;
    if (place.is_flag())
      requested |= std::uint64_t{1} << place.flag;
    else
      read_.push_back(columns[c]);
  }
  if (requested != 0) counts_.count_flags(flags_.data() + node.begin, packed_.data() + node.begin, node.n(), requested);
  if (!read_.empty()) read_ranks(node, read_);
  const Totals total{node.n(), node.stat.data()};
  for (std::size_t c = 0, at = 0; c < columns.size(); ++c) {
    if (candidates[c].constant) continue;
    if (const RowRanks::Place& place = all_.places[columns[c]]; place.is_flag()) {
      candidates[c] = counts_.search_flag(criterion_, place.flag, total, rules_.limits(node, columns[c]));
      continue;
    }
    const std::span<const std::uint16_t> ranks(ranks_.data() + at * node.n(), node.n());
    candidates[c] = counts_.search(criterion_, ranks, packed_.data() + node.begin, all_.places[columns[c]].n_values,
                                   total, rules_.limits(node, columns[c]));
    candidates[c].below = static_cast<std::uint32_t>(at++);
  }
}

std::size_t RankedColumns::partition(const OpenNode& node, const Choice& choice) {
  const Candidate& c = choice.candidate;
  const RowRanks::Place& place = all_.places[choice.feature];
  if (place.is_flag()) read_flag(node, place.flag);
  std::uint16_t* ranks = ranks_.data() + c.below * node.n();
  const auto missing = static_cast<std::uint16_t>(place.n_values);
  if (!c.missing_alone) find_neighbours(node, choice, ranks);
  if (c.missing_left) std::replace(ranks, ranks + node.n(), missing, std::uint16_t{0});
  const auto cut = static_cast<std::uint16_t>(c.missing_alone ? missing - 1 : c.code_below);
  kernels_.partition_by_rank(packed_.data() + node.begin, node.n(), ranks, cut, spare_.data());
  if (!flags_.empty())
    kernels_.partition_flags_by_rank(flags_.data() + node.begin, node.n(), ranks, cut, spare_flags_.data());
  return node.begin + kernels_.partition_by_rank(places_.data() + node.begin, node.n(), ranks, cut, spare_.data());
}

void RankedColumns::add(std::size_t begin, std::size_t end, std::int64_t* stat) const {
  for (std::size_t i = begin; i < end; ++i) {
    stat[0] += packed_[i] >> 8;
    stat[1 + (packed_[i] & 0xff)] += packed_[i] >> 8;
  }
}

SplitRecord RankedColumns::describe(const Choice& choice, bool left_heavier) {
  SplitRecord split = describe_sides(rules_, choice, left_heavier, {});
  split.threshold = choice.candidate.missing_alone ? std::numeric_limits<double>::infinity()
                                                   : cut_of(rules_.params, choice.feature, below_, above_);
  return split;
}

// Finds the nearest copy of the node's rows or creates it: once for the second-level cache, once for the first.
void RankedColumns::draw_near(const OpenNode& node) {
  bits_ = all_.bits.data();
  source_ = nullptr;
  const std::size_t n_bytes = node.n() * all_.row_bytes;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const bool fits_next = i + 1 < copies_.size() && n_bytes <= copies_[i + 1].bits.size();
    if (!copies_[i].holds(node)) {
      if (n_bytes > copies_[i].bits.size()) return;
      if (fits_next) continue;
      copy_rows(node, copies_[i]);
    }
    bits_ = copies_[i].bits.data();
    source_ = &copies_[i];
  }
}

void RankedColumns::copy_rows(const OpenNode& node, Copy& copy) {
  constexpr std::size_t ahead = 16;
  const std::size_t width = all_.row_bytes;
  const bool with_rows = !bins_.columns.empty();
  if (with_rows) copy.rows.resize(std::max<std::size_t>(copy.rows.size(), node.n()));
  std::uint32_t* const places = places_.data() + node.begin;
  std::uint8_t* out = copy.bits.data();
  for (std::size_t i = 0; i < node.n(); ++i, out += width) {
    if (i + ahead < node.n()) __builtin_prefetch(bits_ + places[i + ahead] * width);
    for (std::size_t byte = 0; byte < width; byte += 8) std::memcpy(out + byte, bits_ + places[i] * width + byte, 8);
    if (with_rows) copy.rows[i] = row_of(places[i]);
    places[i] = static_cast<std::uint32_t>(i);
  }
  copy.begin = node.begin;
  copy.end = node.end;
}

// The bits in which the node's rows differ from its first row: a column without any is constant, which is frequent for
// columns of few values in small nodes. A node that continues its search has them already.
void RankedColumns::find_differences(const OpenNode& node) {
  if (compared_begin_ == node.begin && compared_end_ == node.end) return;
  compared_begin_ = node.begin;
  compared_end_ = node.end;
  flag_differences_ = 0;
  for (std::size_t i = node.begin; all_.n_flags > 0 && i < node.end; ++i)
    flag_differences_ |= flags_[node.begin] ^ flags_[i];
  differences_.resize(all_.row_bytes);
  const auto bits_at = [&](std::size_t i, std::size_t byte) {
    std::uint64_t bits;
    std::memcpy(&bits, bits_ + places_[i] * all_.row_bytes + byte, sizeof bits);
    return bits;
  };
  for (std::size_t byte = 0; byte < all_.row_bytes; byte += 8) {
    const std::uint64_t first = bits_at(node.begin, byte);
    std::uint64_t different = 0;
    for (std::size_t i = node.begin + 1; i < node.end; ++i) different |= first ^ bits_at(i, byte);
    std::memcpy(differences_.data() + byte, &different, sizeof different);
  }
}

bool RankedColumns::differs(const RowRanks::Place& place) const {
  if (place.is_flag()) return (flag_differences_ >> place.flag & 1) != 0;
  std::uint32_t word;
  std::memcpy(&word, differences_.data() + place.byte, sizeof word);
  return (word >> place.shift & place.mask) != 0;
}

// As below, for a column that is a flag.
void RankedColumns::read_flag(const OpenNode& node, std::uint32_t flag) {
  ranks_.resize(std::max<std::size_t>(ranks_.size(), node.n()));
  const std::uint64_t* flags = flags_.data() + node.begin;
  for (std::size_t i = 0; i < node.n(); ++i) ranks_[i] = static_cast<std::uint16_t>(flags[i] >> flag & 1);
}

// Copies the node's ranks in these columns, one column after the other.
void RankedColumns::read_ranks(const OpenNode& node, std::span<const std::uint32_t> columns) {
  const std::size_t n = node.n();
  ranks_.resize(std::max(ranks_.size(), n * columns.size()));
  const std::uint32_t* places = places_.data() + node.begin;
  constexpr std::size_t chunk = 512;  // rows that stay in cache from one column to the next
  const std::size_t stride = all_.row_bytes / 8;
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t n_here = std::min(chunk, n - begin), ahead = std::min(n, begin + 2 * chunk);
    for (std::size_t i = begin + chunk; source_ == nullptr && i < ahead; ++i)
      __builtin_prefetch(bits_ + places[i] * all_.row_bytes);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const RowRanks::Place& place = all_.places[columns[c]];
      kernels_.read_ranks(bits_ + place.byte, stride, places + begin, n_here, place.shift, place.mask,
                          ranks_.data() + c * n + begin);
    }
  }
}

// The values next to the cut. The rows of a bin have the same rank and different values.
void RankedColumns::find_neighbours(const OpenNode& node, const Choice& choice, const std::uint16_t* ranks) {
  const std::uint32_t f = choice.feature, below = choice.candidate.code_below, above = choice.candidate.above;
  if (!bins_.has(rules_.table, f)) {
    below_ = all_.values[f][below];
    above_ = all_.values[f][above];
    return;
  }
  below_ = -std::numeric_limits<double>::infinity();
  above_ = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < node.n(); ++i) {
    if (ranks[i] != below && ranks[i] != above) continue;
    const double v = value_at(rules_.table.columns[f], row_of(places_[node.begin + i]));
    (ranks[i] == below ? below_ : above_) = ranks[i] == below ? std::max(below_, v) : std::min(above_, v);
  }
}

}  // namespace spinney
