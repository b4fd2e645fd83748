#include "loss/survival.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/math.h"
#include "base/pool.h"

namespace spinney {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t chunk_rows = 4096;  // sums are by chunk, in order: bit-identical for any number of threads

}  // namespace

// ---- Cox --------------------------------------------------------------------------------------------------

CoxRows::CoxRows(std::span<const double> time, std::span<const std::uint8_t> is_event, std::span<const double> weight,
                 bool is_efron)
    : is_efron_(is_efron) {
  for (std::size_t r = 0; r < time.size(); ++r)
    if (weight.empty() || weight[r] > 0) order_.push_back(static_cast<Row>(r));
  std::sort(order_.begin(), order_.end(), [&](Row a, Row b) { return time[a] != time[b] ? time[a] < time[b] : a < b; });
  for (const Row r : order_) {
    time_.push_back(time[r]);
    weight_.push_back(weight.empty() ? 1.0 : weight[r]);
    is_event_.push_back(is_event[r]);
  }
  total_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
}

struct CoxRows::Risks {
  double largest = 0;           // score
  std::vector<double> raised;   // e^(score - largest), in the order of the times
  std::vector<double> at_risk;  // their weighted sum from the first row of each row's time on
};

CoxRows::Risks CoxRows::risks(const double* scores) const {
  const std::size_t n = order_.size();
  Risks r;
  r.largest = -infinity;
  r.raised.resize(n);
  r.at_risk.resize(n);
  for (std::size_t i = 0; i < n; ++i) r.raised[i] = scores[order_[i]];
  for (std::size_t i = 0; i < n; ++i) r.largest = std::max(r.largest, r.raised[i]);
  for (std::size_t i = 0; i < n; ++i) r.raised[i] = exp_ieee(r.raised[i] - r.largest);
  double sum = 0;
  for (std::size_t end = n; end > 0;) {  // from the last time to the first
    std::size_t begin = end;
    for (; begin > 0 && time_[begin - 1] == time_[end - 1]; --begin) sum += weight_[begin - 1] * r.raised[begin - 1];
    std::fill(r.at_risk.begin() + static_cast<std::ptrdiff_t>(begin),
              r.at_risk.begin() + static_cast<std::ptrdiff_t>(end), sum);
    end = begin;
  }
  return r;
}

std::size_t CoxRows::end_of_time(std::size_t begin) const {
  std::size_t end = begin;
  while (end < time_.size() && time_[end] == time_[begin]) ++end;
  return end;
}

CoxRows::Tie CoxRows::tie(const Risks& r, std::size_t begin, std::size_t end) const {
  double events = 0, raised = 0, n = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (!is_event_[i]) continue;
    events += weight_[i];
    raised += weight_[i] * r.raised[i];
    ++n;
  }
  Tie found;
  found.has_events = n > 0;
  const double at_risk = r.at_risk[begin], n_steps = is_efron_ ? std::max(n, 1.0) : 1.0, weight = events / n_steps;
  for (double k = 0; k < n_steps; ++k) {
    const double gone = k / n_steps, left = gone > 0 ? at_risk - gone * raised : at_risk;
    found.hazard += weight / left;
    found.squares += weight / (left * left);
    found.own_hazard += (1 - gone) * (weight / left);
    found.own_squares += (1 - gone) * (1 - gone) * (weight / (left * left));
    if (events > 0) found.loss += weight * (log_ieee(left) + r.largest);
  }
  return found;
}

// A row is at risk in all events up to its time. The second derivative is that of a row of weight 1.
double CoxRows::gradients(const double* scores, double* gradients, double* hessians) const {
  const Risks r = risks(scores);
  const std::size_t n = order_.size();
  double hazard = 0, squares = 0, loss = 0;
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    end = end_of_time(begin);
    const Tie here = tie(r, begin, end);
    loss += here.loss;
    for (std::size_t i = begin; i < end; ++i) {
      const double expected = r.raised[i] * (hazard + (is_event_[i] ? here.own_hazard : here.hazard));
      const double square = squares + (is_event_[i] ? here.own_squares : here.squares), score = scores[order_[i]];
      gradients[order_[i]] = expected - (is_event_[i] ? 1.0 : 0.0);
      hessians[order_[i]] = std::max(expected - r.raised[i] * r.raised[i] * square, 0.0);
      if (is_event_[i]) loss -= weight_[i] * score;
    }
    hazard += here.hazard;
    squares += here.squares;
  }
  return loss / total_;
}

double CoxRows::mean_loss(const double* scores) const {
  const Risks r = risks(scores);
  double loss = 0;
  if (is_efron_)
    for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      end = end_of_time(begin);
      loss += tie(r, begin, end).loss;
    }
  for (std::size_t i = 0; i < order_.size(); ++i)
    if (is_event_[i])
      loss += weight_[i] * (is_efron_ ? -scores[order_[i]] : log_ieee(r.at_risk[i]) + r.largest - scores[order_[i]]);
  return loss / total_;
}

CoxRows::Baseline CoxRows::baseline(const double* scores) const {
  const Risks r = risks(scores);
  const double factor = exp_ieee(-r.largest);
  Baseline found;
  double hazard = 0;
  for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
    end = end_of_time(begin);
    const Tie here = tie(r, begin, end);
    if (!here.has_events) continue;
    hazard += here.hazard * factor;
    found.time.push_back(time_[begin]);
    found.hazard.push_back(hazard);
  }
  return found;
}

// ---- accelerated failure times ----------------------------------------------------------------------------

namespace {

constexpr double sqrt_2_pi = 2.5066282746310002, log_sqrt_2_pi = 0.9189385332046727;
constexpr double median_of_extreme = -0.36651292058166435;  // log(log 2)

// Mills' ratio: the upper tail of the normal distribution at x >= 0 divided by its density.
double mills_ratio(double x) {
  if (x > 2) {  // continued fraction, from a distant term on
    double tail = x;
    for (int k = 60; k > 0; --k) tail = x + k / tail;
    return 1 / tail;
  }
  double term = x, sum = x;  // x + x^3 / 3 + x^5 / (3 5) + …
  for (int k = 3; k < 80; k += 2) {
    term *= x * x / k;
    sum += term;
  }
  return sqrt_2_pi / 2 * exp_ieee(x * x / 2) - sum;
}

// Logarithms of the density, the survival function and the distribution function at z, with slopes and negative
// curvatures.
struct At {
  double log_density, slope, curvature;
  double log_above, above_slope, above_curvature;
  double log_below, below_slope, below_curvature;
};

struct Normal {
  static At at(double z) {
    const double size = std::abs(z), ratio = mills_ratio(size), log_density = -z * z / 2 - log_sqrt_2_pi;
    const double density = exp_ieee(log_density), tail = density * ratio, rest = 1 - tail;
    const double near = density / rest, far = 1 / ratio;  // density divided by the larger and the smaller tail
    const double log_tail = log_density + log_ieee(ratio), log_rest = log_ieee(rest);
    const bool is_above = z > 0;
    const double above = is_above ? far : near, below = is_above ? near : far;
    return {log_density,
            -z,
            1.0,
            is_above ? log_tail : log_rest,
            -above,
            above * (above - z),
            is_above ? log_rest : log_tail,
            below,
            below * (below + z)};
  }
};

struct Logistic {
  static At at(double z) {
    const double e = exp_ieee(-std::abs(z)), log_factor = log_ieee(1 + e);
    const double below = (z > 0 ? 1.0 : e) / (1 + e), above = (z > 0 ? e : 1.0) / (1 + e);
    const double log_below = (z > 0 ? 0.0 : z) - log_factor, log_above = (z > 0 ? -z : 0.0) - log_factor;
    const double probability = below * above;
    return {log_below + log_above, above - below, 2 * probability, log_above,  -below,
            probability,           log_below,     above,           probability};
  }
};

struct Extreme {  // about its median: the survival function is exp(-e^w), w = z + log(log 2)
  static At at(double z) {
    const double w = z + median_of_extreme, e = exp_ieee(w), log_above = -e;
    // 1 - exp(-e), accurate for small e
    const double below = e < 1e-5 ? e * (1 - e / 2) : 1 - exp_ieee(-e);
    const double slope = exp_ieee(w - e) / below;
    return {w - e, 1 - e, e, log_above, -e, e, log_ieee(below), slope, std::max(slope * (e + slope - 1), 0.0)};
  }
};

struct RowLoss {
  double loss, slope, curvature;  // with respect to the score in units of the scale
};

// The negative log-probability of the interval of z.
template <class Distribution>
RowLoss loss_of(double low, double high) {
  if (low == high) {
    const At at = Distribution::at(low);
    return {-at.log_density, at.slope, at.curvature};
  }
  if (high == infinity) {
    const At at = Distribution::at(low);
    return {-at.log_above, at.above_slope, at.above_curvature};
  }
  const At last = Distribution::at(high);
  if (low == -infinity) return {-last.log_below, last.below_slope, last.below_curvature};
  const At first = Distribution::at(low);
  // on the side where both probabilities are small, so that their difference is accurate
  const bool is_above = first.log_above < first.log_below;
  const double larger = is_above ? first.log_above : last.log_below;
  const double ratio = exp_ieee(is_above ? last.log_above - larger : first.log_below - larger);
  const double probability = 1 - ratio;  // relative to the larger
  if (!(probability > 1e-12)) {          // effectively a point
    const At at = Distribution::at((low + high) / 2);
    return {-at.log_density - log_ieee(std::max(high - low, 1e-300)), at.slope, at.curvature};
  }
  const double first_density = exp_ieee(first.log_density - larger) / probability,
               last_density = exp_ieee(last.log_density - larger) / probability;
  const double slope = last_density - first_density;
  const double turn = last_density * last.slope - first_density * first.slope;
  return {-larger - log_ieee(probability), slope, std::max(slope * slope - turn, 0.0)};
}

using LossOfRow = RowLoss (*)(double, double);
constexpr LossOfRow losses_of_rows[] = {&loss_of<Normal>, &loss_of<Logistic>, &loss_of<Extreme>};

}  // namespace

TimedRows::TimedRows(std::span<const double> low, std::span<const double> high, std::span<const double> weight,
                     TimeDistribution distribution)
    : low_(low.begin(), low.end()),
      high_(high.begin(), high.end()),
      weight_(weight.begin(), weight.end()),
      distribution_(distribution) {
  if (weight_.empty()) weight_.assign(low_.size(), 1.0);
  total_ = std::accumulate(weight_.begin(), weight_.end(), 0.0);
}

template <class Body>  // body(row) returns its loss
double TimedRows::sum(int n_threads, Body&& body) const {
  const std::size_t n = low_.size(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  std::vector<double> sums(n_chunks, 0.0);
  parallel_for_if_worth(100.0 * static_cast<double>(n), n_chunks, n_threads, [&](std::size_t c, int) {
    double found = 0;
    for (std::size_t r = c * chunk_rows; r < std::min(n, (c + 1) * chunk_rows); ++r)
      if (weight_[r] > 0) found += weight_[r] * body(r);
    sums[c] = found;
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double TimedRows::gradients(const double* scores, double scale, double* gradients, double* hessians,
                            int n_threads) const {
  const LossOfRow loss_at = losses_of_rows[static_cast<std::size_t>(distribution_)];
  const double log_scale = log_ieee(scale);
  return sum(n_threads,
             [&](std::size_t r) {
               const RowLoss found = loss_at((low_[r] - scores[r]) / scale, (high_[r] - scores[r]) / scale);
               gradients[r] = found.slope / scale;
               hessians[r] = found.curvature / (scale * scale);
               return found.loss + (low_[r] == high_[r] ? log_scale : 0.0);
             }) /
         total_;
}

double TimedRows::mean_loss(const double* scores, double scale, int n_threads) const {
  const LossOfRow loss_at = losses_of_rows[static_cast<std::size_t>(distribution_)];
  const double log_scale = log_ieee(scale);
  return sum(n_threads,
             [&](std::size_t r) {
               const RowLoss found = loss_at((low_[r] - scores[r]) / scale, (high_[r] - scores[r]) / scale);
               return found.loss + (low_[r] == high_[r] ? log_scale : 0.0);
             }) /
         total_;
}

double survival_at(TimeDistribution distribution, double z) {
  const double log_above = distribution == TimeDistribution::normal     ? Normal::at(z).log_above
                           : distribution == TimeDistribution::logistic ? Logistic::at(z).log_above
                                                                        : Extreme::at(z).log_above;
  return exp_ieee(log_above);
}

// By bisection: the survival function decreases from 1 to 0.
double quantile_of(TimeDistribution distribution, double probability) {
  if (distribution == TimeDistribution::logistic) return log_ieee(probability / (1 - probability));
  if (distribution == TimeDistribution::extreme) return log_ieee(-log_ieee(1 - probability)) - median_of_extreme;
  double low = -38, high = 38;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (1 - survival_at(distribution, middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

// ---- concordance ------------------------------------------------------------------------------------------

namespace {

class PrefixSums {  // Fenwick tree
 public:
  explicit PrefixSums(std::size_t n) : sums_(n + 1, 0.0) {}
  void add(std::size_t i, double x) {
    for (++i; i < sums_.size(); i += i & (~i + 1)) sums_[i] += x;
  }
  double before(std::size_t i) const {  // sum of all elements below i
    double sum = 0;
    for (; i > 0; i -= i & (~i + 1)) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<double> sums_;
};

}  // namespace

// Rows enter when the last possible time of their event has passed; each row is compared with those that have entered.
// A known time does not precede an equal known time.
double concordance(std::span<const double> low, std::span<const double> high, std::span<const double> expected,
                   std::span<const double> weight) {
  std::vector<Row> ending, beginning;
  for (std::size_t r = 0; r < low.size(); ++r) {
    if (!weight.empty() && !(weight[r] > 0)) continue;
    beginning.push_back(static_cast<Row>(r));
    if (high[r] < infinity) ending.push_back(static_cast<Row>(r));
  }
  const auto by = [](std::span<const double> key) {
    return [key](Row a, Row b) { return key[a] != key[b] ? key[a] < key[b] : a < b; };
  };
  const auto is_known = [&](Row r) { return low[r] == high[r]; };
  std::sort(ending.begin(), ending.end(), by(high));
  // known rows come first among those of their time: rows that end there have not entered yet
  std::sort(beginning.begin(), beginning.end(), [&](Row a, Row b) {
    return low[a] != low[b] ? low[a] < low[b] : is_known(a) != is_known(b) ? is_known(a) : a < b;
  });
  std::vector<double> distinct(expected.begin(), expected.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  PrefixSums sums(distinct.size());
  double agreed = 0, total = 0, entered = 0;
  std::size_t next = 0;
  for (const Row r : beginning) {
    const auto enters = [&](Row e) { return is_known(r) ? high[e] < low[r] : high[e] <= low[r]; };
    for (; next < ending.size() && enters(ending[next]); ++next) {
      const Row e = ending[next];
      const auto place = std::lower_bound(distinct.begin(), distinct.end(), expected[e]) - distinct.begin();
      sums.add(static_cast<std::size_t>(place), weight.empty() ? 1.0 : weight[e]);
      entered += weight.empty() ? 1.0 : weight[e];
    }
    const auto place =
        static_cast<std::size_t>(std::lower_bound(distinct.begin(), distinct.end(), expected[r]) - distinct.begin());
    const double w = weight.empty() ? 1.0 : weight[r], below = sums.before(place),
                 equal = sums.before(place + 1) - below;
    agreed += w * (below + equal / 2);
    total += w * entered;
  }
  return total > 0 ? agreed / total : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace spinney
