#include "predict/proximity.h"

#include <algorithm>
#include <bit>

#include "base/pool.h"

namespace spinney {
namespace {

constexpr std::size_t rows_per_task = 32;

// Counts of one thread; reset to 0 between rows.
struct Counter {
  std::vector<std::uint16_t> count;    // by other row
  std::vector<std::uint32_t> touched;  // other rows with a non-zero count

  explicit Counter(std::size_t n_others) : count(n_others, 0), touched(n_others + 1) {}

  // Counts the trees that each other row shares with this one and returns the rows that share any.
  std::span<const std::uint32_t> count_shared(const SharedLeaves& leaves, std::size_t row) {
    std::size_t n_touched = 0;
    for (std::size_t t = 0; t < leaves.n_trees; ++t) {
      const std::uint32_t leaf = leaves.leaf[row * leaves.n_trees + t];
      if (leaf == SharedLeaves::nowhere) continue;
      for (std::uint64_t i = leaves.starts[leaf]; i < leaves.starts[leaf + 1]; ++i) {
        const std::uint32_t other = leaves.others[i];
        touched[n_touched] = other;  // branch-free: new rows are unpredictable
        n_touched += count[other]++ == 0;
      }
    }
    if (leaves.is_self)
      for (std::size_t i = 0; i < n_touched; ++i)
        if (touched[i] == row) {
          touched[i] = touched[--n_touched];
          count[row] = 0;
          break;
        }
    return {touched.data(), n_touched};
  }

  void forget(std::span<const std::uint32_t> others) {
    for (const std::uint32_t other : others) count[other] = 0;
  }
};

std::uint32_t trees_of_both(const SharedLeaves& leaves, std::size_t row, std::size_t other) {
  if (leaves.n_words == 0) return static_cast<std::uint32_t>(leaves.n_trees);
  int n = 0;
  for (std::size_t w = 0; w < leaves.n_words; ++w)
    n += std::popcount(leaves.bits[row * leaves.n_words + w] & leaves.other_bits[other * leaves.n_words + w]);
  return static_cast<std::uint32_t>(n);
}

template <class Body>  // body(row, counter)
void for_each_row(const SharedLeaves& leaves, int n_threads, Interrupt& interrupt, Body&& body) {
  const std::size_t n_rows = leaves.n_rows(), n_tasks = (n_rows + rows_per_task - 1) / rows_per_task;
  std::vector<Counter> counters(static_cast<std::size_t>(n_threads), Counter(leaves.n_others));
  parallel_for(n_tasks, n_threads, [&](std::size_t task, int worker) {
    for (std::size_t row = task * rows_per_task; row < std::min(n_rows, (task + 1) * rows_per_task); ++row) {
      interrupt.check();
      body(row, counters[static_cast<std::size_t>(worker)]);
    }
  });
}

struct Near {
  double proximity;
  std::uint32_t other;
};

bool is_nearer(const Near& a, const Near& b) {
  return a.proximity != b.proximity ? a.proximity > b.proximity : a.other < b.other;
}

// The minimum number of shared trees of the nearest rows if every tree counts. A row often shares some tree with
// thousands of others: counting the counts avoids writing all of them.
std::uint32_t fewest_shared(const Counter& counter, std::span<const std::uint32_t> others, std::size_t n_trees,
                            std::size_t n_most) {
  std::vector<std::uint32_t> n_with(n_trees + 1, 0);
  for (const std::uint32_t other : others) ++n_with[counter.count[other]];
  std::size_t n = 0, least = n_trees;
  while (least > 1 && (n += n_with[least]) < n_most) --least;
  return static_cast<std::uint32_t>(least);
}

std::vector<Near> nearest_of(const SharedLeaves& leaves, std::size_t row, Counter& counter, std::size_t n_most,
                             double threshold) {
  std::vector<Near> found;
  const std::span<const std::uint32_t> others = counter.count_shared(leaves, row);
  const std::uint32_t least = leaves.n_words > 0 ? 0 : fewest_shared(counter, others, leaves.n_trees, n_most);
  for (const std::uint32_t other : others) {
    if (counter.count[other] < least) continue;
    const double proximity = static_cast<double>(counter.count[other]) / trees_of_both(leaves, row, other);
    if (proximity >= threshold) found.push_back({proximity, other});
  }
  counter.forget(others);
  if (found.size() > n_most) {
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n_most), found.end(), is_nearer);
    found.resize(n_most);
  }
  std::sort(found.begin(), found.end(), [](const Near& a, const Near& b) { return a.other < b.other; });
  found.shrink_to_fit();
  return found;
}

}  // namespace

Neighbours nearest_rows(const SharedLeaves& leaves, std::size_t n_most, double threshold, int n_threads,
                        Interrupt& interrupt) {
  std::vector<std::vector<Near>> near(leaves.n_rows());
  for_each_row(leaves, n_threads, interrupt, [&](std::size_t row, Counter& counter) {
    near[row] = nearest_of(leaves, row, counter, n_most, threshold);
  });
  Neighbours result;
  for (std::vector<Near>& row : near) {
    result.n.push_back(static_cast<std::uint32_t>(row.size()));
    for (const Near& entry : row) {
      result.other.push_back(entry.other);
      result.proximity.push_back(entry.proximity);
    }
    row = {};
  }
  return result;
}

std::vector<double> squared_proximities(const SharedLeaves& leaves, int n_threads, Interrupt& interrupt) {
  std::vector<double> sums(leaves.n_rows(), 0.0);
  const auto n_trees = static_cast<double>(leaves.n_trees);
  for_each_row(leaves, n_threads, interrupt, [&](std::size_t row, Counter& counter) {
    double sum = 0;
    const std::span<const std::uint32_t> others = counter.count_shared(leaves, row);
    for (const std::uint32_t other : others) {
      const double n = counter.count[other];
      // squares of integers are summed exactly, so that rows in the same leaves get the same sum
      const double proximity_of_pair = leaves.n_words == 0 ? n : n / trees_of_both(leaves, row, other);
      sum += proximity_of_pair * proximity_of_pair;
    }
    counter.forget(others);
    sums[row] = leaves.n_words == 0 ? sum / (n_trees * n_trees) : sum;
  });
  return sums;
}

}  // namespace spinney
