// Arrays that are read here and there: where the system grants large pages, a look-up seldom has to find its page first.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spinney {

// Elements are not set to anything. The first begins a cache line.
template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t n) : size_(n), data_(allocate(n * sizeof(T))) {}

  std::size_t size() const { return size_; }
  const T* data() const { return data_.get(); }
  T* data() { return data_.get(); }

 private:
  static constexpr std::align_val_t large_page{std::size_t{1} << 21}, line{64};
  struct Free {
    std::align_val_t alignment = line;
    void operator()(T* p) const { ::operator delete(p, alignment); }
  };
  using Owner = std::unique_ptr<T, Free>;

  static Owner allocate(std::size_t n_bytes) {
    const auto page = static_cast<std::size_t>(large_page);
    const std::align_val_t alignment = n_bytes < page ? line : large_page;
    Owner owner(static_cast<T*>(::operator new(n_bytes, alignment)), Free{alignment});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // Whole pages only: the rest of the last may belong to others. A refusal changes nothing but the speed.
    if (n_bytes >= page) madvise(owner.get(), n_bytes / page * page, MADV_HUGEPAGE);
#endif
    return owner;
  }

  std::size_t size_ = 0;
  Owner data_;
};

}  // namespace spinney
