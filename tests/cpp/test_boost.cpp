// Boosting kernels: bit-identical for every instruction set, and correct.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/math.h"
#include "boost/kernels.h"
#include "boost/listed.h"
#include "boost/roots.h"
#include "boost/row_partitioner.h"
#include "boost/tiles.h"
#include "check.h"
#include "every_isa.h"

using namespace spinney;

static std::vector<const BoostKernels*> available() {
  return of_every_isa([](auto isa) { return &boost_kernels_of(isa); });
}
static const BoostKernels& plain = boost_kernels_of(OfIsa<Isa::base>{});

template <class T>
static bool bit_identical(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

static double ulps(long double found, double expected) {
  const double next = std::nextafter(std::abs(expected), std::numeric_limits<double>::infinity());
  return static_cast<double>(std::abs(found - expected) / (next - std::abs(expected)));
}

TEST(exponential_and_logarithm_are_right_to_an_ulp) {
  std::mt19937_64 g(1);
  std::uniform_real_distribution<double> wide(-700, 700), narrow(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    for (const double x : {wide(g), narrow(g)}) CHECK(ulps(exp_ieee(x), std::exp(x)) <= 1);
    const double y = std::exp(wide(g)), z = 1 + narrow(g) * 0.1;
    CHECK(ulps(log_ieee(y), std::log(y)) <= 1);
    CHECK(std::abs(log_ieee(z) - std::log(z)) <= 2e-16);
    for (const double x : {y, z, std::abs(narrow(g))})
      CHECK(ulps(std::log(static_cast<long double>(x)), log_nearest(x)) <= 0.55);
  }
  CHECK_EQ(exp_ieee(0.0), 1.0);
  CHECK_EQ(log_ieee(1.0), 0.0);
}

TEST(gradients_and_losses_are_bit_identical) {
  std::mt19937_64 g(2);
  std::normal_distribution<double> normal(0, 3);
  for (const std::size_t n : {1u, 5u, 63u, 65u, 200u, 1001u}) {
    std::vector<double> y(n), f(n), w(n), expected_value(n), value(n);
    std::vector<Pair> expected(n), got(n);
    for (std::size_t i = 0; i < n; ++i) {
      y[i] = static_cast<double>(g() % 2);
      f[i] = normal(g);
      w[i] = std::abs(normal(g));
    }
    for (std::size_t loss = 0; loss < n_losses; ++loss) {
      if (boost_kernels().losses[loss].gradients == nullptr) continue;  // multiclass or external
      for (const double* weight : {static_cast<const double*>(nullptr), static_cast<const double*>(w.data())}) {
        plain.losses[loss].gradients(y.data(), f.data(), weight, n, {1.3}, expected.data(), nullptr);
        plain.losses[loss].values(y.data(), f.data(), n, {1.3}, expected_value.data());
        std::vector<double> expected_summed(n);
        plain.losses[loss].gradients(y.data(), f.data(), weight, n, {1.3}, got.data(), expected_summed.data());
        const double sum = std::accumulate(expected_value.begin(), expected_value.end(), 0.0);
        CHECK(std::abs(std::accumulate(expected_summed.begin(), expected_summed.end(), 0.0) - sum) <=
              1e-13 * std::abs(sum));
        for (const BoostKernels* k : available()) {
          k->losses[loss].gradients(y.data(), f.data(), weight, n, {1.3}, got.data(), nullptr);
          k->losses[loss].values(y.data(), f.data(), n, {1.3}, value.data());
          CHECK(bit_identical(expected, got));
          CHECK(bit_identical(expected_value, value));
          std::fill(got.begin(), got.end(), Pair{});
          k->losses[loss].gradients(y.data(), f.data(), weight, n, {1.3}, got.data(), value.data());
          CHECK(bit_identical(expected, got));
          CHECK(bit_identical(weight == nullptr ? expected_summed : expected_value, value));
        }
      }
    }
  }
}

TEST(softmax_is_bit_identical_and_sums_to_one) {
  std::mt19937_64 g(3);
  std::normal_distribution<double> normal(0, 5);
  const std::size_t n = 777, n_classes = 5;
  std::vector<std::vector<double>> scores(n_classes, std::vector<double>(n)), proba = scores, first = scores;
  for (auto& s : scores)
    for (double& v : s) v = normal(g);
  for (std::size_t i = 0; i < n; i += 5) scores[i % n_classes][i] *= 300;  // probabilities that are effectively 0
  std::vector<double> target(n), loss(n), first_loss(n), log_sums(n);
  for (double& t : target) t = static_cast<double>(g() % n_classes);
  std::vector<const double*> from;
  std::vector<double*> to, to_first;
  for (std::size_t k = 0; k < n_classes; ++k) {
    from.push_back(scores[k].data());
    to.push_back(proba[k].data());
    to_first.push_back(first[k].data());
  }
  plain.softmax(from.data(), n_classes, n, to_first.data(), nullptr);
  plain.softmax_loss(from.data(), n_classes, target.data(), n, first_loss.data());
  for (const BoostKernels* kernels : available()) {
    kernels->softmax(from.data(), n_classes, n, to.data(), log_sums.data());
    kernels->softmax_loss(from.data(), n_classes, target.data(), n, loss.data());
    for (std::size_t k = 0; k < n_classes; ++k) CHECK(bit_identical(first[k], proba[k]));
    CHECK(bit_identical(first_loss, loss));
    for (std::size_t i = 0; i < n; ++i) CHECK_EQ(log_sums[i] - scores[static_cast<std::size_t>(target[i])][i], loss[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < n_classes; ++k) sum += proba[k][i];
    CHECK(std::abs(sum - 1) < 1e-14);
    const double p_true = proba[static_cast<std::size_t>(target[i])][i];
    if (p_true > 1e-100) CHECK(std::abs(loss[i] + std::log(p_true)) < 1e-12);
  }
  // A single row, without the vectorised loop over eight.
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<const double*> row;
    std::vector<double> alone(n_classes);
    std::vector<double*> to_alone;
    for (std::size_t k = 0; k < n_classes; ++k) {
      row.push_back(scores[k].data() + i);
      to_alone.push_back(alone.data() + k);
    }
    double loss_alone = 0;
    plain.softmax(row.data(), n_classes, 1, to_alone.data(), nullptr);
    plain.softmax_loss(row.data(), n_classes, target.data() + i, 1, &loss_alone);
    for (std::size_t k = 0; k < n_classes; ++k) CHECK_EQ(alone[k], first[k][i]);
    CHECK_EQ(loss_alone, first_loss[i]);
  }
}

TEST(gradients_of_classes_and_their_sums_are_bit_identical) {
  std::mt19937_64 g(8);
  std::uniform_real_distribution<double> draw(0, 1);
  for (const std::size_t n : {1u, 130u, 1001u}) {
    std::vector<double> proba(n), target(n), weight(n);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < n; ++i) {
      proba[i] = draw(g);
      target[i] = static_cast<double>(g() % 3);
      weight[i] = draw(g);
      if (g() % 3 > 0) rows.push_back(static_cast<Row>(i));
    }
    for (const double* w : {static_cast<const double*>(nullptr), static_cast<const double*>(weight.data())}) {
      std::vector<Pair> expected(n), got(n);
      std::int64_t gradient = 0, hessian = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double p = proba[i], times = w == nullptr ? 1.0 : w[i];
        expected[i] = {static_cast<float>((p - (target[i] == 2 ? 1.0 : 0.0)) * times),
                       static_cast<float>(1.5 * p * (1 - p) * times)};
      }
      for (const Row r : rows) {
        gradient += static_cast<std::int64_t>(static_cast<double>(expected[r].gradient) * 0x1p40);
        hessian += static_cast<std::int64_t>(static_cast<double>(expected[r].hessian) * 0x1p41);
      }
      for (const BoostKernels* k : available()) {
        k->class_gradients(proba.data(), target.data(), w, n, 2, 1.5, got.data());
        CHECK(bit_identical(expected, got));
        const WholeSums sums = k->sum_pairs(got.data(), rows.data(), rows.size(), 0x1p40, 0x1p41);
        CHECK_EQ(sums.gradient, gradient);
        CHECK_EQ(sums.hessian, hessian);
      }
    }
  }
}

TEST(whole_numbers_are_not_rounded) {
  const std::size_t n = 1000;
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < n; ++i) pairs.push_back({i % 2 == 0 ? 1.0f : -1.0f, 1.0f});
  std::vector<Packed> got(n);
  for (const BoostKernels* k : available())
    for (const float scale :
         {1.0f, 8.0f, 0x1p23f, 0x1p24f, 0x1p26f}) {  // beyond 2^24 a float cannot represent the draw
      k->quantise(pairs.data(), 0, n, scale, scale, 5, got.data());
      for (std::size_t i = 0; i < n; ++i) {
        CHECK_EQ(gradient_of(got[i]), static_cast<std::int64_t>(pairs[i].gradient * scale));
        CHECK_EQ(hessian_of(got[i]), static_cast<std::int64_t>(scale));
      }
    }
}

TEST(rounding_is_unbiased_and_bit_identical) {
  const std::size_t n = 100'003;
  std::mt19937_64 g(4);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<Pair> pairs(n);
  double gradient = 0, hessian = 0;
  for (Pair& p : pairs) {
    p = {draw(g), std::abs(draw(g))};
    gradient += static_cast<double>(p.gradient);
    hessian += static_cast<double>(p.hessian);
  }
  std::vector<Packed> expected(n), got(n);
  const float scale = 3.0f;  // coarse on purpose
  plain.quantise(pairs.data(), 0, n, scale, scale, 77, expected.data());
  for (const BoostKernels* k : available()) {
    k->quantise(pairs.data(), 0, n, scale, scale, 77, got.data());
    CHECK(bit_identical(expected, got));
    const std::size_t some = 4099;  // in two parts: rows are identified by their number
    k->quantise(pairs.data(), 0, some, scale, scale, 77, got.data());
    k->quantise(pairs.data() + some, some, n - some, scale, scale, 77, got.data() + some);
    CHECK(bit_identical(expected, got));
  }
  double g_sum = 0, h_sum = 0;
  for (const Packed p : expected) {
    g_sum += static_cast<double>(gradient_of(p));
    h_sum += static_cast<double>(hessian_of(p));
  }
  const double noise =
      4 * std::sqrt(static_cast<double>(n)) / 2;  // a rounding error has a standard deviation of at most 1/2
  CHECK(std::abs(g_sum - 3 * gradient) < noise);
  CHECK(std::abs(h_sum - 3 * hessian) < noise);
}

TEST(partition_of_codes_is_stable_and_the_same_everywhere) {
  std::mt19937_64 g(5);
  for (const std::size_t n : {1u, 15u, 64u, 1000u}) {
    std::vector<std::uint8_t> codes(5000 + 4);
    for (auto& c : codes) c = static_cast<std::uint8_t>(g() % 200);
    std::vector<Row> rows(n);
    for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(i * 5);
    for (const std::uint32_t also_left : {UINT32_MAX, 199u}) {
      std::vector<Row> left, right;
      for (const Row r : rows) (codes[r] <= 80 || codes[r] == also_left ? left : right).push_back(r);
      std::vector<Row> expected = left;
      expected.insert(expected.end(), right.begin(), right.end());
      for (const BoostKernels* k : available()) {
        std::vector<Row> got = rows, spare(n + 16);
        CHECK_EQ(k->part(got.data(), n, codes.data(), 80, also_left, spare.data()), left.size());
        CHECK(bit_identical(expected, got));
      }
    }
  }
}

TEST(partition_by_bits_is_stable_and_the_same_everywhere) {
  std::mt19937_64 g(9);
  for (const std::size_t n : {1u, 16u, 63u, 1000u})
    for (const std::uint32_t n_codes : {3u, 256u, 512u, 513u, 5000u}) {
      std::vector<std::uint16_t> wide(3000 + 2);
      for (auto& c : wide) c = static_cast<std::uint16_t>(g() % n_codes);
      std::vector<std::uint8_t> narrow(wide.begin(), wide.end());
      narrow.resize(narrow.size() + 2);
      std::vector<std::uint32_t> bits(std::max<std::size_t>(16, n_codes / 32 + 1));
      for (auto& b : bits) b = static_cast<std::uint32_t>(g());
      std::vector<Row> rows(n), expected, right;
      for (std::size_t i = 0; i < n; ++i) rows[i] = static_cast<Row>(i * 3);
      for (const Row r : rows) (bits[wide[r] / 32] >> wide[r] % 32 & 1 ? expected : right).push_back(r);
      const std::size_t n_left = expected.size();
      expected.insert(expected.end(), right.begin(), right.end());
      for (const BoostKernels* k : available()) {
        std::vector<Row> got = rows, spare(n + 16);
        CHECK_EQ(k->partition_wide_by_bits(got.data(), n, wide.data(), bits.data(), n_codes, spare.data()), n_left);
        CHECK(bit_identical(expected, got));
        if (n_codes > 256) continue;
        got = rows;
        CHECK_EQ(k->partition_by_bits(got.data(), n, narrow.data(), bits.data(), n_codes, spare.data()), n_left);
        CHECK(bit_identical(expected, got));
      }
    }
}

#if __has_include(<sys/mman.h>)
// Words before pages that cannot be read, as far as any code of sixteen bits points.
TEST(partition_by_bits_reads_no_word_after_its_set) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), guard = 65536, n_words = 600 / 32 + 1;
  void* pages = mmap(nullptr, page + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK_EQ(mprotect(static_cast<char*>(pages) + page, guard, PROT_NONE), 0);
  std::uint32_t* bits = reinterpret_cast<std::uint32_t*>(static_cast<char*>(pages) + page) - n_words;
  std::fill(bits, bits + n_words, 0xaaaaaaaau);  // odd codes go left
  const std::vector<std::uint16_t> codes{0, 1, 2, 599, 598, 31, 32, 0, 0};
  for (const std::size_t n : {1u, 7u})
    for (const BoostKernels* k : available()) {
      std::vector<Row> rows{0, 1, 2, 3, 4, 5, 6}, spare(n + 16);
      rows.resize(n);
      const std::vector<Row> expected = n == 1 ? std::vector<Row>{0} : std::vector<Row>{1, 3, 5, 0, 2, 4, 6};
      CHECK_EQ(k->partition_wide_by_bits(rows.data(), n, codes.data(), bits, 600, spare.data()), n == 1 ? 0u : 3u);
      CHECK(bit_identical(expected, rows));
    }
  CHECK_EQ(munmap(pages, page + guard), 0);
}
#endif

TEST(ranks_are_places_in_ascending_order) {
  std::mt19937_64 g(10);
  for (const std::size_t n : {0u, 1u, 2u, 9u, 100u, 257u}) {
    std::vector<double> keys(n);
    for (double& k : keys) k = static_cast<double>(g() % 40) - 20;  // some are equal
    std::vector<std::uint32_t> order(n), expected(n), got(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
    for (std::size_t i = 0; i < n; ++i) expected[order[i]] = static_cast<std::uint32_t>(i);
    for (const BoostKernels* k : available()) {
      k->rank(keys.data(), n, got.data());
      CHECK(bit_identical(expected, got));
    }
  }
}

namespace {

// Columns with given numbers of codes, and a pair per row.
struct CodedRows {
  CodedRows(const std::vector<std::uint32_t>& n_codes, std::size_t n_rows, std::uint64_t seed) {
    std::mt19937_64 g(seed);
    codes.n_rows = n_rows;
    std::size_t n_bytes = 0;
    for (const std::uint32_t n : n_codes) {
      CodedColumn& column = coding.columns.emplace_back();
      column.n_codes = n;
      column.is_wide = n > 256;
      n_bytes += n_bytes % 2;
      codes.first.push_back(n_bytes);
      n_bytes += n_rows * (column.is_wide ? 2 : 1);
    }
    codes.bytes = LargeArray<std::uint8_t>(n_bytes + 4);
    for (std::uint32_t f = 0; f < n_codes.size(); ++f)
      for (std::size_t r = 0; r < n_rows; ++r) {
        const std::uint64_t code = g() % n_codes[f];
        if (coding.columns[f].is_wide)
          reinterpret_cast<std::uint16_t*>(codes.bytes.data() + codes.first[f])[r] = static_cast<std::uint16_t>(code);
        else
          codes.bytes.data()[codes.first[f] + r] = static_cast<std::uint8_t>(code);
      }
    for (std::size_t r = 0; r < n_rows; ++r) pairs.push_back(g() % 1000 << 32 | g() % 1000);
  }

  // In each row at most one of these columns is off its code 0.
  void make_exclusive(const std::vector<std::uint32_t>& columns) {
    for (std::size_t r = 0; r < codes.n_rows; ++r)
      for (std::size_t i = 0; i < columns.size(); ++i)
        if (r % (2 * columns.size()) != i) codes.bytes.data()[codes.first[columns[i]] + r] = 0;
  }

  // The same codes with these columns listed: most rows get the column's middle code.
  void list(const std::vector<std::uint32_t>& columns) {
    codes.lists.resize(coding.columns.size());
    for (const std::uint32_t f : columns) {
      Codes::List list{true, coding.columns[f].n_codes / 2, codes.listed_rows.size(), 0};
      for (std::size_t r = f % 2; r < codes.n_rows; r += 10 + f) {
        const std::uint32_t code = codes.code(coding, f, static_cast<Row>(r));
        if (code == list.common) continue;
        codes.listed_rows.push_back(static_cast<Row>(r));
        codes.listed_codes.push_back(static_cast<std::uint16_t>(code));
      }
      list.end = codes.listed_rows.size();
      codes.lists[f] = list;
    }
  }

  // Sums of some rows by code, computed naively.
  std::vector<Packed> cells(std::uint32_t f, const std::vector<Row>& some) const {
    std::vector<Packed> sums(coding.columns[f].n_codes, 0);
    for (const Row r : some) sums[codes.code(coding, f, r)] += pairs[r];
    return sums;
  }

  Packed total(const std::vector<Row>& some) const {
    Packed sum = 0;
    for (const Row r : some) sum += pairs[r];
    return sum;
  }

  Coding coding;
  Codes codes;
  std::vector<Packed> pairs;
};

// The cells of some lanes, summed separately, equal those of all lanes together; others are unchanged.
void check_some_lanes(const CodedRows& rows, const Tiles& tiles, const std::vector<Row>& some,
                      const std::vector<Packed>& histogram) {
  constexpr Packed untouched = 0x5555;
  std::mt19937_64 g(9);
  std::vector<Packed> alone(tiles.n_cells(), untouched), pairs;
  for (const Row r : some) pairs.push_back(rows.pairs[r]);
  for (std::uint32_t t = 0; t < tiles.n_tiles(); ++t) {
    std::vector<std::uint32_t> at;
    for (std::uint32_t j = 0; j < tiles.lanes(t).size(); ++j) {
      if (g() % 2) continue;
      const auto [first, end] = tiles.cells_of_lane(tiles.lanes(t)[j]);
      std::fill(alone.begin() + static_cast<std::ptrdiff_t>(first), alone.begin() + static_cast<std::ptrdiff_t>(end),
                0);
      at.push_back(j);
    }
    tiles.add_lanes(t, at, pairs.data(), some.data(), some.size(), alone.data());
    for (std::uint32_t j = 0; j < tiles.lanes(t).size(); ++j) {
      const bool is_added = std::find(at.begin(), at.end(), j) != at.end();
      const auto [first, end] = tiles.cells_of_lane(tiles.lanes(t)[j]);
      for (std::size_t cell = first; cell < end; ++cell) CHECK_EQ(alone[cell], is_added ? histogram[cell] : untouched);
    }
  }
}

void check_cells(const CodedRows& rows, std::uint32_t n_tiles) {
  Interrupt interrupt;
  const Tiles tiles(rows.coding, rows.codes, 1, interrupt);
  CHECK_EQ(tiles.n_tiles(), n_tiles);
  std::vector<Row> some;
  for (std::size_t r = 0; r < rows.codes.n_rows; r += 1 + r % 3) some.push_back(static_cast<Row>(r));
  std::vector<Packed> histogram(tiles.n_cells(), 0), buffer;
  for (std::uint32_t t = 0; t < tiles.n_tiles(); ++t)
    tiles.add_rows(t, rows.pairs.data(), some.data(), some.size(), histogram.data());
  for (std::uint32_t t = 0; t < tiles.n_tiles(); ++t)
    for (const std::uint32_t lane : tiles.lanes(t)) tiles.sum_up(lane, histogram.data());
  for (std::uint32_t f = 0; f < rows.coding.columns.size(); ++f) {
    if (rows.coding.columns[f].n_codes < 2 || !tiles.has_lane(f)) continue;
    const std::vector<Packed> expected = rows.cells(f, some);
    const Packed* cells = tiles.cells(f, histogram.data(), rows.total(some), buffer);
    CHECK(bit_identical(expected, std::vector<Packed>(cells, cells + expected.size())));
  }
  check_some_lanes(rows, tiles, some, histogram);
}

}  // namespace

TEST(a_column_has_its_cells_whatever_lane_it_is_in) {
  check_cells(CodedRows({255, 200, 256}, 3000, 1), 1);                               // one lane each
  check_cells(CodedRows({2, 3, 1, 5, 7, 2, 16, 40, 9, 2}, 40'000, 2), 1);            // crossed
  check_cells(CodedRows({2, 300, 3, 5, 256, 700, 40, 17, 90, 2, 2}, 40'000, 3), 1);  // of all sizes
  check_cells(CodedRows({400, 2, 300, 3, 255, 255}, 140'000, 8), 1);                 // crossed, of two bytes
  check_cells(CodedRows({2, 3, 5}, 100, 4), 1);                                      // too few rows to cross
  check_cells(CodedRows({60'000, 65'536, 9000, 9000, 300}, 500, 5), 4);              // more cells than a tile holds
  check_cells(CodedRows(std::vector<std::uint32_t>(70, 250), 300, 6), 3);            // more lanes than a tile holds
  CodedRows one_hot({2, 2, 2, 3, 4, 200, 12, 2}, 20'000, 7);
  one_hot.make_exclusive({0, 1, 2, 3, 4});
  check_cells(one_hot, 1);
}

namespace {

struct Found {
  std::vector<std::uint32_t> columns;
  std::vector<std::vector<Packed>> cells;
};

// The columns visited for a minimum hessian must be those that have it, with their cells.
void check_found(const CodedRows& rows, const std::vector<std::uint32_t>& listed, const std::vector<Row>& some,
                 double least, const Found& found) {
  std::size_t i = 0;
  for (const std::uint32_t f : listed) {
    const std::vector<Packed> expected = rows.cells(f, some);
    const Packed off = rows.total(some) - expected[rows.codes.lists[f].common];
    if (static_cast<double>(hessian_of(off)) < least) continue;
    CHECK(i < found.columns.size() && found.columns[i] == f && bit_identical(found.cells[i], expected));
    ++i;
  }
  CHECK_EQ(i, found.columns.size());
}

}  // namespace

TEST(listed_columns_have_their_cells_with_a_histogram_and_without) {
  CodedRows rows({40, 2, 300, 3, 100, 7}, 5'000, 11);
  const std::vector<std::uint32_t> columns{0, 2, 3, 5};
  rows.list(columns);
  const ListedColumns listed(rows.coding, rows.codes, columns);
  std::vector<Row> all(rows.codes.n_rows), small, large;
  std::iota(all.begin(), all.end(), Row{0});
  for (const Row r : all) (r % 7 < 3 ? small : large).push_back(r);
  const Packed* pairs = rows.pairs.data();
  std::vector<Packed> parent(listed.n_cells()), part(listed.n_cells());
  listed.clear(parent.data());
  listed.add_rows(pairs, all.data(), all.size(), parent.data());
  std::vector<Packed> taken = parent, subtracted = parent;
  listed.take_rows(pairs, small.data(), small.size(), taken.data());
  listed.clear(part.data());
  listed.add_rows(pairs, small.data(), small.size(), part.data());
  listed.subtract(0, 1, subtracted.data(), part.data());
  listed.subtract(1, listed.n_columns(), subtracted.data(), part.data());
  ListedScratch scratch;
  for (const double least : {0.0, 40'000.0, 100'000.0, 1e9}) {
    const auto check = [&](const std::vector<Row>& some, std::vector<Packed>& histogram) {
      Found found;
      const auto note = [&](std::uint32_t f, const Packed* cells) {
        found.columns.push_back(f);
        found.cells.emplace_back(cells, cells + rows.coding.columns[f].n_codes);
      };
      listed.visit(0, 2, histogram.data(), rows.total(some), least, note);
      listed.visit(2, listed.n_columns(), histogram.data(), rows.total(some), least, note);
      check_found(rows, columns, some, least, found);
      found = {};
      listed.visit_rows(pairs, some.data(), some.size(), rows.total(some), least, scratch, note);
      check_found(rows, columns, some, least, found);
    };
    check(all, parent);
    check(small, part);
    check(large, taken);
    check(large, subtracted);
  }
}

TEST(listed_columns_partition_rows_in_their_order) {
  CodedRows rows({40, 2, 300}, 40'000, 14);
  rows.coding.columns[0].has_missing = true;
  rows.list({0, 1, 2});
  RowPartitioner partitioner(rows.coding, rows.codes, 2);
  for (const std::size_t step : {1u, 2u, 3u, 17u, 900u})
    for (std::uint32_t f = 0; f < 3; ++f)
      for (const std::uint32_t cut : {0u, 10u, 25u, 150u, 298u})
        for (const bool missing_left : {false, true}) {
          const std::uint32_t n_codes = rows.coding.columns[f].n_codes;
          if (cut + 1 >= n_codes) continue;
          BoostSplit split;
          split.feature = f;
          split.cut = cut;
          split.missing_left = missing_left;
          std::vector<Row> some;
          for (std::size_t r = step / 2; r < rows.codes.n_rows; r += step) some.push_back(static_cast<Row>(r));
          std::vector<Row> expected = some;
          const auto goes_left = [&](Row r) {
            const std::uint32_t code = rows.codes.code(rows.coding, f, r);
            return f == 0 && code + 1 == n_codes ? missing_left : code <= cut;
          };
          const auto middle = std::stable_partition(expected.begin(), expected.end(), goes_left);
          for (const int n_threads : {1, 2}) {
            std::vector<Row> got = some;
            NodeRows node{&split, got.data(), got.size()};
            partitioner.part({&node, 1}, {n_threads, 0});
            CHECK_EQ(node.n_left, static_cast<std::size_t>(middle - expected.begin()));
            CHECK(bit_identical(expected, got));
          }
        }
}

TEST(nodes_partitioned_together_are_partitioned_as_one_by_one) {
  CodedRows rows({40, 2, 300, 30}, 60'000, 14);
  rows.list({0, 1});
  RowPartitioner partitioner(rows.coding, rows.codes, 4);
  std::vector<Row> all(rows.codes.n_rows);
  std::iota(all.begin(), all.end(), Row{0});
  std::vector<BoostSplit> splits(9);
  const std::vector<std::size_t> sizes{30'000, 0, 1, 9'000, 8'192, 8'193, 3, 4'000, 611};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    splits[i].feature = static_cast<std::uint32_t>(i % 4);
    splits[i].cut = i % 4 == 1 ? 0 : 12;
  }
  const auto nodes_of = [&](std::vector<Row>& some) {
    std::vector<NodeRows> nodes;
    for (std::size_t i = 0, begin = 0; i < sizes.size(); begin += sizes[i++])
      nodes.push_back({&splits[i], some.data() + begin, sizes[i]});
    return nodes;
  };
  std::vector<Row> expected = all;
  std::vector<NodeRows> one_by_one = nodes_of(expected);
  for (NodeRows& node : one_by_one) partitioner.part({&node, 1}, {1, 3});
  for (const int n_threads : {1, 2, 4}) {
    std::vector<Row> got = all;
    std::vector<NodeRows> together = nodes_of(got);
    partitioner.part(together, {n_threads, 0});
    CHECK(bit_identical(expected, got));
    for (std::size_t i = 0; i < together.size(); ++i) CHECK_EQ(together[i].n_left, one_by_one[i].n_left);
  }
}

// A cut that separates one cell from the rest is as good as the best of two cells.
TEST(flags_that_may_reach_a_score_are_reported) {
  std::mt19937_64 g(15);
  for (int i = 0; i < 300; ++i) {
    std::vector<Packed> cells(1 + g() % 40);
    CutQuery query{.lambda = static_cast<double>(g() % 3), .min_hessian = 300.5};
    for (Packed& cell : cells) {
      const std::int64_t gradient = static_cast<std::int64_t>(g() % 2000) - 1000;
      cell = (static_cast<Packed>(gradient) << 32) + g() % 1000;
      query.gradient += static_cast<double>(gradient);
      query.hessian += static_cast<double>(hessian_of(cell));
    }
    double best = -1;
    for (const Packed cell : cells) {
      std::vector<Packed> prefix(20);
      std::vector<float> scores(20);
      best = std::max(best, plain.best_cut(&cell, 1, 0, query, prefix.data(), scores.data()).score);
    }
    for (const BoostKernels* k : available()) {
      query.floor = best < 0 ? 0 : best * (1 - 1e-9);
      CHECK_EQ(k->may_separate_one(cells.data(), cells.size(), query), best >= 0);
      query.floor = std::max(best, 1.0) * (1 + 1e-6);
      CHECK(!k->may_separate_one(cells.data(), cells.size(), query));
    }
  }
}

// Listed columns that never collide share a lane where it pays; the rest have none.
TEST(listed_columns_share_lanes_that_are_worth_it) {
  CodedRows rows({3, 2, 3, 40, 200, 2, 1}, 6'000, 12);
  rows.list({1, 2, 3, 4, 5, 6});
  const auto set_rows = [&](std::uint32_t f, std::size_t first, std::size_t step) {
    Codes::List& list = rows.codes.lists[f];
    list.begin = rows.codes.listed_rows.size();
    for (std::size_t r = first; r < rows.codes.n_rows; r += step) {
      rows.codes.listed_rows.push_back(static_cast<Row>(r));
      rows.codes.listed_codes.push_back(static_cast<std::uint16_t>(list.common == 0 ? 1 : 0));
    }
    list.end = rows.codes.listed_rows.size();
  };
  for (const std::uint32_t f : {1u, 2u, 3u}) set_rows(f, f, 12);  // a quarter of the rows together
  set_rows(5, 0, 1'000);
  Interrupt interrupt;
  const Tiles tiles(rows.coding, rows.codes, 2, interrupt);
  for (const std::uint32_t f : {0u, 1u, 2u, 3u, 5u}) CHECK(tiles.has_lane(f));
  CHECK(!tiles.has_lane(4));
  CHECK_EQ(tiles.listed().n_columns(), 1u);
  check_cells(rows, 1);
  CodedRows few({2, 2}, 6'000, 13);
  few.list({0, 1});
  for (const std::uint32_t f : {0u, 1u}) few.codes.lists[f].end = few.codes.lists[f].begin + 100;
  CHECK_EQ(Tiles(few.coding, few.codes, 1, interrupt).listed().n_columns(), 2u);
}

// The second and third column are determined by the first: the lane has its codes, minus one that never occurs.
TEST(a_lane_has_the_combinations_that_occur) {
  CodedRows rows({100, 15, 3, 255}, 40'000, 9);
  std::uint8_t* bytes = rows.codes.bytes.data();
  for (std::size_t r = 0; r < rows.codes.n_rows; ++r) {
    std::uint8_t& code = bytes[rows.codes.first[0] + r];
    code = code == 70 ? 71 : code;
    bytes[rows.codes.first[1] + r] = code / 7;
    bytes[rows.codes.first[2] + r] = code % 3;
  }
  Interrupt interrupt;
  const Tiles tiles(rows.coding, rows.codes, 1, interrupt);
  const std::span<const std::uint32_t> lanes = tiles.lanes(0);
  CHECK_EQ(lanes.size(), 2u);
  for (const std::uint32_t lane : lanes) {
    const auto [first, end] = tiles.cells_of_lane(lane);
    CHECK_EQ(end - first, tiles.columns(lane).size() == 3 ? 99u : 255u);
  }
  check_cells(rows, 1);
}

// For any first rows: each may be another combination, or all the same one.
TEST(a_lane_takes_columns_that_must_fit) {
  CodedRows rows({32, 32, 255, 255}, 140'000, 10);
  std::uint8_t* bytes = rows.codes.bytes.data();
  const auto code = [&](std::size_t column, std::size_t r) -> std::uint8_t& {
    return bytes[rows.codes.first[column] + r];
  };
  for (std::size_t r = 0; r < rows.codes.n_rows; ++r) {
    code(0, r) = static_cast<std::uint8_t>(r % 32);
    code(1, r) = static_cast<std::uint8_t>(r / 32 % 32);
    if (r < 100'000) code(2, r) = code(3, r) = 0;
  }
  CrossedLane grid(rows.coding, rows.codes, 0);
  CHECK(grid.add(1, 1024));
  CHECK_EQ(grid.n_codes(), 1024u);
  CHECK(!CrossedLane(rows.coding, rows.codes, 2).add(3, 1024));
  check_cells(rows, 1);
}

static void check_roots(const CodedRows& rows, std::uint32_t n_trees, int n_threads) {
  Interrupt interrupt;
  const Tiles tiles(rows.coding, rows.codes, 1, interrupt);
  RootHistograms roots(tiles, rows.codes.n_rows, n_trees, n_threads);
  std::vector<Row> some;
  for (std::size_t r = 0; r < rows.codes.n_rows; r += 1 + r % 5 / 4) some.push_back(static_cast<Row>(r));
  for (int round = 1; round < 3; ++round) {
    for (std::uint32_t k = 0; k < n_trees; ++k)
      for (std::size_t r = 0; r < rows.codes.n_rows; ++r)
        roots.pairs(k)[r] = rows.pairs[(r + k) % rows.pairs.size()] * static_cast<Packed>(round);
    roots.fill(some, interrupt);
    for (std::uint32_t k = 0; k < n_trees; ++k) {
      std::vector<Packed> expected(tiles.n_cells(), 0);
      for (std::uint32_t t = 0; t < tiles.n_tiles(); ++t)
        tiles.add_rows(t, roots.pairs(k), some.data(), some.size(), expected.data());
      CHECK(bit_identical(expected, std::vector<Packed>(roots.of(k), roots.of(k) + tiles.n_cells())));
    }
  }
}

TEST(roots_built_together_have_the_histograms_of_each_alone) {
  for (const int n_threads : {1, 3}) {
    check_roots(CodedRows({255, 2, 40, 7, 2}, 30'000, 1), 7, n_threads);
    check_roots(CodedRows({300, 2, 1000, 7, 2}, 30'000, 2), 3, n_threads);              // two bytes
    check_roots(CodedRows({255, 3}, 1'000, 3), 17, n_threads);                          // more than can be interleaved
    check_roots(CodedRows(std::vector<std::uint32_t>(40, 250), 300, 4), 5, n_threads);  // two tiles
  }
}

template <class Code>
static void check_eights(void (*BoostKernels::*add)(const Code*, std::size_t, std::size_t, std::size_t, const Row*,
                                                    std::size_t, const Packed*, Packed*),
                         std::size_t buffer) {
  constexpr std::size_t n_table_rows = 50, stride = 8, n_lanes = 5, n_cells = 1000;
  std::mt19937_64 g(12);
  std::vector<Code> tile(n_table_rows * stride);
  for (Code& code : tile) code = static_cast<Code>(g() % (n_cells - buffer * (n_lanes - 1)));
  const std::vector<Row> rows{0, 3, 3, 7, 20, 21, 49};
  std::vector<Packed> pairs(8 * rows.size()), expected(8 * n_cells, 5);
  for (Packed& p : pairs) p = g();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t lane = 0; lane < n_lanes; ++lane)
      for (std::size_t k = 0; k < 8; ++k)
        expected[8 * (buffer * lane + tile[rows[i] * stride + lane]) + k] += pairs[8 * i + k];
  for (const BoostKernels* kernels : available()) {
    std::vector<Packed> got(8 * n_cells, 5);
    (kernels->*add)(tile.data(), stride, n_lanes, buffer, rows.data(), rows.size(), pairs.data(), got.data());
    CHECK(bit_identical(expected, got));
  }
}

TEST(sums_of_eight_trees_are_the_same_everywhere) {
  check_eights(&BoostKernels::add_eights, 186);
  check_eights(&BoostKernels::add_wide_eights, 0);
}

// Gains that are small relative to the score, and sides of very different size: the worst case of rough scores.
TEST(the_best_cut_is_found_however_uneven_the_sides) {
  std::mt19937_64 g(11);
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t n = 3 + g() % 300;
    const double slope = static_cast<double>(g() % 200) / 100 - 1,
                 noise = std::pow(10.0, -static_cast<double>(g() % 8));
    const int spread = static_cast<int>(g() % 22);  // hessians of 1 … 2^spread
    std::vector<Packed> cells(n), prefix(n + 16);
    double gradient = 0, hessian = 0;
    for (Packed& c : cells) {
      const auto h = static_cast<std::int64_t>(1 + g() % 7) << (g() % static_cast<std::uint64_t>(spread + 1));
      const double off = noise * (static_cast<double>(g() % 2001) / 1000 - 1);
      const auto grad = static_cast<std::int64_t>(std::llround(static_cast<double>(h) * (slope + off)));
      c = (static_cast<Packed>(grad) << 32) + static_cast<Packed>(h);
      gradient += static_cast<double>(grad);
      hessian += static_cast<double>(h);
    }
    std::vector<float> scores(n + 16);
    CutQuery query;
    query.gradient = gradient;
    query.hessian = hessian;
    query.lambda = std::vector<double>{0, 1.5, 1e16, 1e25}[static_cast<std::size_t>(trial) % 4];
    query.min_hessian = std::max(1.0, hessian / std::vector<double>{1e10, 300, 200, 9}[g() % 4]);
    double best = -1;
    std::uint32_t at = 0;
    Packed left = 0;
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      left += cells[i];
      const double gl = static_cast<double>(gradient_of(left)), hl = static_cast<double>(hessian_of(left));
      if (std::min(hl, hessian - hl) < query.min_hessian) continue;
      const double gr = gradient - gl, l = hl + query.lambda, r = hessian - hl + query.lambda;
      const double score = without_rounding((gl * gl * r + gr * gr * l) / (l * r));
      if (score > best) {
        best = score;
        at = i;
      }
    }
    for (const BoostKernels* k : available())
      for (const double floor : {0.0, best * (1 - 1e-9)}) {
        query.floor = floor;
        const CutFound got = k->best_cut(cells.data(), n - 1, 0, query, prefix.data(), scores.data());
        CHECK_EQ(got.cut, at);
        CHECK_EQ(got.score, best);
      }
  }
}

TEST(cuts_and_codes_are_the_same_everywhere) {
  std::mt19937_64 g(6);
  for (const std::size_t n : {2u, 9u, 17u, 33u, 255u}) {
    std::vector<Packed> cells(n), prefix(n + 16);
    double gradient = 0, hessian = 0;
    for (Packed& c : cells) {
      const auto grad = static_cast<std::int32_t>(g() % 20001) - 10000;
      const auto hess = static_cast<std::uint32_t>(g() % 1000 + 1);
      c = (static_cast<Packed>(static_cast<std::uint32_t>(grad)) << 32) + hess;
      gradient += grad;
      hessian += hess;
    }
    std::vector<float> scores(n + 16);
    const CutQuery query{gradient, hessian, 1.5, 100};
    const CutFound expected = plain.best_cut(cells.data(), n - 1, 0, query, prefix.data(), scores.data());
    double best = -1;
    std::int64_t gl = 0, hl = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      gl += gradient_of(cells[i]);
      hl += hessian_of(cells[i]);
      const double a = static_cast<double>(gl), b = static_cast<double>(hl), c = gradient - a, d = hessian - b;
      if (std::min(b, d) >= 100) best = std::max(best, a * a / (b + 1.5) + c * c / (d + 1.5));
    }
    CHECK(std::abs(best - expected.score) <= 1e-5 * std::abs(best));
    for (const BoostKernels* k : available()) {
      const CutFound got = k->best_cut(cells.data(), n - 1, 0, query, prefix.data(), scores.data());
      CHECK_EQ(got.score, expected.score);
      CHECK_EQ(got.cut, expected.cut);
      CHECK_EQ(got.left, expected.left);
    }
    // Among some cuts only; and nothing below a floor that no cut reaches.
    for (const std::size_t first : {std::size_t{0}, n / 3, n - 1})
      for (const std::size_t end : {n / 2, n - 1, n + 20}) {
        CutQuery some = query;
        some.first_cut = first;
        some.end_cut = end;
        const CutFound among = plain.best_cut(cells.data(), n - 1, 0, some, prefix.data(), scores.data());
        CHECK(among.score < 0 || (among.cut >= first && among.cut < end && among.score <= expected.score));
        if (expected.score >= 0 && expected.cut >= first && expected.cut < end) CHECK_EQ(among.cut, expected.cut);
        for (const BoostKernels* k : available()) {
          some.floor = 0;
          const CutFound got = k->best_cut(cells.data(), n - 1, 0, some, prefix.data(), scores.data());
          CHECK_EQ(got.score, among.score);
          CHECK_EQ(got.cut, among.cut);
          some.floor = among.score;
          CHECK_EQ(k->best_cut(cells.data(), n - 1, 0, some, prefix.data(), scores.data()).cut, among.cut);
          some.floor = 2 * among.score + 1;
          CHECK(k->best_cut(cells.data(), n - 1, 0, some, prefix.data(), scores.data()).score < 0);
        }
      }
  }
}
