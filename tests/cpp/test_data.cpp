// Sorting and binning of columns, the rows of trees, and the logarithm.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/math.h"
#include "base/spill.h"
#include "check.h"
#include "data/bins.h"
#include "data/read.h"
#include "data/sample.h"
#include "data/sort.h"

using namespace spinney;

template <class T>
static Column column_of(const std::vector<T>& v, DType type) {
  Column c;
  c.data = reinterpret_cast<const std::byte*>(v.data());
  c.stride = sizeof(T);
  c.dtype = type;
  return c;
}

static std::vector<Row> all_rows(std::size_t n) {
  std::vector<Row> rows(n);
  for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(i);
  return rows;
}

// Sorted by value, then row; equal values share a code; missing rows come last.
static bool is_sorted_by(std::span<const Entry> entries, const Column& c) {
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const double a = value_at(c, row_of(entries[i - 1])), b = value_at(c, row_of(entries[i]));
    const bool ordered = a < b || (b != b && a == a);
    const bool tied = (a == b || (a != a && b != b)) && row_of(entries[i - 1]) < row_of(entries[i]);
    if (!(ordered ? code_of(entries[i - 1]) < code_of(entries[i])
                  : tied && code_of(entries[i - 1]) == code_of(entries[i])))
      return false;
  }
  return true;
}

template <class T>
static std::vector<T> some_numbers(std::size_t n, unsigned seed) {
  std::mt19937 g(seed);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<int>(g() % 2000) - 1000) / static_cast<T>(seed % 2 ? 7 : 1);
  return v;
}

TEST(sort_orders_every_size_and_type) {
  ColumnSorter sorter;
  for (const std::size_t n : {1u, 2u, 20u, 300u, 5000u})
    for (unsigned seed = 0; seed < 4; ++seed) {
      const auto rows = all_rows(n);
      auto f = some_numbers<float>(n, seed);
      auto d = some_numbers<double>(n, seed);
      if (n > 2) {
        f[0] = d[0] = std::numeric_limits<float>::quiet_NaN();
        f[1] = d[1] = -std::numeric_limits<float>::infinity();
        f[2] = d[2] = -0.0f;
      }
      const auto i = some_numbers<std::int64_t>(n, 0);
      CHECK(is_sorted_by(sorter.sort(column_of(f, DType::f32), rows, false), column_of(f, DType::f32)));
      CHECK(is_sorted_by(sorter.sort(column_of(d, DType::f64), rows, false), column_of(d, DType::f64)));
      CHECK(is_sorted_by(sorter.sort(column_of(i, DType::i64), rows, false), column_of(i, DType::i64)));
    }
}

TEST(doubles_that_share_their_upper_half_are_ordered) {
  std::vector<double> d;
  for (int i = 0; i < 1000; ++i) d.push_back(1.0 + ((i * 37) % 1000) * 0x1p-50);
  ColumnSorter sorter;
  CHECK(is_sorted_by(sorter.sort(column_of(d, DType::f64), all_rows(d.size()), false), column_of(d, DType::f64)));
}

TEST(sparse_and_masked_columns_read_as_dense_ones) {
  const std::vector<double> stored{5, -1, 2};
  const std::vector<std::int32_t> at{1, 3, 4};
  Column c = column_of(stored, DType::f64);
  c.sparse_rows = at.data();
  c.n_sparse = at.size();
  const double expected[] = {0, 5, 0, -1, 2, 0};
  for (Row r = 0; r < 6; ++r) CHECK_EQ(value_at(c, r), expected[r]);
  const std::vector<std::uint8_t> mask{0, 1, 0};
  Column m = column_of(stored, DType::f64);
  m.mask = mask.data();
  m.mask_stride = 1;
  CHECK(std::isnan(value_at(m, 1)));
  CHECK_EQ(value_at(m, 2), 2.0);
}

TEST(every_value_has_its_own_bin_when_there_are_enough) {
  const auto v = some_numbers<double>(3000, 1);
  ColumnSorter sorter;
  const BinnedColumn b = bin_column(column_of(v, DType::f64), v.size(), all_rows(v.size()), nullptr, 4000, sorter);
  for (std::size_t i = 0; i < v.size(); ++i)
    for (std::size_t j = 0; j < v.size(); j += 97)
      CHECK_EQ(v[i] < v[j], b.code(static_cast<Row>(i)) < b.code(static_cast<Row>(j)));
}

TEST(bins_of_a_column_in_a_file_are_those_of_its_sorted_rows) {
  const auto spill = std::make_shared<Spill>("/tmp", 50'000);
  auto v = some_numbers<double>(9000, 5);
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i % 10 == 0) v[i] = std::nan("");
    if (i % 3 == 0) v[i] = i % 2 == 0 ? 0.0 : -0.0;
    if (i % 501 == 7) v[i] = i % 2 == 0 ? INFINITY : -INFINITY;
  }
  std::vector<double> weight(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) weight[i] = 0.1 * static_cast<double>(i % 7);
  std::vector<Row> rows;
  for (Row r = 0; r < v.size(); ++r)
    if (weight[r] > 0) rows.push_back(r);
  const std::vector<double> few{3, 1, 2, 2, std::nan(""), 1}, none(5, std::nan(""));
  ColumnSorter sorter;
  const auto check = [&](const std::vector<double>& values, const std::vector<Row>& some, const double* w,
                         std::uint32_t max_bins, std::size_t most) {
    const Column column = column_of(values, DType::f64);
    const BinnedColumn known = bin_column(column, values.size(), some, w, max_bins, sorter);
    const BinnedColumn found = bin_spilled_column(column, values.size(), some, w, max_bins, most, spill, sorter);
    CHECK_EQ(found.n_bins, known.n_bins);
    CHECK(found.edges == known.edges);
    for (const Row r : some) CHECK_EQ(found.code(r), known.code(r));
  };
  for (const std::uint32_t max_bins : {2u, 16u, 300u, 20000u})
    for (const std::size_t most : {64u, 700u, 100000u}) {
      check(v, all_rows(v.size()), nullptr, max_bins, most);
      check(v, rows, weight.data(), max_bins, most);
    }
  check(few, all_rows(few.size()), nullptr, 255, 64);
  check(none, all_rows(none.size()), nullptr, 255, 64);
}

TEST(bins_are_few_balanced_and_consistent_with_their_edges) {
  auto v = some_numbers<double>(20000, 3);
  for (std::size_t i = 0; i < v.size(); i += 10) v[i] = std::nan("");
  ColumnSorter sorter;
  for (const std::uint32_t max_bins : {2u, 16u, 255u, 300u}) {
    const BinnedColumn b =
        bin_column(column_of(v, DType::f64), v.size(), all_rows(v.size()), nullptr, max_bins, sorter);
    CHECK_EQ(b.n_bins, max_bins);
    std::vector<std::size_t> count(b.n_bins + 1, 0);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::uint32_t code = b.code(static_cast<Row>(i));
      ++count[code];
      if (std::isnan(v[i]))
        CHECK_EQ(code, b.n_bins);
      else
        CHECK_EQ(code,
                 static_cast<std::uint32_t>(std::lower_bound(b.edges.begin(), b.edges.end(), v[i]) - b.edges.begin()));
    }
    CHECK(*std::max_element(count.begin(), count.end() - 1) < 3 * 18000 / max_bins + 50);
  }
}

TEST(edges_of_short_keys_are_those_of_the_values) {
  ColumnSorter sorter;
  std::vector<std::uint32_t> keys, spare;
  for (const std::size_t n : {0u, 1u, 500u, 5000u}) {
    auto floats = some_numbers<float>(n, 1);
    for (std::size_t i = 0; i < n; i += 9) floats[i] = i % 2 ? std::nanf("") : -0.0f;
    const auto shorts = some_numbers<std::int16_t>(n, 2);
    for (const Column& c : {column_of(floats, DType::f32), column_of(shorts, DType::i16)})
      for (const std::uint32_t max_bins : {2u, 255u, 60000u}) {
        const auto rows = all_rows(n);
        CHECK(has_short_keys(c));
        keys.resize(n);
        read_short_keys(c, rows, keys.data());
        CHECK(bin_edges(keys, max_bins, spare) == bin_edges(c, rows, nullptr, max_bins, sorter));
      }
  }
}

// Stored zeros, negative and missing values; rows with weights 0 … 3, or 1 each.
TEST(edges_of_a_sparse_column_are_those_of_the_full_one) {
  std::mt19937_64 g(16);
  ColumnSorter sorter;
  for (int i = 0; i < 200; ++i) {
    const std::size_t n = 1 + g() % 300;
    std::vector<double> full(n, 0.0), stored, weight(n);
    std::vector<std::int32_t> where;
    for (std::size_t r = 0; r < n; ++r) {
      weight[r] = i % 2 == 0 ? 1.0 : static_cast<double>(g() % 4);
      if (g() % 4 != 0) continue;
      full[r] =
          g() % 20 == 0 ? std::nan("") : static_cast<double>(g() % (i % 3 == 0 ? 3 : 500)) - (i % 5 == 0 ? 90.0 : 0.0);
      where.push_back(static_cast<std::int32_t>(r));
      stored.push_back(full[r]);
    }
    std::vector<Row> rows;
    for (std::size_t r = 0; r < n; ++r)
      if (weight[r] > 0) rows.push_back(static_cast<Row>(r));
    if (rows.empty() || stored.empty()) continue;
    Column sparse = column_of(stored, DType::f64);
    sparse.sparse_rows = where.data();
    sparse.n_sparse = where.size();
    const double* weights = i % 2 == 0 ? nullptr : weight.data();
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    for (const std::uint32_t max_bins : {2u, 7u, 255u})
      CHECK(bin_edges_of_stored(sparse, rows, weights, total, max_bins) ==
            bin_edges(column_of(full, DType::f64), rows, weights, max_bins, sorter));
  }
}

TEST(a_cut_separates_its_neighbours) {
  const double inf = std::numeric_limits<double>::infinity(), tiny = std::numeric_limits<double>::denorm_min();
  const double numbers[] = {-inf, -1e308, -1.0, 0.0, tiny, 1.0, std::nextafter(1.0, 2.0), 1e308, inf};
  for (const double low : numbers)
    for (const double high : numbers)
      if (low < high) CHECK(low <= cut_between(low, high) && cut_between(low, high) < high);
}

TEST(bits_of_rows_in_bag_are_the_rows_drawn) {
  Interrupt interrupt;
  for (const std::uint32_t n_rows : {1u, 63u, 64u, 200u})
    for (const bool replace : {true, false}) {
      Sampling sampling{replace, 7, all_rows(n_rows), {all_rows(n_rows)}, {(n_rows + 1) / 2}, n_rows};
      if (n_rows > 2) sampling.unit_of_row[1] = UINT32_MAX;
      const std::size_t n_words = (n_rows + 63) / 64;
      for (const int n_threads : {1, 3}) {
        const auto bits = rows_in_bag(sampling, 2, 6, n_threads, interrupt);
        CHECK_EQ(bits.size(), 4 * n_words);
        std::vector<std::uint32_t> units, counts(n_rows);
        for (std::uint32_t t = 2; t < 6; ++t) {
          draw_counts(sampling, t, units, counts);
          for (std::size_t r = 0; r < n_words * 64; ++r)
            CHECK_EQ(bits[(t - 2) * n_words + r / 64] >> (r % 64) & 1, std::uint64_t{r < n_rows && counts[r] > 0});
        }
      }
    }
}

TEST(log_is_accurate_to_a_few_ulps) {
  std::mt19937_64 g(5);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(g() >> 11) * 0x1p-53, static_cast<int>(g() % 120) - 60);
    const double exact = std::log(x);
    worst = std::max(worst, std::abs(log_ieee(x) - exact) / std::max(std::abs(exact), 1e-3));
  }
  CHECK(worst < 1e-15);
  CHECK_EQ(log_ieee(1.0), 0.0);
  CHECK_EQ(x_log_x(0.0), 0.0);
}
