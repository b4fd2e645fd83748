// Every instruction set is bit-identical.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "cells/kernels.h"
#include "check.h"
#include "every_isa.h"

using namespace spinney;

static std::vector<const Kernels*> available() {
  return of_every_isa([](auto isa) { return &kernels_of(isa); });
}
static const Kernels& plain = kernels_of(OfIsa<Isa::base>{});

TEST(scores_are_bit_identical) {
  std::mt19937_64 g(1);
  for (const std::size_t n : {1u, 7u, 16u, 511u}) {
    std::vector<double> sl(n), wl(n), sr(n), wr(n), expected(n), got(n);
    for (std::size_t i = 0; i < n; ++i) {
      wl[i] = 1 + static_cast<double>(g() % 1000);
      wr[i] = 1 + static_cast<double>(g() % 1000);
      sl[i] = static_cast<double>(g() % (static_cast<std::uint64_t>(wl[i]) + 1));
      sr[i] = static_cast<double>(g() % (static_cast<std::uint64_t>(wr[i]) + 1));
    }
    for (const Kernels::Score Kernels::* rule :
         {&Kernels::squared_error, &Kernels::entropy, &Kernels::misclassification, &Kernels::poisson, &Kernels::rate}) {
      (plain.*rule)(sl.data(), wl.data(), sr.data(), wr.data(), n, expected.data());
      for (const Kernels* k : available()) {
        (k->*rule)(sl.data(), wl.data(), sr.data(), wr.data(), n, got.data());
        CHECK(std::memcmp(expected.data(), got.data(), n * sizeof(double)) == 0);
        CHECK_EQ(k->first_largest(got.data(), n), plain.first_largest(expected.data(), n));
      }
    }
  }
}

TEST(first_largest_takes_the_first_of_ties) {
  for (const Kernels* k : available())
    for (std::size_t n = 1; n < 70; ++n)
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<double> s(n, -1.0);
        for (std::size_t i = at; i < n; i += 3) s[i] = 2.0;
        CHECK_EQ(k->first_largest(s.data(), n), at);
      }
}

TEST(best_square_is_the_first_of_the_best_scores) {
  std::mt19937_64 g(6);
  for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 64u, 511u}) {
    for (const std::int64_t scale : {std::int64_t{2}, std::int64_t{1} << 40}) {  // small numbers tie
      const std::size_t padded = (n + 7) / 8 * 8;
      std::vector<std::int64_t> s(padded, 0), w(padded, 0);
      std::vector<double> sl(n), wl(n), sr(n), wr(n), scores(n);
      const std::int64_t s_total = scale, w_total = static_cast<std::int64_t>(3 * n + 1);
      for (std::size_t i = 0; i < n; ++i) {
        s[i] = static_cast<std::int64_t>(g() % static_cast<std::uint64_t>(2 * scale)) - scale;
        w[i] = 1 + static_cast<std::int64_t>(g() % (3 * n));
        sl[i] = static_cast<double>(s[i]);
        wl[i] = static_cast<double>(w[i]);
        sr[i] = static_cast<double>(s_total - s[i]);
        wr[i] = static_cast<double>(w_total - w[i]);
      }
      plain.squared_error(sl.data(), wl.data(), sr.data(), wr.data(), n, scores.data());
      const auto first = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      for (const Kernels* k : available()) {
        double score = 0;
        CHECK_EQ(k->best_square(s.data(), w.data(), n, s_total, w_total, false, &score), first);
        CHECK(std::memcmp(&score, &scores[first], sizeof score) == 0);
      }
    }
  }
}

// Cuts as in a sweep: sums that grow row by row, of values or of the weights of a class.
TEST(best_square_finds_the_best_of_any_sweep) {
  std::mt19937_64 g(16);
  for (const bool sums_are_weights : {false, true})
    for (const std::int64_t unit : {std::int64_t{1}, std::int64_t{1} << 38, std::int64_t{1} << 48})
      for (const std::size_t n : {1u, 3u, 8u, 31u, 511u, 512u, 513u, 1500u}) {
        std::vector<std::int64_t> s((n + 7) / 8 * 8, 77),
            w(s);  // elements past the end are not cuts, whatever they hold
        std::int64_t s_sum = 0, w_sum = 0;
        const auto add_row = [&] {
          const std::int64_t weight = sums_are_weights ? 1 + static_cast<std::int64_t>(g() % 3) : unit > 1 ? unit : 1;
          s_sum += sums_are_weights ? (g() % 2 ? weight : 0)
                                    : (static_cast<std::int64_t>(g() % 2001) - 900) * (unit >> 9 | 1);
          w_sum += weight;
        };
        for (std::size_t i = 0; i < n; ++i) {
          add_row();
          s[i] = s_sum;
          w[i] = w_sum;
        }
        add_row();
        std::size_t first = 0;
        double best = -1;
        for (std::size_t i = 0; i < n; ++i) {
          const auto number = [](std::int64_t x) { return static_cast<double>(x); };
          const double d = number(s[i]) * number(w_sum - w[i]) - number(s_sum - s[i]) * number(w[i]);
          const double merit = d * d / (number(w[i]) * number(w_sum - w[i]));
          if (!(merit > best)) continue;
          best = merit;
          first = i;
        }
        for (const Kernels* k : available()) {
          double score = 0;
          CHECK_EQ(k->best_square(s.data(), w.data(), n, s_sum, w_sum, sums_are_weights, &score), first);
          CHECK(std::memcmp(&score, &best, sizeof score) == 0);
        }
      }
}

// Targets far from 0, where the rough comparison is inconclusive, and sums that tie.
TEST(best_place_finds_the_best_of_rows_that_weigh_one) {
  std::mt19937_64 g(17);
  for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{-3} << 20, std::int64_t{1} << 45})
    for (const std::int64_t scale : {std::int64_t{1}, std::int64_t{1} << 20, std::int64_t{1} << 36})
      for (const std::size_t n_before : {0u, 5u, 700u})
        for (const std::size_t n : {1u, 7u, 8u, 65u, 512u})
          for (const std::size_t n_after : {1u, 300u}) {
            const std::size_t n_total = n_before + n + n_after;
            std::vector<std::int64_t> s(n_total), w(n_total);
            std::int64_t sum = 0;
            for (std::size_t i = 0; i < n_total; ++i) {
              s[i] = sum += offset + static_cast<std::int64_t>(g() % 5) * scale - (i < 40 ? scale : 0);
              w[i] = static_cast<std::int64_t>(i + 1);
            }
            s.resize((n_total + 15) / 8 * 8, 99), w.resize(s.size(), 99);
            const auto rows = static_cast<std::int64_t>(n_total);
            double best = 0;
            const std::size_t first =
                plain.best_square(s.data() + n_before, w.data() + n_before, n, sum, rows, false, &best);
            for (const Kernels* k : available()) {
              std::vector<double> one_by(n_total + 16);
              k->about_one_by_places(n_total, one_by.data());
              double score = 0;
              CHECK_EQ(k->best_place(s.data() + n_before, n_before, n, sum, rows, one_by.data() + n_before, &score),
                       first);
              CHECK(std::memcmp(&score, &best, sizeof score) == 0);
            }
          }
}

TEST(best_square_takes_the_first_of_ties) {
  for (const Kernels* k : available())
    for (std::size_t n = 1; n < 40; ++n)
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<std::int64_t> s((n + 7) / 8 * 8, 5), w(s.size(), 10);  // equal to the node's mean: a merit of 0
        for (std::size_t i = at; i < n; i += 3) s[i] = i % 2 ? 8 : 2;      // both at distance 3
        double score = 0;
        CHECK_EQ(k->best_square(s.data(), w.data(), n, 10, 20, false, &score), at);
        CHECK(score > 0);
        std::fill(s.begin(), s.end(), 5);
        CHECK_EQ(k->best_square(s.data(), w.data(), n, 10, 20, true, &score), 0u);
        CHECK_EQ(score, 0.0);
      }
}

TEST(few_words_are_sorted) {
  std::mt19937 g(7);
  for (const Kernels* k : available())
    for (std::uint32_t n = 1; n <= 128; ++n) {
      std::vector<std::uint32_t> words(std::max(16u, std::bit_ceil(n)), 0);
      for (std::uint32_t i = 0; i < n; ++i) words[i] = static_cast<std::uint32_t>(g() % 5 * 0x4000) << 16 | i;
      std::shuffle(words.begin(), words.begin() + n, g);
      std::vector<std::uint32_t> expected = words;
      std::sort(expected.begin(), expected.begin() + n);
      k->sort_few(words.data(), n);
      words.resize(n);
      expected.resize(n);
      CHECK(words == expected);
    }
}

TEST(few_words_of_any_order_are_sorted) {
  std::mt19937 g(17);
  for (const Kernels* k : available())
    for (int round = 0; round < 2000; ++round) {
      const std::uint32_t n = 1 + g() % 128;
      std::vector<std::uint32_t> words(std::max(16u, std::bit_ceil(n)));
      for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(g());
      if (round % 4 == 0) std::sort(words.begin(), words.end());
      if (round % 4 == 1) std::sort(words.begin(), words.end(), std::greater<>());
      std::vector<std::uint32_t> expected(words.begin(), words.begin() + n);
      std::sort(expected.begin(), expected.end());
      k->sort_few(words.data(), n);
      words.resize(n);
      CHECK(words == expected);
    }
}

TEST(keys_partition_rows_and_sums) {
  std::mt19937 g(4);
  for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 33u, 1000u, 4080u, 9001u}) {
    std::vector<std::uint32_t> keys(n), rows(n), left, right;
    std::vector<std::int64_t> values(n);
    const std::uint32_t cut = g();
    std::int64_t value_sum = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      keys[i] = g() % 7 == 0 ? cut : static_cast<std::uint32_t>(g());
      rows[i] = 3 * i;
      values[i] = static_cast<std::int64_t>(g()) - (std::int64_t{1} << 31);
      (keys[i] <= cut ? left : right).push_back(rows[i]);
      value_sum += keys[i] <= cut ? values[i] : 0;
    }
    const std::size_t n_left = left.size();
    left.insert(left.end(), right.begin(), right.end());
    for (const Kernels* k : available()) {
      std::vector<std::uint32_t> partitioned = rows, spare(n + 16);
      CHECK_EQ(k->partition_by_key(partitioned.data(), n, keys.data(), cut, spare.data()), n_left);
      CHECK(partitioned == left);
      std::int64_t sum = 0;
      CHECK_EQ(k->sum_values(keys.data(), n, cut, values.data(), &sum), n_left);
      CHECK_EQ(sum, value_sum);
    }
  }
}

TEST(ranges_and_sums_of_several_columns) {
  std::mt19937 g(6);
  constexpr std::size_t n_columns = 3;
  for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 33u, 1000u, 4080u, 9001u}) {
    std::vector<std::uint32_t> keys(n_columns * n + 15), cuts(n_columns);
    std::vector<std::uint8_t> bytes(n + 15, 1);
    for (std::uint32_t& cut : cuts) cut = static_cast<std::uint32_t>(g());
    for (std::size_t i = 0; i < keys.size(); ++i)
      keys[i] = g() % 7 == 0 ? cuts[i / n % n_columns] : static_cast<std::uint32_t>(g());
    for (std::size_t i = 0; i < n; ++i) bytes[i] = g() % 2;
    for (const Kernels* k : available()) {
      std::array<std::uint32_t, n_columns> low, high, counts, sums;
      k->key_ranges(keys.data(), n, n_columns, low.data(), high.data());
      k->sum_bytes(keys.data(), n, n_columns, cuts.data(), bytes.data(), counts.data(), sums.data());
      for (std::size_t c = 0; c < n_columns; ++c) {
        const std::span<const std::uint32_t> column(keys.data() + c * n, n);
        std::uint32_t n_left = 0, sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          n_left += column[i] <= cuts[c];
          sum += column[i] <= cuts[c] ? bytes[i] : 0;
        }
        CHECK_EQ(low[c], *std::min_element(column.begin(), column.end()));
        CHECK_EQ(high[c], *std::max_element(column.begin(), column.end()));
        CHECK_EQ(counts[c], n_left);
        CHECK_EQ(sums[c], sum);
      }
    }
  }
}

TEST(keys_are_read_column_by_column) {
  std::mt19937 g(8);
  constexpr std::size_t n_rows = 500;
  for (const std::size_t stride : {1u, 28u, 70u}) {
    std::vector<std::uint32_t> keys(n_rows * stride);
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(g());
    const std::vector<std::uint32_t> columns{static_cast<std::uint32_t>(stride - 1), 0,
                                             static_cast<std::uint32_t>(g() % stride)};
    for (const std::size_t n : {1u, 2u, 4u, 5u, 8u, 9u, 15u, 16u, 17u, 31u, 100u}) {
      std::vector<std::uint32_t> rows(n), expected;
      for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(g() % n_rows);
      for (const std::uint32_t f : columns)
        for (const std::uint32_t row : rows) expected.push_back(keys[row * stride + f]);
      for (const Kernels* k : available()) {
        std::vector<std::uint32_t> got(expected.size() + 15);
        k->read_keys(keys.data(), stride, rows.data(), n, columns.data(), columns.size(), got.data());
        got.resize(expected.size());
        CHECK(got == expected);
      }
    }
  }
}

TEST(keys_of_a_column_are_read) {
  std::mt19937 g(9);
  std::vector<std::uint32_t> keys(500);
  for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(g());
  for (const std::size_t n : {1u, 15u, 16u, 17u, 100u, 160u})
    for (const int order : {0, 1, 2}) {  // any rows; adjacent rows; partly adjacent, as drawn with replacement
      std::vector<std::uint32_t> rows(n), expected;
      for (std::size_t i = 0; i < n; ++i)
        rows[i] = static_cast<std::uint32_t>(order == 0 ? g() % keys.size() : 7 + i - (order == 2 && i % 40 == 3));
      for (const std::uint32_t row : rows) expected.push_back(keys[row]);
      for (const Kernels* k : available()) {
        std::vector<std::uint32_t> got(n);
        k->read_column(keys.data(), rows.data(), n, got.data());
        CHECK(got == expected);
      }
    }
}

TEST(ranks_are_read_and_partition_rows) {
  std::mt19937 g(5);
  for (const std::size_t n : {1u, 2u, 15u, 16u, 33u, 1000u}) {
    constexpr std::size_t stride = 3;
    std::vector<std::uint8_t> bits(8 * stride * 2 * n);
    for (std::uint8_t& byte : bits) byte = static_cast<std::uint8_t>(g());
    std::vector<std::uint32_t> rows(n), left, right;
    for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(g() % (2 * n));
    for (const std::uint32_t width : {1u, 5u, 16u}) {
      const std::uint32_t byte = g() % 20, shift = g() % 8, mask = (1u << width) - 1;
      std::vector<std::uint16_t> expected(n);
      for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t word = 0;
        std::memcpy(&word, bits.data() + 8 * stride * rows[i] + byte, 4);
        expected[i] = static_cast<std::uint16_t>(word >> shift & mask);
      }
      const auto cut = static_cast<std::uint16_t>(expected[0]);
      left.clear();
      right.clear();
      for (std::size_t i = 0; i < n; ++i) (expected[i] <= cut ? left : right).push_back(rows[i]);
      const std::size_t n_left = left.size();
      left.insert(left.end(), right.begin(), right.end());
      for (const Kernels* k : available()) {
        std::vector<std::uint16_t> ranks(n);
        k->read_ranks(bits.data() + byte, stride, rows.data(), n, shift, mask, ranks.data());
        CHECK(ranks == expected);
        std::uint16_t low = 0, high = 0;
        k->rank_range(ranks.data(), n, &low, &high);
        CHECK_EQ(low, *std::min_element(ranks.begin(), ranks.end()));
        CHECK_EQ(high, *std::max_element(ranks.begin(), ranks.end()));
        std::vector<std::uint32_t> partitioned = rows, spare(n + 16);
        CHECK_EQ(k->partition_by_rank(partitioned.data(), n, ranks.data(), cut, spare.data()), n_left);
        CHECK(partitioned == left);
        std::vector<std::uint64_t> flags(n), expected_flags(left.size()), spare_flags(n + 16);
        for (std::size_t i = 0; i < n; ++i) flags[i] = std::uint64_t{rows[i]} << 32 | 7;
        for (std::size_t i = 0; i < n; ++i) expected_flags[i] = std::uint64_t{left[i]} << 32 | 7;
        CHECK_EQ(k->partition_flags_by_rank(flags.data(), n, ranks.data(), cut, spare_flags.data()), n_left);
        CHECK(flags == expected_flags);
      }
    }
  }
}

TEST(places_of_keys_are_found) {
  std::mt19937 g(8);
  for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 33u, 1000u}) {
    std::vector<std::uint32_t> keys(n), expected;
    for (std::uint32_t& key : keys) key = g() % 9 == 0 ? 5 : g() % 9 == 1 ? 0xfffffff0u : 7 + g() % 3;
    for (std::uint32_t i = 0; i < n; ++i)
      if (keys[i] == 5 || keys[i] == 0xfffffff0u) expected.push_back(i);
    for (const Kernels* k : available()) {
      std::vector<std::uint32_t> places(n);
      places.resize(k->places_of_keys(keys.data(), n, 5, 0xfffffff0u, places.data()));
      CHECK(places == expected);
    }
  }
}

TEST(gini_of_rows_is_the_sum_of_squares_by_weight) {
  std::mt19937 g(9);
  for (const std::size_t n : {2u, 3u, 9u, 40u, 1000u}) {
    constexpr std::size_t n_classes = 5;
    std::vector<std::uint32_t> words(n), packed(n);
    std::vector<std::int64_t> total(1 + n_classes, 0);
    std::int64_t squares = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t code = i == 0 ? 0 : g() % 60;
      words[i] = code << 16 | i;
      packed[i] = (1 + g() % 1000) << 8 | g() % n_classes;
      total[0] += packed[i] >> 8;
      total[1 + (packed[i] & 0xff)] += packed[i] >> 8;
    }
    std::sort(words.begin(), words.end());
    for (std::size_t c = 1; c <= n_classes; ++c) squares += total[c] * total[c];
    std::vector<double> first;
    for (const Kernels* k : available()) {
      std::vector<std::int64_t> scratch(n_classes, 0), sum(n_classes, 0);
      std::vector<double> got(n), spare(n);
      k->gini_of_rows(words.data(), packed.data(), n, total.data(), squares, scratch.data(), got.data(), spare.data());
      if (k == available().front()) first = got;
      CHECK(std::memcmp(first.data(), got.data(), (n - 1) * sizeof(double)) == 0);
      double weight = 0;
      for (std::size_t i = 0; i + 1 < n; ++i) {
        const std::uint32_t row = packed[words[i] & 0xffff];
        sum[row & 0xff] += row >> 8;
        weight += row >> 8;
        double squares_left = 0, squares_right = 0;
        for (std::size_t c = 0; c < n_classes; ++c) {
          const auto left = static_cast<double>(sum[c]), right = static_cast<double>(total[1 + c] - sum[c]);
          squares_left += left * left;
          squares_right += right * right;
        }
        const double expected = squares_left / weight + squares_right / (static_cast<double>(total[0]) - weight);
        if (words[i] >> 16 == words[i + 1] >> 16)
          CHECK(got[i] < 0);
        else
          CHECK(std::abs(got[i] - expected) <= 1e-12 * expected);
      }
    }
  }
}

TEST(gini_of_cells_is_the_sum_of_squares_by_weight) {
  std::mt19937 g(6);
  for (const std::size_t lanes : {8u, 16u, 32u, 256u})
    for (const std::size_t n : {1u, 3u, 40u}) {
      std::vector<std::uint32_t> cells((2 * n + 2) * lanes), present(n), start(lanes);
      for (std::uint32_t& cell : cells) cell = g() % 50;
      for (std::uint32_t& weight : start) weight = g() % 3;
      for (std::size_t i = 0; i < n; ++i) present[i] = static_cast<std::uint32_t>(2 * i + 1);
      std::vector<double> total(lanes, 0.0), left(start.begin(), start.end()), got(n), spare(n);
      for (std::size_t k = 0; k < lanes; ++k) {
        total[k] = start[k] + cells[k];
        for (const std::uint32_t rank : present) total[k] += cells[rank * lanes + k];
      }
      double weight = 0;
      for (const double t : total) weight += t;
      const double least = weight / 4;
      std::vector<double> first;
      for (const Kernels* k : available()) {
        std::vector<double> sum = left;
        k->gini_of_cells(cells.data(), lanes, present.data(), n, start.data(), total.data(), weight, least, got.data(),
                         spare.data());
        if (k == available().front()) first = got;
        CHECK(std::memcmp(first.data(), got.data(), n * sizeof(double)) == 0);
        for (std::size_t i = 0; i < n; ++i) {
          double wl = 0, squares_left = 0, squares_right = 0;
          for (std::size_t c = 0; c < lanes; ++c) {
            sum[c] += cells[present[i] * lanes + c];
            wl += sum[c];
            squares_left += sum[c] * sum[c];
            squares_right += (total[c] - sum[c]) * (total[c] - sum[c]);
          }
          const double expected = squares_left / wl + squares_right / (weight - wl);
          if (wl < least || weight - wl < least)
            CHECK(got[i] < 0);
          else
            CHECK(std::abs(got[i] - expected) <= 1e-12 * expected);
        }
      }
    }
}

// Every size, at a position among other words, which are unchanged.
TEST(partitions_write_no_further) {
  std::mt19937 g(18);
  for (const Kernels* k : available())
    for (std::size_t n = 0; n < 100; ++n)
      for (const std::uint32_t often : {0u, 1u, 5u, 9u, 10u}) {  // in ten go left
        std::vector<std::uint8_t> side(n + 3);
        std::vector<std::uint32_t> keys(n), words(n + 40, 0xabcdabcd), left, right;
        std::vector<std::uint16_t> ranks(n);
        for (std::uint32_t i = 0; i < n; ++i) {
          side[i] = g() % 10 < often;
          words[20 + i] = static_cast<std::uint32_t>(g()) << 16 | i;
          keys[i] = side[i] ? static_cast<std::uint32_t>(g() % 0x80000001)
                            : 0x80000001 + static_cast<std::uint32_t>(g() % 0x7fffffff);
          ranks[i] = static_cast<std::uint16_t>(side[i] ? g() % 0x8001 : 0x8001 + g() % 0x7fff);
          (side[i] ? left : right).push_back(words[20 + i]);
        }
        std::vector<std::uint32_t> expected = words;
        std::copy(left.begin(), left.end(), expected.begin() + 20);
        std::copy(right.begin(), right.end(), expected.begin() + 20 + static_cast<std::ptrdiff_t>(left.size()));
        const auto holds = [&](auto part) {
          std::vector<std::uint32_t> partitioned = words, spare(n + 16);
          return part(partitioned.data() + 20, spare.data()) == left.size() && partitioned == expected;
        };
        CHECK(holds([&](auto* w, auto* spare) { return k->partition(w, n, side.data(), spare); }));
        CHECK(holds([&](auto* w, auto* spare) { return k->partition_by_key(w, n, keys.data(), 0x80000000, spare); }));
        CHECK(holds([&](auto* w, auto* spare) { return k->partition_by_rank(w, n, ranks.data(), 0x8000, spare); }));
      }
}

TEST(partition_is_stable) {
  std::mt19937 g(2);
  for (const Kernels* k : available())
    for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 1000u, 65535u}) {
      std::vector<std::uint8_t> side(n + 3);
      std::vector<std::uint32_t> words(n + 16), spare(n + 16), left, right;
      for (std::size_t i = 0; i < n; ++i) {
        side[i] = g() % 2;
        words[i] = static_cast<std::uint32_t>(g() % 7 << 16 | (n - 1 - i));
      }
      for (std::size_t i = 0; i < n; ++i) (side[words[i] & 0xffff] ? left : right).push_back(words[i]);
      CHECK_EQ(k->partition(words.data(), n, side.data(), spare.data()), left.size());
      left.insert(left.end(), right.begin(), right.end());
      words.resize(n);
      CHECK(words == left);
    }
}
