// Arrays that are read here and there: where the system grants large pages, a look-up seldom has to find its page first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/spill.h"

namespace spinney {

// Asks for large pages where a run of memory covers them: the rest may belong to others. A refusal changes nothing but the
// speed.
void ask_for_large_pages(void* first, std::size_t n_bytes);

// Memory that begins a cache line. Large pages come from the system and go back to it at once.
void* allocate_large(std::size_t n_bytes);
void free_large(void* first, std::size_t n_bytes);

// Elements are not set to anything.
template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t n)
      : size_(n), data_(static_cast<T*>(allocate_large(n * sizeof(T))), Free{n * sizeof(T), nullptr}) {}

  // In a file, if there is a place for it.
  LargeArray(std::size_t n, const std::shared_ptr<Spill>& spill)
      : size_(n),
        data_(static_cast<T*>(spill && n > 0 ? spill->allocate(n * sizeof(T)) : allocate_large(n * sizeof(T))),
              Free{n * sizeof(T), n > 0 ? spill : nullptr}) {}

  // All elements are written: those in a file are to stay what they are.
  void seal() const {
    if (data_ && data_.get_deleter().spill) data_.get_deleter().spill->seal(data_.get());
  }

  // Copies elements that lie in a file; fetch_ahead: they will be copied soon.
  void read(std::size_t first, std::size_t n, T* to) const {
    data_.get_deleter().spill->read(data_.get(), first * sizeof(T), n * sizeof(T), to);
  }
  void fetch_ahead(std::size_t first, std::size_t n) const {
    data_.get_deleter().spill->fetch_ahead(data_.get(), first * sizeof(T), n * sizeof(T));
  }

  std::size_t size() const { return size_; }
  const T* data() const { return data_.get(); }
  T* data() { return data_.get(); }

 private:
  struct Free {
    std::size_t n_bytes = 0;
    std::shared_ptr<Spill> spill = nullptr;
    void operator()(T* p) const {
      if (spill)
        spill->free(p);
      else
        free_large(p, n_bytes);
    }
  };

  std::size_t size_ = 0;
  std::unique_ptr<T, Free> data_;
};

}  // namespace spinney
