// Arrays with random access: large pages, where the system grants them, avoid most address translations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/spill.h"

namespace spinney {

// Requests large pages for those that lie entirely within the given memory. A refusal affects speed only.
void request_large_pages(void* first, std::size_t n_bytes);

// Memory aligned to a cache line. Large arrays come from the system and are returned to it immediately.
void* allocate_large(std::size_t n_bytes);
void free_large(void* first, std::size_t n_bytes);

// Elements are uninitialised.
template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t n)
      : size_(n), data_(static_cast<T*>(allocate_large(n * sizeof(T))), Free{n * sizeof(T), nullptr}) {}

  // Stored in a file if `spill` is not null.
  LargeArray(std::size_t n, const std::shared_ptr<Spill>& spill)
      : size_(n),
        data_(static_cast<T*>(spill && n > 0 ? spill->allocate(n * sizeof(T)) : allocate_large(n * sizeof(T))),
              Free{n * sizeof(T), n > 0 ? spill : nullptr}) {}

  // Marks the elements as final: those in a file must not change any more.
  void seal() const {
    if (data_ && data_.get_deleter().spill) data_.get_deleter().spill->seal(data_.get());
  }

  // Copies elements that lie in a file; `fetch_ahead` announces that they will be copied soon.
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
