// Gradients of a round, and losses of rows: what boosting asks of the losses of its parts.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/math.h"
#include "learn/boosting.h"
#include "learn/chunks.h"
#include "learn/leaf_values.h"
#include "loss/losses.h"
#include "loss/row_loss.h"

namespace spinney {

const double* Boosting::target_of(const Part& part, const BoostingRows& rows) const {
  return rows.target + static_cast<std::size_t>(&part - parts_.data()) * rows.table->n_rows;
}

void Boosting::set_gradients(const double* gradients, const double* hessians) {
  const std::size_t n = n_rows(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  totals_.assign(n_scores(), {});
  for (std::uint32_t k = 0; k < n_scores(); ++k, gradients += n, hessians += n) {
    std::vector<GradientSums> sums(n_chunks);
    for_each_chunk(n, params_.tree.n_threads, 2.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const double weight = rows_.weight == nullptr ? 1.0 : rows_.weight[r];
        pairs_[k].data()[r] = {static_cast<float>(weight * gradients[r]), static_cast<float>(weight * hessians[r])};
      }
      add_sizes(pairs_[k].data() + begin, end - begin, sums[c]);
    });
    for (const GradientSums& s : sums) {
      totals_[k].gradient += s.gradient;
      totals_[k].hessian += s.hessian;
    }
  }
  has_pairs_ = true;
}

void Boosting::touch(const BoostingRows& rows, std::size_t n) {
  const std::size_t n_numbers =
      (rows.weight == nullptr ? 1 : 2) + 2 * rows.scores.size();  // a pair is as large as a score
  if (rows.table->spill) rows.table->spill->touch(n * sizeof(double) * n_numbers);
}

void Boosting::find_bend(Part& part) const {
  const double *target = target_of(part, rows_), *scores = rows_.scores[part.first].data();
  std::vector<std::pair<double, double>> sizes;
  for (const Row r : all_)
    sizes.emplace_back(std::abs(target[r] - scores[r]), rows_.weight == nullptr ? 1.0 : rows_.weight[r]);
  part.delta = bend_of(part.loss, part.parameter, sizes);
}

// Gradients at the present scores, and losses by chunk unless `losses` is null.
void Boosting::fill_pairs(std::vector<LossSum>* losses) { add_up(fill_chunks(losses)); }

void Boosting::add_up(const std::vector<GradientSums>& sums) {
  const std::size_t width = n_scores();
  totals_.assign(width, {});
  for (std::size_t i = 0; i < sums.size(); ++i) {
    totals_[i % width].gradient += sums[i].gradient;
    totals_[i % width].hessian += sums[i].hessian;
  }
}

// The same; returns the sums of the gradients, chunk by chunk and score by score.
std::vector<GradientSums> Boosting::fill_chunks(std::vector<LossSum>* losses) {
  const std::size_t n = n_rows(), n_chunks = (n + chunk_rows - 1) / chunk_rows, width = n_scores();
  if (is_outside()) throw std::logic_error("gradients are to be set before a round");
  for (Part& part : parts_)
    if (traits_of(part.loss).bends) find_bend(part);
  std::vector<GradientSums> sums(n_chunks * width);
  if (losses != nullptr) losses->assign(n_chunks, {});
  const double ns_per_row = 4.0 * static_cast<double>(width);
  for_each_chunk(n, params_.tree.n_threads, ns_per_row, [&](std::size_t c, std::size_t begin, std::size_t end) {
    touch(rows_, end - begin);
    LossSum* loss = losses == nullptr ? nullptr : &(*losses)[c];
    for (const Part& part : parts_) fill_pairs_of(part, begin, end, sums.data() + c * width + part.first, loss);
    if (loss != nullptr) loss->count(rows_.weight == nullptr ? nullptr : rows_.weight + begin, end - begin);
  });
  return sums;
}

void Boosting::fill_pairs_of(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums, LossSum* loss) {
  if (part.loss == Loss::multinomial) return fill_pairs_of_classes(part, begin, end, sums, loss);
  if (part.loss == Loss::normal) return fill_pairs_of_normal(part, begin, end, sums, loss);
  const double *weight = rows_.weight == nullptr ? nullptr : rows_.weight + begin,
               *target = target_of(part, rows_) + begin;
  Pair* pairs = pairs_[part.first].data() + begin;
  std::array<double, chunk_rows> losses;
  boost_kernels().losses[static_cast<std::size_t>(part.loss)].gradients(target, rows_.scores[part.first].data() + begin,
                                                                        weight, end - begin, {part.known()}, pairs,
                                                                        loss == nullptr ? nullptr : losses.data());
  add_sizes(pairs, end - begin, *sums);
  if (loss != nullptr) loss->add(losses.data(), weight, end - begin, part.weight);
}

void Boosting::fill_pairs_of_normal(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums,
                                    LossSum* loss) {
  const double *y = target_of(part, rows_), *mean = rows_.scores[part.first].data(),
               *log_deviation = rows_.scores[part.first + 1].data();
  const double least = NormalLoss::least(part.parameter);
  Pair *of_mean = pairs_[part.first].data(), *of_deviation = pairs_[part.first + 1].data();
  for (std::size_t r = begin; r < end; ++r) {
    const double weight = rows_.weight == nullptr ? 1.0 : rows_.weight[r];
    const NormalLoss::Row row = NormalLoss::at(y[r], mean[r], log_deviation[r], least);
    const double scale = part.parameter * row.per_variance;
    of_mean[r] = {static_cast<float>(weight * (-scale * row.residual)), static_cast<float>(weight * scale)};
    of_deviation[r] = {static_cast<float>(weight * row.shortfall), static_cast<float>(2.0 * weight)};
  }
  add_sizes(of_mean + begin, end - begin, sums[0]);
  add_sizes(of_deviation + begin, end - begin, sums[1]);
  if (loss == nullptr) return;
  const double* scores[] = {mean + begin, log_deviation + begin};
  add_losses(part, y + begin, rows_.weight == nullptr ? nullptr : rows_.weight + begin, scores, end - begin, *loss);
}

void Boosting::fill_pairs_of_classes(const Part& part, std::size_t begin, std::size_t end, GradientSums* sums,
                                     LossSum* loss) {
  constexpr std::size_t block = 256;
  const std::uint32_t n_classes = part.n_scores;
  const double* target = target_of(part, rows_);
  const double factor = MultinomialLoss::curvature(n_classes);
  std::vector<double> shares(block * n_classes);
  std::vector<const double*> from(n_classes);
  std::vector<double*> to(n_classes);
  for (std::uint32_t k = 0; k < n_classes; ++k) to[k] = shares.data() + k * block;
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t n = std::min(block, end - at);
    for (std::uint32_t k = 0; k < n_classes; ++k) from[k] = rows_.scores[part.first + k].data() + at;
    std::array<double, block> losses;
    boost_kernels().softmax(from.data(), n_classes, n, to.data(), loss == nullptr ? nullptr : losses.data());
    const double* weight = rows_.weight == nullptr ? nullptr : rows_.weight + at;
    if (loss != nullptr) {
      for (std::size_t i = 0; i < n; ++i) losses[i] -= from[static_cast<std::size_t>(target[at + i])][i];
      loss->add(losses.data(), weight, n, part.weight);
    }
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      Pair* pairs = pairs_[part.first + k].data() + at;
      boost_kernels().class_gradients(to[k], target + at, weight, n, k, factor, pairs);
      add_sizes(pairs, n, sums[k]);
    }
  }
}

double Boosting::training_loss() {
  if (is_outside()) return std::numeric_limits<double>::quiet_NaN();
  if (traits_of(parts_[0].loss).bends) return mean_loss(rows_);  // by the delta of the round that is over
  if (!begins_step()) return mean_loss(rows_);                   // the gradients are still needed
  std::vector<LossSum> sums;
  fill_pairs(&sums);
  has_pairs_ = true;
  return mean_of(sums);
}

double Boosting::mean_loss(const BoostingRows& rows) const {
  return is_outside() ? std::numeric_limits<double>::quiet_NaN() : mean_of(chunk_losses(rows));
}

std::vector<LossSum> Boosting::chunk_losses(const BoostingRows& rows) const {
  const std::size_t n = rows.table->n_rows;
  std::vector<LossSum> sums((n + chunk_rows - 1) / chunk_rows);
  for_each_chunk(n, params_.tree.n_threads, 4.0 * n_scores(),
                 [&](std::size_t c, std::size_t begin, std::size_t end) { sums[c] = sum_of_losses(rows, begin, end); });
  return sums;
}

// Rows that are out of bag for their small gradients say nothing of others.
// Of every second, third … row where there are many: log losses of all rows, before and after, took 23 % of the fit.
double Boosting::mean_out_of_bag() const {
  if (is_outside() || params_.draws_by_gradient) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t step = step_out_of_bag(out_of_bag_.size());
  const std::size_t n = (out_of_bag_.size() + step - 1) / step;
  std::vector<LossSum> sums((n + chunk_rows - 1) / chunk_rows);
  for_each_chunk(n, params_.tree.n_threads, 6.0 * n_scores(), [&](std::size_t c, std::size_t begin, std::size_t end) {
    const auto gathered = [&](const double* from) {
      std::vector<double> to(from == nullptr ? 0 : end - begin);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[out_of_bag_[(begin + i) * step]];
      return to;
    };
    const std::vector<double> weights = gathered(rows_.weight);
    const double* weight = weights.empty() ? nullptr : weights.data();
    std::vector<std::vector<double>> scores;
    std::vector<const double*> from;
    for (const auto& s : rows_.scores) scores.push_back(gathered(s.data()));
    for (const auto& s : scores) from.push_back(s.data());
    for (const Part& part : parts_)
      add_losses(part, gathered(target_of(part, rows_)).data(), weight, from.data() + part.first, end - begin, sums[c]);
    sums[c].count(weight, end - begin);
  });
  return mean_of(sums);
}

LossSum Boosting::sum_of_losses(const BoostingRows& rows, std::size_t begin, std::size_t end) const {
  touch(rows, end - begin);
  const double* weight = rows.weight == nullptr ? nullptr : rows.weight + begin;
  std::vector<const double*> scores;
  for (const auto& s : rows.scores) scores.push_back(s.data() + begin);
  LossSum sum;
  for (const Part& part : parts_)
    add_losses(part, target_of(part, rows) + begin, weight, scores.data() + part.first, end - begin, sum);
  sum.count(weight, end - begin);
  return sum;
}

}  // namespace spinney
