// Every instruction set gives the same bits.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/cpu.h"
#include "cells/kernels.h"
#include "check.h"

using namespace spinney;

static std::vector<const Kernels*> available() {
  std::vector<const Kernels*> k{&base::kernels};
#if defined(__x86_64__)
  if (isa() != Isa::base) k.push_back(&avx2::kernels);
  if (isa() == Isa::avx512) k.push_back(&avx512::kernels);
#endif
  return k;
}

TEST(scores_have_the_same_bits) {
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
      (base::kernels.*rule)(sl.data(), wl.data(), sr.data(), wr.data(), n, expected.data());
      for (const Kernels* k : available()) {
        (k->*rule)(sl.data(), wl.data(), sr.data(), wr.data(), n, got.data());
        CHECK(std::memcmp(expected.data(), got.data(), n * sizeof(double)) == 0);
        CHECK_EQ(k->first_largest(got.data(), n), base::kernels.first_largest(expected.data(), n));
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

TEST(keys_part_rows_and_sums) {
  std::mt19937 g(4);
  for (const std::size_t n : {1u, 2u, 15u, 16u, 33u, 1000u}) {
    std::vector<std::uint32_t> keys(n), rows(n), left, right;
    std::vector<std::uint8_t> bytes(n);
    std::vector<std::int64_t> values(n);
    const std::uint32_t cut = g();
    std::int64_t byte_sum = 0, value_sum = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      keys[i] = g() % 7 == 0 ? cut : static_cast<std::uint32_t>(g());
      rows[i] = 3 * i;
      bytes[i] = g() % 2;
      values[i] = static_cast<std::int64_t>(g()) - (std::int64_t{1} << 31);
      (keys[i] <= cut ? left : right).push_back(rows[i]);
      byte_sum += keys[i] <= cut ? bytes[i] : 0;
      value_sum += keys[i] <= cut ? values[i] : 0;
    }
    const std::size_t n_left = left.size();
    left.insert(left.end(), right.begin(), right.end());
    for (const Kernels* k : available()) {
      std::vector<std::uint32_t> parted = rows, spare(n + 16);
      CHECK_EQ(k->partition_by_key(parted.data(), n, keys.data(), cut, spare.data()), n_left);
      CHECK(parted == left);
      std::uint32_t low = 0, high = 0;
      k->key_range(keys.data(), n, &low, &high);
      CHECK_EQ(low, *std::min_element(keys.begin(), keys.end()));
      CHECK_EQ(high, *std::max_element(keys.begin(), keys.end()));
      std::int64_t sum = 0;
      CHECK_EQ(k->sum_bytes(keys.data(), n, cut, bytes.data(), &sum), n_left);
      CHECK_EQ(sum, byte_sum);
      CHECK_EQ(k->sum_values(keys.data(), n, cut, values.data(), &sum), n_left);
      CHECK_EQ(sum, value_sum);
    }
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
