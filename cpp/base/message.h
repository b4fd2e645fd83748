// Messages between the processes of a distributed fit: a sequence of numbers and arrays of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace spinney {

class MessageWriter {
 public:
  template <class T>
  void put(T value) {
    put_all(std::span<const T>(&value, 1));
  }
  template <class T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  template <class T>
  void put_run(const std::vector<T>& values) {  // preceded by the length
    put<std::uint64_t>(values.size());
    put_all(std::span<const T>(values));
  }
  void append(const MessageWriter& other) { bytes_ += other.bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    T value;
    copy(&value, sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> get_some(std::size_t n) {
    if (n > left() / sizeof(T)) throw std::invalid_argument("The message is truncated.");
    std::vector<T> values(n);
    copy(values.data(), n * sizeof(T));
    return values;
  }
  // Adds the next numbers of the message to `sums`.
  template <class T>
  void add_to(std::span<T> sums) {
    if (sums.size() > left() / sizeof(T)) throw std::invalid_argument("The message is truncated.");
    const char* from = bytes_.data() + at_;  // unaligned
    for (std::size_t i = 0; i < sums.size(); ++i) {
      T value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      sums[i] += value;
    }
    at_ += sums.size_bytes();
  }
  template <class T>
  std::vector<T> get_run() {
    return get_some<T>(get<std::uint64_t>());
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  void copy(void* to, std::size_t n) {
    if (n > left()) throw std::invalid_argument("The message is truncated.");
    if (n > 0) std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace spinney
