#include "margin/linear.h"

#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "margin/kernel.h"

namespace spinney {

namespace {

constexpr std::size_t rows_per_block = 1024;  // rows whose terms stay in cache
constexpr std::size_t most_parts = 32;        // separate partial sums, which are added in order

// A fixed range of the rows for any number of threads, in whole blocks.
std::size_t rows_per_part(std::size_t n_rows) {
  const std::size_t n_blocks = (n_rows + rows_per_block - 1) / rows_per_block;
  return (n_blocks + most_parts - 1) / most_parts * rows_per_block;
}

std::vector<double> added(const std::vector<std::vector<double>>& parts) {
  std::vector<double> total = parts.front();
  for (std::size_t p = 1; p < parts.size(); ++p)
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += parts[p][i];
  return total;
}

// Calls body(partial sums, first row, number of rows) for each block of each part.
template <class Body>
std::vector<double> sum_blocks(std::size_t n_rows, std::size_t n_sums, int n_threads, Interrupt& interrupt,
                               Body&& body) {
  const std::size_t per_part = rows_per_part(n_rows), n_parts = (n_rows + per_part - 1) / per_part;
  std::vector<std::vector<double>> parts(n_parts);
  parallel_for(n_parts, n_threads, [&](std::size_t part, int) {
    parts[part].assign(n_sums, 0.0);
    const std::size_t end = std::min(n_rows, (part + 1) * per_part);
    for (std::size_t first = part * per_part; first < end; first += rows_per_block) {
      interrupt.check();
      body(parts[part], first, std::min(rows_per_block, end - first));
    }
  });
  return added(parts);
}

}  // namespace

void weighted_terms(const TermTable& table, const double* weights, int n_threads, Interrupt& interrupt, double* out) {
  const std::size_t n_tasks = (table.n_rows + rows_per_block - 1) / rows_per_block;
  const MarginKernels& kernels = margin_kernels();
  std::vector<double> negative(table.n_terms);
  for (std::size_t k = 0; k < table.n_terms; ++k) negative[k] = -weights[k];
  const double cost = static_cast<double>(table.n_rows * table.n_terms);
  parallel_for_if_worth(cost, n_tasks, n_threads, [&](std::size_t task, int) {
    if (task % 16 == 0) interrupt.check();
    const std::size_t first = task * rows_per_block, n = std::min(rows_per_block, table.n_rows - first);
    double* to = out + first;
    std::fill(to, to + n, weights[table.n_terms]);
    std::vector<const double*> columns(table.n_terms);
    for (std::size_t k = 0; k < table.n_terms; ++k) columns[k] = table.terms + k * table.n_rows + first;
    const std::size_t whole = n / tile_rows * tile_rows;
    kernels.subtract_long(columns.data(), negative.data(), table.n_terms, whole, to);
    for (std::size_t i = whole; i < n; ++i)
      for (std::size_t k = 0; k < table.n_terms; ++k) to[i] = to[i] - negative[k] * columns[k][i];
  });
}

std::vector<double> term_sums(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt) {
  const MarginKernels& kernels = margin_kernels();
  const std::vector<double> ones(rows_per_block, 1.0);
  return sum_blocks(table.n_rows, table.n_terms + 1, n_threads, interrupt,
                    [&](std::vector<double>& sums, std::size_t first, std::size_t n) {
                      for (std::size_t k = 0; k < table.n_terms; ++k)
                        sums[k] += kernels.dot(table.terms + k * table.n_rows + first, factors + first, n);
                      sums[table.n_terms] += kernels.dot(ones.data(), factors + first, n);
                    });
}

std::vector<double> term_products(const TermTable& table, const double* factors, int n_threads, Interrupt& interrupt) {
  const MarginKernels& kernels = margin_kernels();
  const std::vector<double> ones(rows_per_block, 1.0);
  const std::size_t d = table.n_terms + 1;
  std::vector<double> found = sum_blocks(
      table.n_rows, d * d, n_threads, interrupt, [&](std::vector<double>& sums, std::size_t first, std::size_t n) {
        std::vector<double> scaled(2 * rows_per_block);
        const auto term = [&](std::size_t k) {
          return k < table.n_terms ? table.terms + k * table.n_rows + first : ones.data();
        };
        for (std::size_t j = 0; j < d; j += 2) {
          const std::size_t second = std::min(j + 1, d - 1);
          const double* one[] = {scaled.data(), scaled.data() + rows_per_block};
          for (std::size_t i = 0; i < n; ++i) {
            scaled[i] = term(j)[i] * factors[first + i];
            scaled[rows_per_block + i] = term(second)[i] * factors[first + i];
          }
          for (std::size_t k = 0; k <= second; k += 2) {
            const std::size_t other_second = std::min(k + 1, d - 1);
            const double* other[] = {term(k), term(other_second)};
            double products[4];
            kernels.four_dots(one, other, n, products);
            sums[j * d + k] += products[0];
            if (other_second > k) sums[j * d + other_second] += products[1];
            if (second > j) sums[second * d + k] += products[2];
            if (second > j && other_second > k) sums[second * d + other_second] += products[3];
          }
        }
      });
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < j; ++k) found[k * d + j] = found[j * d + k];
  return found;
}

bool solve_positive(std::vector<double>& a, std::size_t n, double* right_sides, std::size_t n_sides) {
  const auto dot = margin_kernels().dot;
  for (std::size_t j = 0; j < n; ++j) {
    const double pivot = a[j * n + j] - dot(a.data() + j * n, a.data() + j * n, j);
    if (!(pivot > 0)) return false;
    const double root = std::sqrt(pivot);
    a[j * n + j] = root;
    for (std::size_t i = j + 1; i < n; ++i)
      a[i * n + j] = (a[i * n + j] - dot(a.data() + i * n, a.data() + j * n, j)) / root;
  }
  for (std::size_t s = 0; s < n_sides; ++s) {
    double* x = right_sides + s * n;
    for (std::size_t j = 0; j < n; ++j) x[j] = (x[j] - dot(a.data() + j * n, x, j)) / a[j * n + j];
    for (std::size_t j = n; j-- > 0;) {
      x[j] /= a[j * n + j];
      for (std::size_t i = 0; i < j; ++i) x[i] -= a[j * n + i] * x[j];
    }
  }
  return true;
}

}  // namespace spinney
