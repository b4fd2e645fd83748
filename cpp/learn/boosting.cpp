#include "learn/boosting.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/pool.h"
#include "base/random.h"

namespace spinney {

namespace {

constexpr std::size_t chunk_rows =
    4096;  // sums of doubles are by chunk, in order: the same bits for any number of threads

template <class Body>  // body(chunk, begin, end)
void for_each_chunk(std::size_t n, int n_threads, double ns_per_row, Body&& body) {
  const std::size_t n_chunks = (n + chunk_rows - 1) / chunk_rows;
  parallel_for_if_worth(ns_per_row * static_cast<double>(n), n_chunks, n_threads,
                        [&](std::size_t c, int) { body(c, c * chunk_rows, std::min(n, (c + 1) * chunk_rows)); });
}

const LossKernels& kernels_of(Loss loss) {
  const BoostKernels& kernels = boost_kernels();
  switch (loss) {
    case Loss::squared:
      return kernels.squared;
    case Loss::absolute:
      return kernels.absolute;
    case Loss::huber:
      return kernels.huber;
    case Loss::quantile:
      return kernels.quantile;
    case Loss::logistic:
      return kernels.logistic;
    case Loss::exponential:
      return kernels.exponential;
    case Loss::poisson:
      return kernels.poisson;
    case Loss::gamma:
      return kernels.gamma;
    case Loss::tweedie:
      return kernels.tweedie;
    case Loss::multinomial:
      break;
  }
  throw std::logic_error("no such loss");
}

// The smallest value that at least `share` of the weight does not exceed; between two values that both would do, their mean.
double weighted_quantile(std::vector<std::pair<double, double>>& values, double share) {
  std::sort(values.begin(), values.end());
  double total = 0;
  for (const auto& [value, weight] : values) total += weight;
  const double wanted = share * total;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    below += values[i].second;
    if (below > wanted * (1 + 1e-12)) return values[i].first;
    if (below >= wanted * (1 - 1e-12) && i + 1 < values.size()) return (values[i].first + values[i + 1].first) / 2;
  }
  return values.empty() ? 0.0 : values.back().first;
}

bool refits_leaves(Loss loss) { return loss == Loss::absolute || loss == Loss::quantile || loss == Loss::huber; }

}  // namespace

Boosting::Boosting(BoostingRows rows, BoostingRows held_out, BoostingParams params, std::uint32_t first_round,
                   Interrupt& interrupt)
    : rows_(std::move(rows)), held_out_(std::move(held_out)), params_(std::move(params)), round_(first_round) {
  const int n_threads = params_.tree.n_threads;
  if (n_rows() >= std::size_t{1} << 30) throw std::invalid_argument("boosting takes at most 2^30 rows");
  const bool is_apart = held_out_.table != nullptr && held_out_.table != rows_.table;
  coding_ = Coding::learn(*rows_.table, held_out_.table, rows_.weight, params_.max_codes, n_threads, interrupt);
  codes_ = encode(*rows_.table, coding_, n_threads, interrupt);
  if (is_apart) held_out_codes_ = encode(*held_out_.table, coding_, n_threads, interrupt);
  for (std::size_t r = 0; held_out_.table != nullptr && r < held_out_.table->n_rows; ++r)
    if (held_out_.weight == nullptr || held_out_.weight[r] > 0) judged_.push_back(static_cast<Row>(r));
  tiles_ = std::make_unique<Tiles>(coding_, codes_, n_threads, interrupt);
  grower_ = std::make_unique<BoostGrower>(coding_, codes_, *tiles_, params_.tree);
  for (std::size_t r = 0; r < n_rows(); ++r)
    if (rows_.weight == nullptr || rows_.weight[r] > 0) all_.push_back(static_cast<Row>(r));
  if (all_.empty()) throw std::invalid_argument("no row has a positive weight");
  pairs_.resize(n_rows());
  packed_.resize(n_rows());
  if (params_.loss == Loss::multinomial) shares_.assign(params_.n_classes, std::vector<double>(n_rows()));
}

void Boosting::draw_rows() {
  out_of_bag_.clear();
  if (params_.rows_per_round >= 1) {
    in_bag_ = all_;
    return;
  }
  in_bag_.clear();
  const std::uint64_t key = derive(derive(params_.tree.seed, 11), round_);
  for (const Row r : all_) {
    const bool drawn = static_cast<double>(derive(key, r) >> 11) * 0x1p-53 < params_.rows_per_round;
    (drawn ? in_bag_ : out_of_bag_).push_back(r);
  }
  if (in_bag_.empty()) in_bag_.swap(out_of_bag_);
  if (in_bag_.size() == all_.size()) return;
  for (std::size_t r = 0; rows_.weight != nullptr && r < n_rows(); ++r)
    if (!(rows_.weight[r] > 0)) out_of_bag_.push_back(static_cast<Row>(r));
}

void Boosting::advance(Interrupt& interrupt) {
  draw_rows();
  if (params_.loss == Loss::multinomial) {
    std::vector<const double*> scores;
    for (const auto& s : rows_.scores) scores.push_back(s.data());
    for_each_chunk(n_rows(), params_.tree.n_threads, 10.0 * params_.n_classes,
                   [&](std::size_t, std::size_t begin, std::size_t end) {
                     std::vector<const double*> from;
                     std::vector<double*> to;
                     for (std::uint32_t k = 0; k < params_.n_classes; ++k) {
                       from.push_back(scores[k] + begin);
                       to.push_back(shares_[k].data() + begin);
                     }
                     boost_kernels().softmax(from.data(), params_.n_classes, end - begin, to.data());
                   });
  }
  std::vector<BoostedTree> grown;
  for (std::uint32_t k = 0; k < params_.n_classes; ++k) {
    const std::uint64_t key = derive(derive(derive(params_.tree.seed, 12), round_), k);
    fill_pairs(k, interrupt);
    const Units units = quantise(key);
    if (k > 0) draw_rows();  // the tree before has reordered them
    grown.push_back(grower_->grow(in_bag_, packed_.data(), units, key, interrupt));
    set_values(grown.back(), k);
    add_to_scores(grown.back(), k);
  }
  for (BoostedTree& g : grown) trees_.push_back(std::move(g.tree));
  ++round_;
}

void Boosting::fill_pairs(std::uint32_t k, Interrupt& interrupt) {
  const std::size_t n = n_rows(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  interrupt.check();
  LossParams loss{params_.loss_parameter};
  if (params_.loss == Loss::huber) {
    std::vector<std::pair<double, double>> sizes;
    for (const Row r : all_)
      sizes.emplace_back(std::abs(rows_.target[r] - rows_.scores[0][r]),
                         rows_.weight == nullptr ? 1.0 : rows_.weight[r]);
    loss.a = delta_ = weighted_quantile(sizes, params_.loss_parameter);
  }
  const double factor = params_.n_classes > 1 ? params_.n_classes / (params_.n_classes - 1.0) : 1.0;
  std::vector<GradientSums> sums(n_chunks);
  for_each_chunk(n, params_.tree.n_threads, 4.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
    const double* weight = rows_.weight == nullptr ? nullptr : rows_.weight + begin;
    if (params_.loss == Loss::multinomial) {
      for (std::size_t r = begin; r < end; ++r) {
        const double p = shares_[k][r], w = rows_.weight == nullptr ? 1.0 : rows_.weight[r];
        pairs_[r] = {static_cast<float>((p - (rows_.target[r] == k)) * w),
                     static_cast<float>(factor * p * (1 - p) * w)};
      }
    } else {
      kernels_of(params_.loss)
          .gradients(rows_.target + begin, rows_.scores[k].data() + begin, weight, end - begin, loss,
                     pairs_.data() + begin);
    }
    for (std::size_t r = begin; r < end; ++r) {
      sums[c].gradient += std::abs(static_cast<double>(pairs_[r].gradient));
      sums[c].hessian += static_cast<double>(pairs_[r].hessian);
    }
  });
  gradient_total_ = hessian_total_ = 0;
  for (const GradientSums& s : sums) {
    gradient_total_ += s.gradient;
    hessian_total_ += s.hessian;
  }
}

// Whole numbers as large as the sums of all rows leave room for.
Units Boosting::quantise(std::uint64_t key) {
  const auto n = static_cast<double>(n_rows());
  constexpr double margin = 0.999;
  const auto gradient_scale = static_cast<float>(margin * (0x1p31 - 2 - n) / std::max(gradient_total_, 1e-30));
  const auto hessian_scale = static_cast<float>(margin * (0x1p31 - 2 - n) / std::max(hessian_total_, 1e-30));
  const auto low = static_cast<std::uint32_t>(key);
  for_each_chunk(n_rows(), params_.tree.n_threads, 1.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    boost_kernels().quantise(pairs_.data() + begin, begin, end - begin, gradient_scale, hessian_scale, low,
                             packed_.data() + begin);
  });
  return {1.0 / static_cast<double>(gradient_scale), 1.0 / static_cast<double>(hessian_scale)};
}

// Leaves are set from the gradients before rounding; their sums are whole numbers of a unit that none of them feels.
void Boosting::set_values(BoostedTree& grown, std::uint32_t k) {
  parallel_for_if_worth(3.0 * static_cast<double>(in_bag_.size()), grown.leaves.size(), params_.tree.n_threads,
                        [&](std::size_t i, int) {
                          std::vector<std::pair<double, double>> residuals;
                          const GrownLeaf& leaf = grown.leaves[i];
                          grown.tree.value[leaf.node] = leaf_value(grown, leaf, k, residuals);
                        });
}

double Boosting::leaf_value(const BoostedTree&, const GrownLeaf& leaf, std::uint32_t k,
                            std::vector<std::pair<double, double>>& residuals) const {
  const std::span<const Row> rows = std::span(in_bag_).subspan(leaf.begin, leaf.end - leaf.begin);
  const double rate = params_.tree.learning_rate;
  const auto weight_of = [&](Row r) { return rows_.weight == nullptr ? 1.0 : rows_.weight[r]; };
  if (refits_leaves(params_.loss)) {
    for (const Row r : rows) residuals.emplace_back(rows_.target[r] - rows_.scores[k][r], weight_of(r));
    double value = weighted_quantile(residuals, params_.loss == Loss::quantile ? params_.loss_parameter : 0.5);
    if (params_.loss == Loss::huber) {
      double sum = 0, total = 0;
      for (const auto& [residual, weight] : residuals) {
        sum += weight * std::clamp(residual - value, -delta_, delta_);
        total += weight;
      }
      value += sum / total;
    }
    if (params_.tree.max_step > 0) value = std::clamp(value, -params_.tree.max_step, params_.tree.max_step);
    return rate * std::clamp(value, leaf.bounds.low, leaf.bounds.high);
  }
  const double g_scale = 0x1p60 / std::max(gradient_total_, 1e-30), h_scale = 0x1p60 / std::max(hessian_total_, 1e-30);
  std::int64_t g = 0, h = 0;
  for (const Row r : rows) {
    g += static_cast<std::int64_t>(static_cast<double>(pairs_[r].gradient) * g_scale);
    h += static_cast<std::int64_t>(static_cast<double>(pairs_[r].hessian) * h_scale);
  }
  const SplitSearch search(coding_, *tiles_, params_.tree, {});
  return rate * search.step(static_cast<double>(g) / g_scale, static_cast<double>(h) / h_scale, leaf.bounds);
}

void Boosting::add_to_scores(const BoostedTree& grown, std::uint32_t k) {
  double* scores = rows_.scores[k].data();
  parallel_for_if_worth(2.0 * static_cast<double>(in_bag_.size()), grown.leaves.size(), params_.tree.n_threads,
                        [&](std::size_t i, int) {
                          const GrownLeaf& leaf = grown.leaves[i];
                          const double value = grown.tree.value[leaf.node];
                          for (std::size_t j = leaf.begin; j < leaf.end; ++j) scores[in_bag_[j]] += value;
                        });
  if (!out_of_bag_.empty()) walk(grown, codes_, out_of_bag_, scores);
  if (held_out_.table == nullptr) return;
  const Codes& codes = held_out_.table == rows_.table ? codes_ : held_out_codes_;
  walk(grown, codes, judged_, held_out_.scores[k].data());
}

void Boosting::walk(const BoostedTree& grown, const Codes& codes, std::span<const Row> rows, double* scores) const {
  const Tree& tree = grown.tree;
  const auto goes_left = [&](std::uint32_t at, std::uint32_t code) {
    const CodedColumn& column = coding_.columns[static_cast<std::size_t>(tree.feature[at])];
    if (column.has_missing && code + 1 == column.n_codes) return (tree.flags[at] & Tree::missing_left) != 0;
    if (!column.is_category) return code <= grown.cut[at];
    return category_goes_left(tree.sets.data() + tree.set[at], tree.flags[at] & Tree::default_left, code);
  };
  for_each_chunk(rows.size(), params_.tree.n_threads, 30.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint32_t at = 0;
      while (!tree.is_leaf(at)) {
        const auto f = static_cast<std::uint32_t>(tree.feature[at]);
        at = goes_left(at, codes.code(coding_, f, rows[i])) ? at + 1 : tree.right[at];
      }
      scores[rows[i]] += tree.value[at];
    }
  });
}

// Sums are by chunk, in order.
double Boosting::mean_loss(const BoostingRows& rows) const {
  const std::size_t n = rows.table->n_rows, n_chunks = (n + chunk_rows - 1) / chunk_rows;
  std::vector<double> sums(n_chunks), weights(n_chunks);
  for_each_chunk(n, params_.tree.n_threads, 4.0 * params_.n_classes,
                 [&](std::size_t c, std::size_t begin, std::size_t end) {
                   sums[c] = sum_of_losses(rows, begin, end);
                   for (std::size_t r = begin; r < end; ++r)
                     weights[c] += rows.weight == nullptr ? 1.0 : rows.weight[r];
                 });
  return std::accumulate(sums.begin(), sums.end(), 0.0) / std::accumulate(weights.begin(), weights.end(), 0.0);
}

double Boosting::sum_of_losses(const BoostingRows& rows, std::size_t begin, std::size_t end) const {
  std::array<double, chunk_rows> losses;
  const double* target = rows.target + begin;
  const std::size_t n = end - begin;
  if (params_.loss == Loss::multinomial) {
    std::vector<const double*> scores;
    for (const auto& s : rows.scores) scores.push_back(s.data() + begin);
    boost_kernels().softmax_loss(scores.data(), params_.n_classes, target, n, losses.data());
  } else {
    const double a = params_.loss == Loss::huber ? delta_ : params_.loss_parameter;
    kernels_of(params_.loss).values(target, rows.scores[0].data() + begin, n, {a}, losses.data());
  }
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (rows.weight == nullptr)
      sum += losses[i];
    else if (rows.weight[begin + i] > 0)
      sum += rows.weight[begin + i] * losses[i];
  return sum;
}

}  // namespace spinney
