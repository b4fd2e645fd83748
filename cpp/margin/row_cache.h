// A cache of kernel rows: as many as fit into a number of bytes, replaced least recently used first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "base/pool.h"

namespace spinney {

template <class T>
class RowCache {
 public:
  static constexpr std::uint32_t nowhere = 0xffffffffu;

  RowCache(std::size_t n_rows, std::size_t n_bytes) : most_(n_bytes / sizeof(T)), slot_of_(n_rows, nowhere) {}

  // Sets the row length to n and clears the cache.
  void clear(std::size_t n) {
    width_ = n;
    chunks_.clear();
    std::fill(slot_of_.begin(), slot_of_.end(), nowhere);
    row_in_.clear();
    used_.clear();
  }

  // Retains some values of each row, by position; width is their padded number.
  void retain_places(std::span<const std::uint32_t> places, std::size_t width, int n_threads) {
    parallel_for(chunks_.size(), n_threads, [&](std::size_t chunk, int) {
      LargeArray<T> retained(chunk_slots * width);
      for (std::size_t slot = 0; slot < chunk_slots; ++slot) {
        if (row_in_[chunk * chunk_slots + slot] == nowhere) continue;
        const T* from = chunks_[chunk].data() + slot * width_;
        T* to = retained.data() + slot * width;
        for (std::size_t i = 0; i < places.size(); ++i) to[i] = from[places[i]];
        std::fill(to + places.size(), to + width, T{0});
      }
      chunks_[chunk] = std::move(retained);
    });
    width_ = width;
  }

  bool has(std::uint32_t row) const { return slot_of_[row] != nowhere; }
  T* values(std::uint32_t row) {
    return chunks_[slot_of_[row] / chunk_slots].data() + slot_of_[row] % chunk_slots * width_;
  }

  // Makes space for rows that are not cached, as far as possible, by evicting the least recently used; `in_use` rows
  // are not evicted. The caller sets the values.
  void make_room(std::span<const std::uint32_t> in_use, std::span<const std::uint32_t> rows) {
    ++now_;
    std::size_t n_free = 0;
    for (const std::uint32_t row : in_use)
      if (has(row)) used_[slot_of_[row]] = now_;
    for (const std::uint32_t row : row_in_) n_free += row == nowhere;
    while (n_free < rows.size() && (chunks_.size() + 1) * chunk_slots * width_ <= most_ &&
           chunks_.size() * chunk_slots < slot_of_.size()) {
      chunks_.emplace_back(chunk_slots * width_);
      row_in_.resize(chunks_.size() * chunk_slots, nowhere);
      used_.resize(row_in_.size(), 0);
      n_free += chunk_slots;
    }
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
  }

 private:
  static constexpr std::size_t chunk_slots = 64;  // rows per memory block

  std::size_t most_, width_ = 0;
  std::vector<LargeArray<T>> chunks_;
  std::vector<std::uint32_t> slot_of_, row_in_;  // slot of each row; row of each slot
  std::vector<std::uint64_t> used_;              // when each slot was used last; 0: never
  std::uint64_t now_ = 0;
};

}  // namespace spinney
