// Random numbers as a function of their purpose (seed, tree, node, column), never of the order of the calls.
#pragma once

#include <cstdint>

namespace spinney {

inline std::uint64_t scramble(std::uint64_t x) {  // a bijection; every output bit depends on every input bit
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline std::uint64_t derive(std::uint64_t key, std::uint64_t branch) {
  return scramble(key + 0x9e3779b97f4a7c15u * (branch + 1));
}

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}
  std::uint64_t next() { return derive(key_, count_++); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  std::uint64_t below(std::uint64_t n) {                                 // unbiased, n > 0
    for (;;) {
      const std::uint64_t x = next();
      __extension__ using Wide = unsigned __int128;
      const Wide product = static_cast<Wide>(x) * n;
      const auto low = static_cast<std::uint64_t>(product);
      if (low >= n || low >= (0 - n) % n)
        return static_cast<std::uint64_t>(product >> 64);  // comparing with n first avoids a division
    }
  }

 private:
  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

}  // namespace spinney
