#include "loss/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/math.h"
#include "base/pool.h"
#include "loss/pairs.h"

namespace spinney {

namespace {

constexpr std::size_t width = pairs_at_a_time;

const PairKernels& kernels() {
  return by_isa([](auto isa) -> const PairKernels& { return pair_kernels_of(isa); });
}

constexpr double farthest = 300;      // scores of a list are clipped at this distance from its middle
constexpr double near_scores = 0.01;  // limits the weight of pairs with close scores
constexpr double near_pairs = 0.1;    // the same where all ranks of a list count equally
constexpr std::size_t most_places = 1'000'000;

}  // namespace

// The rows of a list, in some order; arrays have additional rows of weight 0.
struct RankedLists::Scratch {
  struct Ranked {
    double score;
    Row row;
  };
  std::size_t n = 0;
  std::vector<Ranked> order;
  std::vector<double> score, raised, gain, weight, discount, gradient, hessian;
  std::vector<double> change;                // of the discount if the row is swapped with another of the same score
  std::vector<double> own_gain, own_weight;  // in table order
  std::vector<Row> row;
  bool is_weighted = false;

  void resize(std::size_t n_rows) {
    n = n_rows;
    order.resize(n);
    row.resize(n);
    for (auto* v : {&score, &gain, &weight, &discount, &change, &gradient, &hessian}) v->assign(n + width, 0.0);
    raised.assign(n + width, 1.0);
  }
};

RankedLists::RankedLists(std::vector<Row> rows, std::vector<Row> ends, std::vector<double> gain,
                         std::vector<double> weight, RankingParams params)
    : rows_(std::move(rows)),
      ends_(std::move(ends)),
      gain_(std::move(gain)),
      weight_(std::move(weight)),
      params_(params) {
  double longest = 0;
  for (std::size_t list = 0; list < ends_.size(); ++list) {
    double total = 0;
    for (std::size_t i = begin_of(list); i < ends_[list]; ++i) total += weight_.empty() ? 1.0 : weight_[i];
    longest = std::max(longest, total);
  }
  const auto n_places = static_cast<std::size_t>(
      std::min({std::ceil(longest), static_cast<double>(params_.truncation), static_cast<double>(most_places)}));
  discounts_.resize(n_places);
  for (std::size_t k = 0; k < n_places; ++k)
    discounts_[k] = 1.0 / (log_ieee(static_cast<double>(k + 2)) * bits_per_nat);
  sums_.assign(n_places + 1, 0.0);
  std::partial_sum(discounts_.begin(), discounts_.end(), sums_.begin() + 1);
  ideal_.resize(ends_.size());
  if (params_.by_gain)
    find_largest_gains();
  else
    sort_by_gain();
}

void RankedLists::find_largest_gains() {
  Scratch s;
  std::vector<double> by_gain(rows_.empty() ? 0 : 1 + *std::max_element(rows_.begin(), rows_.end()));
  for (std::size_t i = 0; i < rows_.size(); ++i) by_gain[rows_[i]] = gain_[i];
  for (std::size_t list = 0; list < ends_.size(); ++list) {
    read(list, by_gain.data(), s);
    sort_by_score(s);
    ideal_[list] = gain_of(s);
  }
}

// Computed once, because it does not depend on scores; also counts pairs.
void RankedLists::sort_by_gain() {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t list = 0; list < ends_.size(); ++list)
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin_of(list)),
              order.begin() + static_cast<std::ptrdiff_t>(ends_[list]), [&](std::size_t a, std::size_t b) {
                return gain_[a] != gain_[b] ? gain_[a] > gain_[b] : rows_[a] < rows_[b];
              });
  const auto sorted = [&]<class T>(std::vector<T>& values) {
    std::vector<T> found(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) found[i] = values[order[i]];
    values = std::move(found);
  };
  sorted(rows_);
  sorted(gain_);
  sorted(weight_);
  for (std::size_t list = 0; list < ends_.size(); ++list) {
    double above = 0, pairs = 0, total = 0;  // weights of rows with larger gains; of pairs; of the list
    for (std::size_t i = begin_of(list); i < ends_[list]; ++i) {
      const double weight = weight_.empty() ? 1.0 : weight_[i];
      if (i > begin_of(list) && gain_[i] != gain_[i - 1]) above = total;
      pairs += weight * above;
      total += weight;
    }
    ideal_[list] = pairs > 0 ? pairs / total : 0.0;
  }
  if (!weight_.empty()) weight_.resize(weight_.size() + width, 0.0);  // padding for groups at the end of a list
}

template <class Body>  // body(list, scratch)
void RankedLists::for_each_list(int n_threads, Body&& body) const {
  constexpr std::size_t rows_of_task = 4096;
  std::vector<std::size_t> first{0};  // lists of each task
  for (std::size_t list = 0, begin = 0; list < ends_.size(); ++list)
    if (ends_[list] - begin >= rows_of_task || list + 1 == ends_.size()) {
      first.push_back(list + 1);
      begin = ends_[list];
    }
  parallel_for_if_worth(100.0 * static_cast<double>(rows_.size()), first.size() - 1, n_threads,
                        [&](std::size_t task, int) {
                          Scratch s;
                          for (std::size_t list = first[task]; list < first[task + 1]; ++list) body(list, s);
                        });
}

void RankedLists::read(std::size_t list, const double* scores, Scratch& s) const {
  const std::size_t begin = begin_of(list);
  s.resize(ends_[list] - begin);
  s.is_weighted = !weight_.empty();
  s.own_gain.assign(gain_.begin() + static_cast<std::ptrdiff_t>(begin),
                    gain_.begin() + static_cast<std::ptrdiff_t>(ends_[list]));
  for (std::size_t i = 0; i < s.n; ++i) s.order[i] = {scores[rows_[begin + i]], static_cast<Row>(i)};
  s.own_weight.assign(s.n, 1.0);
  if (s.is_weighted) std::copy_n(weight_.begin() + static_cast<std::ptrdiff_t>(begin), s.n, s.own_weight.begin());
}

// Largest first; ties in table order.
void RankedLists::sort_by_score(Scratch& s) const {
  std::sort(s.order.begin(), s.order.end(), [](const Scratch::Ranked& a, const Scratch::Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  });
  for (std::size_t i = 0; i < s.n; ++i) {
    s.row[i] = s.order[i].row;
    s.score[i] = s.order[i].score;
    s.gain[i] = s.own_gain[s.row[i]];
    s.weight[i] = s.own_weight[s.row[i]];
  }
}

double RankedLists::up_to(double place) const {
  const double last = static_cast<double>(discounts_.size());
  if (place >= last) return sums_.back();
  const auto whole = static_cast<std::size_t>(place);
  return sums_[whole] + (place - static_cast<double>(whole)) * discounts_[whole];
}

// The change in discount by swapping two rows of equal scores, which share these ranks, averaged over their orders.
double RankedLists::mean_change(double begin, double end) const {
  const double last = static_cast<double>(discounts_.size());
  double sum = 0, before = 0;
  for (double at = begin; at < end && at < last;) {
    const double whole = std::floor(at), next = std::min(whole + 1, end), here = next - at;
    sum += here * discounts_[static_cast<std::size_t>(whole)] * ((end - next) - before);
    before += here;
    at = next;
  }
  return 2 * sum / ((end - begin) * (end - begin));
}

// The mean discount of the ranks that each row takes; rows of equal scores share theirs.
void RankedLists::place(Scratch& s) const {
  double at = 0;
  for (std::size_t i = 0; i < s.n;) {
    std::size_t end = i;
    double weight = 0;
    for (; end < s.n && s.score[end] == s.score[i]; ++end) weight += s.weight[end];
    const bool is_alone = end == i + 1;
    const double next = at + weight, shared = (up_to(next) - up_to(at)) / weight;
    const double change = is_alone ? 0.0 : mean_change(at, next);
    for (; i < end; ++i) {
      s.discount[i] = shared;
      s.change[i] = change;
    }
    at = next;
  }
}

// The discounted gain of the list as ranked; rows of equal scores share their ranks.
double RankedLists::gain_of(const Scratch& s) const {
  double found = 0, at = 0;
  for (std::size_t i = 0; i < s.n;) {
    double weight = 0, gain = 0;
    const double score = s.score[i];
    for (; i < s.n && s.score[i] == score; ++i) {
      weight += s.weight[i];
      gain += s.weight[i] * s.gain[i];
    }
    found += gain / weight * (up_to(at + weight) - up_to(at));
    at += weight;
  }
  return found;
}

namespace {

// Exponentials of the scores about the middle of the list: the probability that one row is ranked above another is a
// ratio of them.
void raise(const double* scores, std::size_t n, double middle, double* raised) {
  for (std::size_t i = 0; i < n; ++i) {
    const double d = scores[i] - middle, low = d < -farthest ? -farthest : d;
    raised[i] = exp_ieee(low > farthest ? farthest : low);
  }
}

}  // namespace

// Pairs of one row with those ranked below it.
void RankedLists::gain_gradients(std::size_t list, Scratch& s) const {
  const auto [least, most] = std::minmax_element(s.gain.begin(), s.gain.begin() + static_cast<std::ptrdiff_t>(s.n));
  if (!(ideal_[list] > 0) || *least == *most) return;
  const double middle = (s.score[0] + s.score[s.n - 1]) / 2;
  raise(s.score.data(), s.n, middle, s.raised.data());
  // lanes past the end have weight 0 but must be finite
  std::fill(s.score.begin() + static_cast<std::ptrdiff_t>(s.n), s.score.end(), s.score[s.n - 1]);
  const bool is_apart = s.score[0] != s.score[s.n - 1];
  const RankedRows rows{.n = s.n,
                        .gain = s.gain.data(),
                        .weight = s.weight.data(),
                        .score = s.score.data(),
                        .raised = s.raised.data(),
                        .discount = s.discount.data(),
                        .change = s.change.data(),
                        .gradient = s.gradient.data(),
                        .hessian = s.hessian.data(),
                        .floor = is_apart ? near_scores : 1.0,
                        .slope = is_apart ? 1.0 : 0.0};
  const double total = kernels().gain_gradients(rows);
  // Scales the gradients of a list to the logarithm of their sum, so that one long list does not outweigh many short
  // ones.
  const double sum = 2.0 * total / ideal_[list];
  const double factor = sum > 0 ? log_ieee(1.0 + sum) * bits_per_nat / sum / ideal_[list] : 0.0;
  for (std::size_t i = 0; i < s.n; ++i) {
    s.gradient[i] *= factor;
    s.hessian[i] *= factor;
  }
}

namespace {

// Losses of the pairs of a list, weighted by their rows.
double weighted_loss(const PairedRows& rows) {
  double losses = 0;
  for (std::size_t i = 0, below = 0; i < rows.n; ++i) {
    while (below < rows.n && rows.gain[below] >= rows.gain[i]) ++below;
    const double inverse = 1.0 / rows.raised[i];
    double loss = 0;
    for (std::size_t j = below; j < rows.n; ++j) loss += rows.weight[j] * log_ieee(1.0 + rows.raised[j] * inverse);
    losses += rows.weight[i] * loss;
  }
  return losses;
}

}  // namespace

// Every row with those of smaller gains. The gradient of a pair is the probability that it is ranked wrongly, divided
// by the distance of its scores: distant pairs are settled, and the few pairs of the top ranks matter earlier. Returns
// the pair losses of the list, divided by its weight.
double RankedLists::pair_gradients(std::size_t list, const double* scores, Scratch& s) const {
  const std::size_t begin = begin_of(list), n = ends_[list] - begin;
  for (auto* v : {&s.score, &s.raised, &s.gradient, &s.hessian}) v->assign(n + width, 0.0);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < n; ++i) {
    s.score[i] = scores[rows_[begin + i]];
    low = std::min(low, s.score[i]);
    high = std::max(high, s.score[i]);
  }
  const double middle = (low + high) / 2;
  for (std::size_t i = 0; i < n; ++i) s.score[i] = std::clamp(s.score[i] - middle, -farthest, farthest);
  for (std::size_t i = 0; i < n; ++i) s.raised[i] = exp_ieee(s.score[i]);
  const PairedRows rows{.n = n,
                        .gain = gain_.data() + begin,
                        .weight = weight_.data() + (weight_.empty() ? 0 : begin),
                        .score = s.score.data(),
                        .raised = s.raised.data(),
                        .gradient = s.gradient.data(),
                        .hessian = s.hessian.data(),
                        .farthest = std::min(std::max(high - middle, middle - low), farthest),
                        .near_scores = low != high ? near_pairs : 1.0};
  double losses = 0, total = static_cast<double>(n);
  if (weight_.empty()) {
    losses = kernels().gradient_of_pair(rows);
  } else {
    kernels().weighted_pair_gradients(rows);
    losses = weighted_loss(rows);
    total = std::accumulate(rows.weight, rows.weight + n, 0.0);
  }
  for (std::size_t i = 0; i < n; ++i) {
    s.gradient[i] /= total;
    s.hessian[i] /= total;
  }
  return losses / total;
}

double RankedLists::gradients(const double* scores, double* gradients, double* hessians, int n_threads) const {
  std::vector<double> losses(ends_.size());
  for_each_list(n_threads, [&](std::size_t list, Scratch& s) {
    const std::size_t begin = begin_of(list), n = ends_[list] - begin;
    const Row* rows = rows_.data() + begin;
    if (params_.by_gain) {
      read(list, scores, s);
      sort_by_score(s);
      place(s);
      gain_gradients(list, s);
      losses[list] = gain_of(s) / ideal_[list];
    } else {
      losses[list] = pair_gradients(list, scores, s);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Row row = rows[params_.by_gain ? s.row[i] : i];
      gradients[row] = s.gradient[i];
      hessians[row] = s.hessian[i];
    }
  });
  return mean_of(losses);
}

double RankedLists::mean_loss(const double* scores, int n_threads) const {
  if (params_.by_gain) return mean_of(normalised_gains(scores, n_threads));
  std::vector<double> losses(ends_.size());
  for_each_list(n_threads, [&](std::size_t list, Scratch& s) { losses[list] = pair_gradients(list, scores, s); });
  return mean_of(losses);
}

std::vector<double> RankedLists::normalised_gains(const double* scores, int n_threads) const {
  std::vector<double> gains(ends_.size());
  for_each_list(n_threads, [&](std::size_t list, Scratch& s) {
    read(list, scores, s);
    sort_by_score(s);
    gains[list] = ideal_[list] > 0 ? gain_of(s) / ideal_[list] : std::numeric_limits<double>::quiet_NaN();
  });
  return gains;
}

double RankedLists::mean_of(std::span<const double> losses) const {
  double sum = 0, n = 0;
  for (std::size_t list = 0; list < losses.size(); ++list) {
    if (!(ideal_[list] > 0)) continue;
    sum += losses[list];
    n += params_.by_gain ? 1.0 : ideal_[list];
  }
  const double mean = n > 0 ? sum / n : (params_.by_gain ? 1.0 : 0.0);
  return params_.by_gain ? 1.0 - mean : mean;
}

}  // namespace spinney
