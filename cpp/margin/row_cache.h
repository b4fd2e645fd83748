// Rows of kernel values that are kept: as many as fit into a given number of bytes, those used last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/large_array.h"

namespace spinney {

template <class T>
class RowCache {
 public:
  static constexpr std::uint32_t nowhere = 0xffffffffu;

  RowCache(std::size_t n_rows, std::size_t n_bytes) : most_(n_bytes / sizeof(T)), slot_of_(n_rows, nowhere) {}

  // Rows have n values from now on; those kept so far are gone.
  void clear(std::size_t n) {
    width_ = n;
    const std::size_t n_slots = std::min(most_ / std::max<std::size_t>(n, 1), slot_of_.size());
    if (values_.size() < n_slots * n) values_ = LargeArray<T>(n_slots * n);
    std::fill(slot_of_.begin(), slot_of_.end(), nowhere);
    row_in_.assign(n_slots, nowhere);
    used_.assign(n_slots, 0);
  }

  // Keeps of each row only some of its values, by their places; width is their number, padded.
  void keep_places(std::span<const std::uint32_t> places, std::size_t width) {
    for (std::size_t slot = 0; slot < row_in_.size(); ++slot) {
      const T* from = values_.data() + slot * width_;
      T* to = values_.data() + slot * width;  // never ahead of `from`
      for (std::size_t i = 0; i < places.size(); ++i) to[i] = from[places[i]];
      std::fill(to + places.size(), to + width, T{0});
    }
    width_ = width;
    const std::size_t n_slots = std::min(values_.size() / std::max<std::size_t>(width, 1), slot_of_.size());
    row_in_.resize(n_slots, nowhere);
    used_.resize(n_slots, 0);
  }

  bool has(std::uint32_t row) const { return slot_of_[row] != nowhere; }
  T* values(std::uint32_t row) { return values_.data() + slot_of_[row] * width_; }
  const T* values(std::uint32_t row) const { return values_.data() + slot_of_[row] * width_; }

  // Makes room for rows that are not kept, as far as there is any, at the cost of those not used for longest; `in_use` are
  // not given up. Their values are for the caller to set. Returns how many of `rows` have room: the first ones.
  std::size_t make_room(std::span<const std::uint32_t> in_use, std::span<const std::uint32_t> rows) {
    ++now_;
    for (const std::uint32_t row : in_use)
      if (has(row)) used_[slot_of_[row]] = now_;
    std::vector<std::uint32_t> slots(row_in_.size());
    std::iota(slots.begin(), slots.end(), 0u);
    std::erase_if(slots, [&](std::uint32_t slot) { return used_[slot] == now_; });
    const std::size_t n = std::min(slots.size(), rows.size());
    const auto older = [&](std::uint32_t a, std::uint32_t b) {
      return used_[a] != used_[b] ? used_[a] < used_[b] : a < b;
    };
    std::partial_sort(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(n), slots.end(), older);
    for (std::size_t i = 0; i < n; ++i) {
      if (row_in_[slots[i]] != nowhere) slot_of_[row_in_[slots[i]]] = nowhere;
      row_in_[slots[i]] = rows[i];
      slot_of_[rows[i]] = slots[i];
      used_[slots[i]] = now_;
    }
    return n;
  }

 private:
  std::size_t most_, width_ = 0;
  LargeArray<T> values_;
  std::vector<std::uint32_t> slot_of_, row_in_;
  std::vector<std::uint64_t> used_;
  std::uint64_t now_ = 0;
};

}  // namespace spinney
