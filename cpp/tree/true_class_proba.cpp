#include "tree/true_class_proba.h"

#include <cmath>

#include "base/pool.h"
#include "tree/shrink.h"

namespace spinney {

namespace {

constexpr double unit =
    0x1p44;  // probabilities are summed as integers in units of its inverse, so that the order does not matter

struct Sums {
  std::vector<std::uint64_t> proba, amount;
};

std::uint64_t in_units(double number) { return static_cast<std::uint64_t>(std::nearbyint(number * unit)); }

void add_tree(const Forest& forest, std::size_t t, const EvaluatedLeaves& rows, std::span<const double> strengths,
              Sums& sums) {
  const std::size_t n_outputs = rows.n_classes.size(), n_rows = rows.codes.size() / n_outputs;
  const double* unseen = rows.unseen.data() + t * n_rows;
  Tree tree = forest.tree(t);
  const std::vector<double> plain = tree.value;
  for (std::size_t s = 0; s < strengths.size(); ++s) {
    tree.value = plain;
    shrink(tree, strengths[s]);
    for (std::size_t r = 0; r < n_rows; ++r) {
      if (unseen[r] == 0) continue;
      const std::span<const double> value = tree.value_of(rows.leaf[r * forest.n_trees() + t]);
      std::size_t first = 0;
      for (std::size_t k = 0; k < n_outputs; first += rows.n_classes[k++]) {
        const double proba = value[first + static_cast<std::size_t>(rows.codes[r * n_outputs + k])];
        sums.proba[(r * n_outputs + k) * strengths.size() + s] += in_units(proba * unseen[r]);
      }
    }
  }
  for (std::size_t r = 0; r < n_rows; ++r) sums.amount[r] += in_units(unseen[r]);
}

}  // namespace

void true_class_proba(const Forest& forest, const EvaluatedLeaves& rows, std::span<const double> strengths,
                      int n_threads, Interrupt& interrupt, std::vector<double>& out) {
  const std::size_t n_outputs = rows.n_classes.size(), n_rows = rows.codes.size() / n_outputs;
  const std::size_t n_sums = rows.codes.size() * strengths.size(), per_row = n_outputs * strengths.size();
  std::vector<Sums> by_worker(static_cast<std::size_t>(n_threads));
  parallel_for(forest.n_trees(), n_threads, [&](std::size_t t, int worker) {
    interrupt.check();
    Sums& sums = by_worker[static_cast<std::size_t>(worker)];
    sums.proba.resize(n_sums);
    sums.amount.resize(n_rows);
    add_tree(forest, t, rows, strengths, sums);
  });
  out.assign(n_sums, 0.0);
  for (std::size_t r = 0; r < n_rows; ++r) {
    std::uint64_t amount = 0;
    for (const Sums& sums : by_worker) amount += sums.amount.empty() ? 0 : sums.amount[r];
    for (std::size_t i = r * per_row; amount > 0 && i < (r + 1) * per_row; ++i) {
      std::uint64_t total = 0;
      for (const Sums& sums : by_worker) total += sums.proba.empty() ? 0 : sums.proba[i];
      out[i] = static_cast<double>(total) / static_cast<double>(amount);
    }
  }
}

}  // namespace spinney
