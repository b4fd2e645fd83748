// Checksums that detect damaged bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace spinney {

// One checksum per MiB of a sequence of bytes, which may be added in chunks of any size. A change of up to eight
// adjacent bytes is always detected, any other change with probability 1 - 2^-64.
class Checksums {
 public:
  void add(const void* bytes, std::size_t n) {
    const auto* at = static_cast<const std::uint8_t*>(bytes);
    while (n > 0) {
      const std::size_t some = std::min(n, segment - n_);
      add_some(at, some);
      at += some;
      n -= some;
      if (n_ == segment) close();
    }
  }

  // Call it once, after the last byte.
  std::vector<std::uint64_t> finish() {
    if (n_ > 0) close();
    return std::exchange(found_, {});
  }

 private:
  static constexpr std::size_t segment = std::size_t{1} << 20, width = 32;  // four words side by side
  using Words = std::array<std::uint64_t, width / 8>;

  void add_some(const std::uint8_t* at, std::size_t n) {
    if (const std::size_t waiting = n_ % width; waiting > 0) {
      const std::size_t some = std::min(n, width - waiting);
      std::memcpy(rest_.data() + waiting, at, some);
      at += some;
      n -= some;
      n_ += some;
      if (n_ % width > 0) return;
      mix(rest_.data());
    }
    n_ += n;
    for (; n >= width; n -= width, at += width) mix(at);
    if (n > 0) std::memcpy(rest_.data(), at, n);
  }

  // Each step is invertible: different words give different sums.
  void mix(const std::uint8_t* at) {
    Words words;
    std::memcpy(words.data(), at, width);
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint64_t& sum = sums_[i];
      sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15u;
      sum ^= sum >> 29;
    }
  }

  void close() {
    if (const std::size_t waiting = n_ % width; waiting > 0) {
      std::fill(rest_.begin() + static_cast<std::ptrdiff_t>(waiting), rest_.end(), std::uint8_t{0});
      mix(rest_.data());
    }
    std::uint64_t all = n_;
    for (const std::uint64_t sum : sums_) all = (all ^ sum ^ (all >> 32)) * 0xd6e8feb86659fd93u;
    found_.push_back(all);
    sums_ = {};
    n_ = 0;
  }

  Words sums_{};
  std::array<std::uint8_t, width> rest_{};  // bytes of the segment that is being added
  std::size_t n_ = 0;                       // number of bytes in the segment so far
  std::vector<std::uint64_t> found_;
};

}  // namespace spinney
