// Vectors whose elements may be stored in files.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/spill.h"

namespace spinney {

template <class T>
class SpillAllocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  SpillAllocator(std::shared_ptr<Spill> spill = nullptr) : spill_(std::move(spill)) {}
  template <class U>
  SpillAllocator(const SpillAllocator<U>& other) : spill_(other.spill()) {}

  T* allocate(std::size_t n) {
    return static_cast<T*>(spill_ ? spill_->allocate(n * sizeof(T)) : ::operator new(n * sizeof(T)));
  }
  void deallocate(T* first, std::size_t) {
    if (spill_)
      spill_->free(first);
    else
      ::operator delete(first);
  }

  const std::shared_ptr<Spill>& spill() const { return spill_; }
  friend bool operator==(const SpillAllocator& a, const SpillAllocator& b) { return a.spill_ == b.spill_; }

 private:
  std::shared_ptr<Spill> spill_;  // null: in memory
};

// One number per row.
template <class T>
using RowVector = std::vector<T, SpillAllocator<T>>;

}  // namespace spinney
