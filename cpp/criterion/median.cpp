#include "criterion/median.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "criterion/weighted_sum.h"

namespace spinney {

double summarise_median(const Target& target, std::span<const Row> rows, std::size_t k, double* value) {
  const std::size_t p = target.input.n_outputs;
  const auto y = [&](Row r) { return target.input.y[r * p + k]; };
  std::vector<Row> order(rows.begin(), rows.end());
  std::stable_sort(order.begin(), order.end(), [&](Row a, Row b) { return y(a) < y(b); });
  std::int64_t total = 0, below = 0;
  for (const Row r : order) total += target.fixed_weight_of(r);
  std::size_t i = 0;
  for (; i < order.size(); ++i) {
    below += target.fixed_weight_of(order[i]);
    if (below >= total - below) break;  // at least half the weight is at or below
  }
  const double low = y(order[i]);
  const double high = below == total - below && i + 1 < order.size() ? y(order[i + 1]) : low;
  const double median = low / 2 + high / 2;
  *value = low == high ? low : median;
  const double furthest = std::max(y(order.back()) - *value, *value - y(order.front()));
  const double loss = weighted_sum(target, rows, total, furthest, [&](Row r) { return std::abs(y(r) - *value); });
  return loss / static_cast<double>(total);
}

void RunningMedian::prepare(const Target& target, std::span<const Row> rows, std::size_t k) {
  const std::size_t p = target.input.n_outputs, n = rows.size();
  const auto y = [&](std::uint32_t i) { return target.input.y[rows[i] * p + k]; };
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0u);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return y(a) < y(b); });
  rank_.resize(n);
  weight_of_.resize(n);
  y_.clear();
  for (const std::uint32_t i : order_) {
    if (y_.empty() || y_.back() != y(i)) y_.push_back(y(i));
    rank_[i] = static_cast<std::uint32_t>(y_.size() - 1);
    weight_of_[i] = target.fixed_weight_of(rows[i]);
  }
  const double offset = y_.front() / 2 + y_.back() / 2, reach = y_.back() - offset;
  int exponent = 0;
  std::frexp(reach, &exponent);
  const double scale = reach > 0 ? std::ldexp(1.0, std::clamp(60 - exponent, -1000, 1000)) : 1.0;
  y_unit_ = 1 / scale;
  fixed_y_.resize(y_.size());
  for (std::size_t j = 0; j < y_.size(); ++j) fixed_y_[j] = std::llround((y_[j] - offset) * scale);
  clear();
}

void RunningMedian::clear() {
  weights_.assign(y_.size() + 1, 0);
  sums_.assign(y_.size() + 1, 0);
  total_weight_ = 0;
  total_sum_ = 0;
}

void RunningMedian::add(std::uint32_t position) {
  const std::int64_t w = weight_of_[position];
  const Wide wy = static_cast<Wide>(w) * fixed_y_[rank_[position]];
  total_weight_ += w;
  total_sum_ += wy;
  for (std::size_t j = rank_[position] + 1; j < weights_.size(); j += j & (~j + 1)) {
    weights_[j] += w;
    sums_[j] += wy;
  }
}

// The first rank with at least half the weight at or below it.
std::size_t RunningMedian::find_median() const {
  std::size_t at = 0;
  std::int64_t below = 0;
  for (std::size_t step = std::bit_floor(y_.size()); step > 0; step /= 2)
    if (at + step < weights_.size() && below + weights_[at + step] < total_weight_ - below - weights_[at + step]) {
      at += step;
      below += weights_[at];
    }
  return std::min(at, y_.size() - 1);
}

double RunningMedian::deviation() const {
  if (total_weight_ == 0) return 0;
  const std::size_t rank = find_median();
  std::int64_t weight_below = 0;
  Wide sum_below = 0;
  for (std::size_t j = rank + 1; j > 0; j -= j & (~j + 1)) {
    weight_below += weights_[j];
    sum_below += sums_[j];
  }
  const Wide weight_above = total_weight_ - weight_below;
  const Wide deviation = static_cast<Wide>(fixed_y_[rank]) * (static_cast<Wide>(weight_below) - weight_above) -
                         sum_below + (total_sum_ - sum_below);
  return static_cast<double>(deviation) * y_unit_;
}

double RunningMedian::median() const {
  const std::size_t rank = find_median();
  std::int64_t below = 0;
  for (std::size_t j = rank + 1; j > 0; j -= j & (~j + 1)) below += weights_[j];
  if (below != total_weight_ - below || rank + 1 >= y_.size()) return y_[rank];
  std::size_t next = rank + 1;  // the next rank that is present
  const auto count_at = [&](std::size_t r) {
    std::int64_t c = 0;
    for (std::size_t j = r + 1; j > 0; j -= j & (~j + 1)) c += weights_[j];
    return c;
  };
  while (next + 1 < y_.size() && count_at(next) == below) ++next;
  return count_at(next) == below ? y_[rank] : y_[rank] / 2 + y_[next] / 2;
}

}  // namespace spinney
