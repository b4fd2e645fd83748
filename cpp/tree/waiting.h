// Trees that wait until all of their forest have grown. Memory that is new is paid for by the page, and a forest needs much
// of it at once: what a thread keeps lies side by side in large pages.
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

// Arrays one after the other. They may begin in one piece of memory and end in another.
struct WaitingArrays {
  std::vector<std::shared_ptr<LargeArray<std::byte>>> memory;  // before and after these, others may lie there too
  std::size_t begin = 0;                                       // in the first

  // Calls body(first, n) for the runs of an array of n_left elements that begins `at` bytes behind the first.
  template <class T, class Body>
  void for_each_run(std::size_t at, std::size_t n_left, Body&& body) const {
    std::size_t offset = begin + at;
    for (const auto& piece : memory) {
      const std::size_t n = offset < piece->size() ? std::min(n_left, (piece->size() - offset) / sizeof(T)) : 0;
      if (n > 0) body(reinterpret_cast<T*>(piece->data() + offset), n);
      n_left -= n;
      offset = offset < piece->size() ? 0 : offset - piece->size();
    }
  }
};

// A tree, in two parts that are about as large. Kept splits are left out: no forest has any.
struct WaitingTree {
  static constexpr auto value_arrays = std::make_tuple(&Tree::value);
  static constexpr auto other_arrays =  // elements of 8 bytes, then of 4, then of 1
      std::make_tuple(&Tree::threshold, &Tree::impurity, &Tree::weight, &Tree::feature, &Tree::right, &Tree::set,
                      &Tree::n_rows, &Tree::sets, &Tree::flags);

  std::uint32_t value_width = 1;
  double shrinkage = 0;  // all trees of a forest have the same
  std::size_t n_nodes = 0, n_set_words = 0;
  WaitingArrays values, others;

  // How long an array is.
  std::size_t length(std::vector<double> Tree::* array) const {
    return array == &Tree::value ? n_nodes * value_width : n_nodes;
  }
  std::size_t length(std::vector<std::uint32_t> Tree::* array) const {
    return array == &Tree::sets ? n_set_words : n_nodes;
  }
  std::size_t length(std::vector<std::int32_t> Tree::*) const { return n_nodes; }
  std::size_t length(std::vector<std::uint8_t> Tree::*) const { return n_nodes; }

  // Calls body(array, first, n) for the runs of each of some arrays, in order.
  template <class Body, class... Arrays>
  void for_each_run(const WaitingArrays& part, const std::tuple<Arrays...>& arrays, Body&& body) const {
    std::size_t at = 0;
    const auto visit = [&]<class T>(std::vector<T> Tree::* array) {
      part.for_each_run<T>(at, length(array), [&](T* first, std::size_t n) { body(array, first, n); });
      at += length(array) * sizeof(T);
    };
    std::apply([&](auto... array) { (visit(array), ...); }, arrays);
  }
};

// Where one thread puts them.
class WaitingRoom {
 public:
  WaitingTree keep(const Tree& tree);

 private:
  struct Bench {
    std::shared_ptr<LargeArray<std::byte>> memory = std::make_shared<LargeArray<std::byte>>();
    std::size_t n_used = 0;
    WaitingArrays take(std::size_t n_bytes);
  };
  Bench values_, others_;
};

}  // namespace spinney
