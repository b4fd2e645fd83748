#include "criterion/log_rank.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>

#include "base/any_order.h"
#include "base/log_exp.h"

namespace spinney {

namespace {

__extension__ using Int128 = __int128;

constexpr double weight_steps = 65536;  // of a weight of 1, unless weights are integers
constexpr int digits = 50;              // binary, of a sum over event times

std::size_t column_of(const UserCriterion::Rows& rows, std::size_t i, std::size_t column) {
  return static_cast<std::size_t>(rows.y[i * LogRank::n_of_row + column]);
}

// A sum up to each event time of a node, as integers.
struct Cumulative {
  std::vector<std::int64_t> at;  // by number of event times
  double unit = 1;

  void fix(std::span<const double> sums, int bits) {
    int exponent = 0;
    std::frexp(sums.back(), &exponent);
    const double scale = std::ldexp(1.0, std::clamp(bits - exponent, -900, 900));
    unit = 1 / scale;
    at.resize(sums.size());
    for (std::size_t s = 0; s < sums.size(); ++s) at[s] = std::llround(sums[s] * scale);
  }
};

// The times of a node's rows by number of its event times, and sums over these times for one cause.
class NodeTimes {
 public:
  struct Row {
    std::uint32_t time, entry, cause;
    std::int64_t weight;
  };

  void read(const UserCriterion::Rows& y, std::size_t n_times, double steps) {
    find_event_times(y, n_times);
    rows.resize(y.n);
    at_risk_.assign(n_events() + 2, 0);
    total_weight_ = 0;
    for (std::size_t i = 0; i < y.n; ++i) {
      Row& row = rows[i];
      row.time = events_up_to(column_of(y, i, LogRank::time));
      row.entry = events_up_to(column_of(y, i, LogRank::entry));
      row.cause = static_cast<std::uint32_t>(column_of(y, i, LogRank::cause));
      row.weight = std::llround(y.weight[i] * steps);
      at_risk_[row.entry + 1] += row.weight;
      at_risk_[row.time + 1] -= row.weight;
      total_weight_ += row.weight;
    }
    std::partial_sum(at_risk_.begin(), at_risk_.end(), at_risk_.begin());
    steps_ = steps;
  }

  // Returns whether a row has an event of this cause.
  bool look_at(std::uint32_t cause) {
    const std::size_t n = n_events();
    events_.assign(n + 1, 0);
    std::int64_t total = 0;
    for (const Row& row : rows)
      if (row.cause == cause) {
        events_[row.time] += row.weight;
        total += row.weight;
      }
    if (total == 0) return false;
    for (auto& sums : sums_) sums.assign(n + 1, 0.0);
    for (std::size_t s = 1; s <= n; ++s) {
      const double Y = static_cast<double>(at_risk_[s]) / steps_, d = static_cast<double>(events_[s]) / steps_;
      const double c = Y > 1 ? d * std::min(1.0, (Y - d) / (Y - 1)) : 0.0;
      sums_[0][s] = sums_[0][s - 1] + (d > 0 ? d / Y : 0.0);
      sums_[1][s] = sums_[1][s - 1] + (d > 0 ? c / Y : 0.0);
      sums_[2][s] = sums_[2][s - 1] + (d > 0 ? c / Y / Y : 0.0);
    }
    hazard.fix(sums_[0], digits);
    linear.fix(sums_[1], digits);
    const int weight_bits = std::bit_width(static_cast<std::uint64_t>(total_weight_));
    quadratic.fix(sums_[2], std::min(60, 122 - 2 * weight_bits));
    return true;
  }

  std::size_t n_events() const { return event_times_.size(); }
  double steps() const { return steps_; }

  std::vector<Row> rows;
  Cumulative hazard, linear, quadratic;  // sums of d / Y, of c / Y and of c / Y²

 private:
  void find_event_times(const UserCriterion::Rows& y, std::size_t n_times) {
    event_times_.clear();
    for (std::size_t i = 0; i < y.n; ++i)
      if (column_of(y, i, LogRank::cause) > 0)
        event_times_.push_back(static_cast<std::uint32_t>(column_of(y, i, LogRank::time)));
    std::sort(event_times_.begin(), event_times_.end());
    event_times_.erase(std::unique(event_times_.begin(), event_times_.end()), event_times_.end());
    up_to_.clear();
    if (y.n < n_times / 8) return;  // few rows: a search by row is faster
    up_to_.assign(n_times + 1, 0);
    for (const std::uint32_t t : event_times_) up_to_[t] = 1;
    std::partial_sum(up_to_.begin(), up_to_.end(), up_to_.begin());
  }

  // Of the training rows' first t event times, the number at which this node has an event.
  std::uint32_t events_up_to(std::size_t t) const {
    if (!up_to_.empty()) return up_to_[t];
    return static_cast<std::uint32_t>(std::upper_bound(event_times_.begin(), event_times_.end(), t) -
                                      event_times_.begin());
  }

  std::vector<std::uint32_t> event_times_, up_to_;
  std::vector<std::int64_t> at_risk_, events_;
  std::vector<double> sums_[3];
  std::int64_t total_weight_ = 0;
  double steps_ = 1;
};

// The rows added so far, by time: for any time a, the sum over them of their weight times K(a, time) - K(a, entry).
class PairSums {
 public:
  void clear(const Cumulative& kernel) {
    kernel_ = &kernel;
    weight_.assign(kernel.at.size(), 0);
    product_.assign(kernel.at.size(), 0);
    total_ = 0;
  }
  void add(std::uint32_t time, std::int64_t weight) {
    if (time == 0) return;  // K is 0
    const Int128 product = static_cast<Int128>(weight) * kernel_->at[time];
    total_ += weight;
    for (std::size_t i = time; i < weight_.size(); i += i & (~i + 1)) {
      weight_[i] += weight;
      product_[i] += product;
    }
  }
  Int128 up_to(std::uint32_t time) const {
    std::int64_t weight = 0;
    Int128 product = 0;
    for (std::size_t i = time; i > 0; i &= i - 1) {
      weight += weight_[i];
      product += product_[i];
    }
    return product + static_cast<Int128>(kernel_->at[time]) * (total_ - weight);
  }

 private:
  const Cumulative* kernel_ = nullptr;
  std::vector<std::int64_t> weight_;  // Fenwick trees
  std::vector<Int128> product_;
  std::int64_t total_ = 0;
};

// Twelve digits, so that cuts of equal goodness tie whichever side is summed.
double rounded(double x) {
  constexpr std::uint64_t cut_off = 13;
  return std::bit_cast<double>((std::bit_cast<std::uint64_t>(x) + (1ull << (cut_off - 1))) >> cut_off << cut_off);
}

// Adds the statistic of each cut for the cause that `node` looks at.
void add_statistics(const NodeTimes& node, std::uint32_t cause, PairSums& pairs, double* goodness) {
  pairs.clear(node.quadratic);
  Int128 n_events = 0, expected = 0, linear = 0, quadratic = 0;
  const double steps = node.steps();
  const auto between = [](const Cumulative& sums, const NodeTimes::Row& row) {
    return sums.at[row.time] - sums.at[row.entry];
  };
  for (std::size_t i = 0; i + 1 < node.rows.size(); ++i) {
    const NodeTimes::Row& row = node.rows[i];
    if (row.cause == cause) n_events += row.weight;
    expected += static_cast<Int128>(row.weight) * between(node.hazard, row);
    linear += static_cast<Int128>(row.weight) * between(node.linear, row);
    const Int128 with_others = pairs.up_to(row.time) - pairs.up_to(row.entry);
    quadratic += row.weight * (2 * with_others + static_cast<Int128>(row.weight) * between(node.quadratic, row));
    pairs.add(row.time, row.weight);
    pairs.add(row.entry, -row.weight);
    const double U = (static_cast<double>(n_events) - static_cast<double>(expected) * node.hazard.unit) / steps;
    const double first = static_cast<double>(linear) * node.linear.unit / steps;
    const double V = first - static_cast<double>(quadratic) * node.quadratic.unit / (steps * steps);
    if (V > 0x1p-40 * first) goodness[i] += U * U / V;  // else one side has no row at risk of an event
  }
}

}  // namespace

double LogRank::evaluate(const Rows& rows, double* value) const {
  const std::size_t p = n_values;
  double total = 0, heaviest = 0;
  for (std::size_t i = 0; i < rows.n; ++i) {
    total += rows.weight[i];
    heaviest = std::max(heaviest, rows.weight[i]);
  }
  const double count = counts_ ? total : static_cast<double>(rows.n), factor = counts_ ? 1.0 : heaviest;
  const auto sum_of = [&](double largest, auto&& term) {  // term(i), weighted
    AnyOrderSum sum(largest * factor, count);
    for (std::size_t i = 0; i < rows.n; ++i) {
      if (counts_)
        sum.add(term(i), static_cast<std::int64_t>(rows.weight[i]));
      else
        sum.add(term(i) * rows.weight[i]);
    }
    return sum.value();
  };
  double deviance = 0;
  for (std::size_t j = 0; j < p; ++j) {
    const auto expected = [&](std::size_t i) {
      return hazard_[column_of(rows, i, time) * p + j] - hazard_[column_of(rows, i, entry) * p + j];
    };
    const auto has_event = [&](std::size_t i) { return column_of(rows, i, cause) == j + 1; };
    const double D = sum_of(1.0, [&](std::size_t i) { return has_event(i) ? 1.0 : 0.0; });
    const double E = sum_of(hazard_[n_times() * p + j] + 1, expected);
    value[j] = (D + 1) / (E + 1);
    if (D > 0)
      deviance -= 2 * (sum_of(1000.0, [&](std::size_t i) { return has_event(i) ? log_of(expected(i)) : 0.0; }) +
                       D * log_of(D / E));
  }
  return deviance;
}

void LogRank::split(const Rows& rows, const double*, double* goodness) const {
  static thread_local NodeTimes node;
  static thread_local PairSums pairs;
  node.read(rows, n_times(), counts_ ? 1.0 : weight_steps);
  std::fill_n(goodness, rows.n - 1, 0.0);
  for (std::uint32_t j = 1; j <= n_values; ++j)
    if (node.look_at(j)) add_statistics(node, j, pairs, goodness);
  for (std::size_t i = 0; i + 1 < rows.n; ++i) goodness[i] = rounded(goodness[i]);
}

// Groups are ordered by their relative hazard, of each cause in turn; the order with the best cut is used.
bool LogRank::split_groups(const Rows& rows, const double* group, std::size_t n_groups, std::uint32_t* order,
                           double* goodness) const {
  std::vector<std::size_t> begin{0};
  for (std::size_t i = 1; i < rows.n; ++i)
    if (group[i] != group[i - 1]) begin.push_back(i);
  begin.push_back(rows.n);
  std::vector<double> value(n_groups * n_values);
  const auto rows_of = [&](std::size_t g) {
    return Rows{rows.y + begin[g] * n_of_row, rows.weight + begin[g], begin[g + 1] - begin[g]};
  };
  for (std::size_t g = 0; g < n_groups; ++g) evaluate(rows_of(g), value.data() + g * n_values);
  double best = -1;
  std::vector<std::uint32_t> tried(n_groups);
  std::vector<double> y, weight, by_row(rows.n), found(n_groups);
  for (std::size_t j = 0; j < n_values; ++j) {
    std::iota(tried.begin(), tried.end(), 0u);
    std::stable_sort(tried.begin(), tried.end(), [&](std::uint32_t a, std::uint32_t b) {
      return value[a * n_values + j] < value[b * n_values + j];
    });
    y.clear();
    weight.clear();
    for (const std::uint32_t g : tried) {
      const Rows part = rows_of(g);
      y.insert(y.end(), part.y, part.y + part.n * n_of_row);
      weight.insert(weight.end(), part.weight, part.weight + part.n);
    }
    split({y.data(), weight.data(), rows.n}, nullptr, by_row.data());
    std::size_t end = 0;
    for (std::size_t g = 0; g + 1 < n_groups; ++g) {
      end += rows_of(tried[g]).n;
      found[g] = by_row[end - 1];
    }
    const double highest = *std::max_element(found.begin(), found.end() - 1);
    if (!(highest > best)) continue;
    best = highest;
    std::copy(tried.begin(), tried.end(), order);
    std::copy(found.begin(), found.end() - 1, goodness);
  }
  return true;
}

}  // namespace spinney
