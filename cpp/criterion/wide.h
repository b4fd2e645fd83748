// Statistics of one weight and several sums: more than two classes, or several outputs. `stat` is {W, S_1, …, S_K}.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <vector>

#include "base/math.h"
#include "criterion/target.h"

namespace spinney {

struct ClassRows {
  const std::int32_t* codes;  // n_outputs per row
  const std::int64_t* w;      // null: every weight is 1
  std::size_t n_outputs;
  const std::uint32_t* begin;  // first class of each output
  std::int64_t weight(std::uint32_t row) const { return w == nullptr ? 1 : w[row]; }
  // Where a statistic has the weight of the row's class.
  std::size_t place(std::uint32_t row, std::size_t o) const {
    return 1 + begin[o] + static_cast<std::uint32_t>(codes[row * n_outputs + o]);
  }
  void add(std::uint32_t row, std::int64_t* stat) const {
    stat[0] += weight(row);
    for (std::size_t o = 0; o < n_outputs; ++o) stat[place(row, o)] += weight(row);
  }
  struct Local {
    std::vector<std::int32_t> codes;
    std::vector<std::int64_t> w;
    ClassRows fill(const ClassRows& all, std::span<const Row> rows) {
      codes.resize(rows.size() * all.n_outputs);
      w.resize(all.w == nullptr ? 0 : rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::copy_n(all.codes + rows[i] * all.n_outputs, all.n_outputs, codes.data() + i * all.n_outputs);
        if (all.w != nullptr) w[i] = all.w[rows[i]];
      }
      return {codes.data(), all.w == nullptr ? nullptr : w.data(), all.n_outputs, all.begin};
    }
  };
};

struct ValueRows {
  const std::int64_t* v;  // n_outputs per row
  const std::int64_t* w;  // null: every weight is 1
  std::size_t n_outputs;
  void add(std::uint32_t row, std::int64_t* stat) const {
    stat[0] += w == nullptr ? 1 : w[row];
    for (std::size_t k = 0; k < n_outputs; ++k) stat[1 + k] += v[row * n_outputs + k];
  }
  struct Local {
    std::vector<std::int64_t> v, w;
    ValueRows fill(const ValueRows& all, std::span<const Row> rows) {
      v.resize(rows.size() * all.n_outputs);
      w.resize(all.w == nullptr ? 0 : rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::copy_n(all.v + rows[i] * all.n_outputs, all.n_outputs, v.data() + i * all.n_outputs);
        if (all.w != nullptr) w[i] = all.w[rows[i]];
      }
      return {v.data(), all.w == nullptr ? nullptr : w.data(), all.n_outputs};
    }
  };
};

template <class Rows>
struct Wide {
  using Local = typename Rows::Local;

  Rows rows;
  Rule rule;
  const Target* target;

  std::size_t width() const { return 1 + target->value_width(); }
  void add(std::uint32_t row, std::int64_t* stat) const { rows.add(row, stat); }
  Wide on(const Rows& other) const { return {other, rule, target}; }

  double score(const std::int64_t* left, const std::int64_t* total) const {
    switch (rule) {
      case Rule::entropy:
      case Rule::gain_ratio:
        return entropy(left, total, all_places());
      case Rule::misclassification:
        return majority(left, total);
      case Rule::chi2:
        return squares(left, total, true, all_places());
      case Rule::generalised_gini:
        return costs(left, total);
      case Rule::poisson:
      case Rule::rate:
        return poisson(left, total);
      default:
        return squares(left, total, false, all_places());
    }
  }

  // The same by Gini or entropy, bit for bit, if all other classes have no rows. `present`: places in a statistic.
  double score_of_present(const std::int64_t* left, const std::int64_t* total,
                          std::span<const std::uint32_t> present) const {
    return rule == Rule::gini ? squares(left, total, false, present) : entropy(left, total, present);
  }

 private:
  auto all_places() const { return std::views::iota(std::size_t{1}, width()); }

  // Σ_k W_l W_r (mean_lk - mean_rk)^2; Gini is the squared error of the classes' indicators.
  // `by_total` divides each term by the class's weight: Pearson's chi-squared.
  template <class Places>
  double squares(const std::int64_t* left, const std::int64_t* total, bool by_total, const Places& places) const {
    const double wl = static_cast<double>(left[0]), wr = static_cast<double>(total[0] - left[0]);
    double sum = 0;
    for (const std::size_t k : places) {
      const double d = static_cast<double>(left[k]) * wr - static_cast<double>(total[k] - left[k]) * wl;
      if (!by_total)
        sum += d * d;
      else if (total[k] > 0)
        sum += d * d / static_cast<double>(total[k]);
    }
    return sum / (wl * wr);
  }

  // Minus d' C d with d as in `squares`: Gini is the case where all costs are 1. It is negative if a cut brings
  // together classes that are expensive to confuse.
  double costs(const std::int64_t* left, const std::int64_t* total) const {
    const double wl = static_cast<double>(left[0]), wr = static_cast<double>(total[0] - left[0]);
    const std::size_t n = width() - 1;
    const auto difference = [&](std::size_t k) {
      return static_cast<double>(left[1 + k]) * wr - static_cast<double>(total[1 + k] - left[1 + k]) * wl;
    };
    double sum = 0;
    for (std::size_t k = 1; k < n; ++k) {
      double row = 0;
      for (std::size_t other = 0; other < k; ++other) row += target->pair_cost[k * n + other] * difference(other);
      sum += row * difference(k);
    }
    return -2 * sum / (wl * wr);
  }

  template <class Places>
  double entropy(const std::int64_t* left, const std::int64_t* total, const Places& places) const {
    double sum = 0;
    for (const std::size_t k : places)
      sum += x_log_x(static_cast<double>(left[k])) + x_log_x(static_cast<double>(total[k] - left[k]));
    const double outputs = static_cast<double>(target->input.n_outputs);
    return sum - outputs * (x_log_x(static_cast<double>(left[0])) + x_log_x(static_cast<double>(total[0] - left[0])));
  }

  double majority(const std::int64_t* left, const std::int64_t* total) const {
    double sum = 0;
    for (std::size_t o = 0; o < target->input.n_outputs; ++o) {
      std::int64_t most_left = 0, most_right = 0;
      for (std::size_t k = 1 + target->class_begin[o]; k < 1 + target->class_begin[o + 1]; ++k) {
        most_left = std::max(most_left, left[k]);
        most_right = std::max(most_right, total[k] - left[k]);
      }
      sum += static_cast<double>(most_left) + static_cast<double>(most_right);
    }
    return sum;
  }

  double poisson(const std::int64_t* left, const std::int64_t* total) const {
    const double wl = static_cast<double>(left[0]), wr = static_cast<double>(total[0] - left[0]);
    double sum = 0;
    for (std::size_t k = 1; k < width(); ++k) {
      if (rule == Rule::poisson && (left[k] <= 0 || total[k] - left[k] <= 0))
        return -std::numeric_limits<double>::infinity();
      const double sl = static_cast<double>(left[k]), sr = static_cast<double>(total[k] - left[k]);
      sum += sl * log_ieee(sl / wl) + sr * log_ieee(sr / wr);
    }
    return sum;
  }
};

}  // namespace spinney
