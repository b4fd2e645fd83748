#include "learn/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "learn/chunks.h"

namespace spinney {

RowSample::RowSample(const BoostingState& state, Gradients& gradients)
    : state_(state), gradients_(gradients), in_bag_(state.rows.table->spill), out_of_bag_(state.rows.table->spill) {}

void RowSample::draw() {
  if (state_.params.subsample >= 1) return;
  draw_by_hash();
  if (in_bag_.empty()) in_bag_.swap(out_of_bag_);
  if (in_bag_.size() == state_.all.size()) return;
  add_weightless();
  if (state_.params.draws_by_gradient) reweight_drawn_rows();
}

std::size_t RowSample::draw_partition(bool takes_all) {
  if (state_.params.subsample >= 1) return 0;
  draw_by_hash();
  if (takes_all) in_bag_.swap(out_of_bag_);
  const std::size_t n_weighted = out_of_bag_.size();
  add_weightless();
  return n_weighted;
}

// Rows of weight 0 are never drawn.
void RowSample::add_weightless() {
  for (std::size_t r = 0; state_.rows.weight != nullptr && r < state_.n_rows(); ++r)
    if (!(state_.rows.weight[r] > 0)) out_of_bag_.push_back(static_cast<Row>(r));
}

void RowSample::draw_by_hash() {
  const std::uint64_t key = derive(derive(state_.params.tree.seed, 11), state_.round);
  if (state_.params.top_fraction > 0) return draw_largest_and_some(key);
  if (state_.params.draws_by_gradient) measure_rows();
  const auto is_drawn = [&](Row r) {
    const double chance =
        state_.params.draws_by_gradient ? static_cast<double>(sizes_[r]) / whole_size_ : state_.params.subsample;
    return static_cast<double>(derive(key, state_.place.first_row + r) >> 11) * 0x1p-53 < chance;
  };
  const std::size_t n = state_.all.size(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  std::vector<std::size_t> first(n_chunks + 1, 0);  // of the drawn rows
  for_each_chunk(n, state_.n_threads(), 2.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) first[c + 1] += is_drawn(state_.all[i]);
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  in_bag_.resize(first.back());
  out_of_bag_.resize(n - first.back());
  for_each_chunk(n, state_.n_threads(), 2.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
    std::size_t in = first[c], out = begin - first[c];
    for (std::size_t i = begin; i < end; ++i)
      if (is_drawn(state_.all[i]))
        in_bag_[in++] = state_.all[i];
      else
        out_of_bag_[out++] = state_.all[i];
  });
}

// The rows with the largest gradients and a sample of the others (Ke et al. 2017, "GOSS"). Both numbers are exact, not
// expected values, and ties go to the first rows.
void RowSample::draw_largest_and_some(std::uint64_t key) {
  const auto n = static_cast<double>(state_.all.size());
  const auto n_largest = static_cast<std::size_t>(std::clamp(std::round(state_.params.top_fraction * n), 1.0, n));
  const auto n_left = state_.all.size() - n_largest;
  const auto n_some = std::min(
      static_cast<std::size_t>(std::max(1.0, std::round((state_.params.subsample - state_.params.top_fraction) * n))),
      n_left);
  sizes_.resize(state_.n_rows());
  for_each_chunk(state_.n_rows(), state_.n_threads(), 2.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      sizes_[r] = 0;
      for (std::uint32_t k = 0; k < state_.n_scores(); ++k) sizes_[r] += std::abs(gradients_.of(k)[r].gradient);
    }
  });
  std::vector<Row> rows(state_.all.begin(), state_.all.end());
  const auto some = rows.begin() + static_cast<std::ptrdiff_t>(n_largest),
             rest = some + static_cast<std::ptrdiff_t>(n_some);
  const auto is_larger = [&](Row a, Row b) { return sizes_[a] != sizes_[b] ? sizes_[a] > sizes_[b] : a < b; };
  if (some != rows.end()) std::nth_element(rows.begin(), some, rows.end(), is_larger);
  std::vector<std::uint64_t> draws(state_.n_rows());
  for (auto r = some; r != rows.end(); ++r) draws[*r] = derive(key, *r);
  const auto is_sooner = [&](Row a, Row b) { return draws[a] != draws[b] ? draws[a] < draws[b] : a < b; };
  if (rest != rows.end()) std::nth_element(some, rest, rows.end(), is_sooner);
  whole_size_ = n_some == 0 ? 1.0 : static_cast<double>(n_left) / static_cast<double>(n_some);
  for (auto r = rows.begin(); r != rest; ++r) sizes_[*r] = r < some ? std::numeric_limits<float>::infinity() : 1.0f;
  in_bag_.assign(rows.begin(), rest);
  out_of_bag_.assign(rest, rows.end());
  std::sort(in_bag_.begin(), in_bag_.end());
  std::sort(out_of_bag_.begin(), out_of_bag_.end());
}

// The gradient size of each row, and the threshold above which a row is drawn with certainty, chosen so that the
// requested number of rows is expected: rows below it are drawn with probability size / threshold (Ibragimov and Gusev
// 2019). A row without a gradient still limits the step, so its second derivative contributes.
void RowSample::measure_rows() {
  constexpr double hessian_fraction = 0.5;
  constexpr std::size_t n_bins = 2048;  // by the leading bits of a size: eight per power of two
  sizes_.resize(state_.n_rows());
  std::vector<double> ratios;
  for (const GradientSums& t : gradients_.totals())
    ratios.push_back(hessian_fraction * t.gradient / std::max(t.hessian, 1e-300));
  for_each_chunk(state_.n_rows(), state_.n_threads(), 2.0, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      double sum = 0;
      for (std::uint32_t k = 0; k < state_.n_scores(); ++k) {
        const double g = gradients_.of(k)[r].gradient, h = ratios[k] * static_cast<double>(gradients_.of(k)[r].hessian);
        sum += g * g + h * h;
      }
      sizes_[r] = static_cast<float>(std::sqrt(sum));
    }
  });
  std::vector<std::size_t> counts(n_bins, 0);
  std::vector<double> sums(n_bins, 0.0);
  double below = 0;
  for (const Row r : state_.all) {
    const std::size_t bin = std::bit_cast<std::uint32_t>(sizes_[r]) >> 20;
    ++counts[bin];
    sums[bin] += static_cast<double>(sizes_[r]);
  }
  for (const double sum : sums) below += sum;
  double wanted = state_.params.subsample * static_cast<double>(state_.all.size());
  whole_size_ = std::max(below / wanted, 1e-300);
  for (std::size_t b = n_bins; b-- > 0 && static_cast<double>(counts[b]) < wanted;) {
    const auto least = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(b) << 20));
    if (counts[b] > 0 && below / wanted >= least) break;
    wanted -= static_cast<double>(counts[b]);
    below -= sums[b];
    whole_size_ = std::max(below / wanted, 1e-300);
  }
}

// Drawn rows represent similar rows that were not drawn.
void RowSample::reweight_drawn_rows() {
  const std::size_t n = in_bag_.size(), n_chunks = (n + chunk_rows - 1) / chunk_rows;
  for (std::uint32_t k = 0; k < state_.n_scores(); ++k) {
    Pair* pairs = gradients_.of(k);
    for (const Row r : out_of_bag_) pairs[r] = {};
    std::vector<GradientSums> sums(n_chunks);
    for_each_chunk(n, state_.n_threads(), 3.0, [&](std::size_t c, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        Pair& pair = pairs[in_bag_[i]];
        const auto factor = static_cast<float>(stands_for(in_bag_[i]));
        pair = {pair.gradient * factor, pair.hessian * factor};
        sums[c].gradient += std::abs(static_cast<double>(pair.gradient));
        sums[c].hessian += static_cast<double>(pair.hessian);
      }
    });
    gradients_.totals()[k] = {};
    for (const GradientSums& s : sums) gradients_.totals()[k] += s;
  }
}

}  // namespace spinney
