// Buffers for trees until their forest is complete. Fresh memory is expensive per page, and a forest needs much of it
// at once, so each thread stores its trees contiguously in large pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "base/large_array.h"
#include "tree/tree.h"

namespace spinney {

// Consecutive arrays. They may begin in one memory block and end in another.
struct BufferedArrays {
  std::vector<std::shared_ptr<LargeArray<std::byte>>> memory;  // shared with arrays before and after these
  std::size_t begin = 0;                                       // offset in the first block

  // Calls body(first, n) for the contiguous runs of an array of n_left elements that begins `at` bytes after the first.
  template <class T, class Body>
  void for_each_run(std::size_t at, std::size_t n_left, Body&& body) const {
    std::size_t offset = begin + at;
    for (const auto& block : memory) {
      const std::size_t n = offset < block->size() ? std::min(n_left, (block->size() - offset) / sizeof(T)) : 0;
      if (n > 0) body(reinterpret_cast<T*>(block->data() + offset), n);
      n_left -= n;
      offset = offset < block->size() ? 0 : offset - block->size();
    }
  }
};

// A tree in two sections of about equal size. Recorded splits are omitted: forests have none.
struct BufferedTree {
  static constexpr auto value_arrays = std::make_tuple(&Tree::value);
  static constexpr auto other_arrays =  // elements of 8 bytes, then of 4, then of 1
      std::make_tuple(&Tree::threshold, &Tree::impurity, &Tree::weight, &Tree::feature, &Tree::right, &Tree::set,
                      &Tree::n_rows, &Tree::sets, &Tree::flags);

  std::uint32_t value_width = 1;
  double shrinkage = 0;  // equal for all trees of a forest
  std::size_t n_nodes = 0, n_set_words = 0;
  BufferedArrays values, others;

  // The length of an array.
  std::size_t length(std::vector<double> Tree::* array) const {
    return array == &Tree::value ? n_nodes * value_width : n_nodes;
  }
  std::size_t length(std::vector<std::uint32_t> Tree::* array) const {
    return array == &Tree::sets ? n_set_words : n_nodes;
  }
  std::size_t length(std::vector<std::int32_t> Tree::*) const { return n_nodes; }
  std::size_t length(std::vector<std::uint8_t> Tree::*) const { return n_nodes; }

  // Calls body(array, first, n) for the contiguous runs of each of some arrays, in order.
  template <class Body, class... Arrays>
  void for_each_run(const BufferedArrays& part, const std::tuple<Arrays...>& arrays, Body&& body) const {
    std::size_t at = 0;
    const auto visit = [&]<class T>(std::vector<T> Tree::* array) {
      part.for_each_run<T>(at, length(array), [&](T* first, std::size_t n) { body(array, first, n); });
      at += length(array) * sizeof(T);
    };
    std::apply([&](auto... array) { (visit(array), ...); }, arrays);
  }
};

// The buffer of one thread.
class TreeBuffer {
 public:
  BufferedTree add(const Tree& tree);

 private:
  struct Pages {
    std::shared_ptr<LargeArray<std::byte>> memory = std::make_shared<LargeArray<std::byte>>();
    std::size_t n_used = 0;
    BufferedArrays take(std::size_t n_bytes);
  };
  Pages values_, others_;
};

}  // namespace spinney
