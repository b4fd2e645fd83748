// Arrays that are read here and there: where the system grants large pages, a look-up seldom has to find its page first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spinney {

inline constexpr std::size_t large_page = std::size_t{1} << 21;

// Asks for large pages where a run of memory covers them: the rest may belong to others. A refusal changes nothing but the
// speed.
inline void ask_for_large_pages([[maybe_unused]] void* first, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t from = (begin + large_page - 1) / large_page * large_page,
                       to = (begin + n_bytes) / large_page * large_page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

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
  static constexpr std::align_val_t line{64};
  struct Free {
    std::align_val_t alignment = line;
    void operator()(T* p) const { ::operator delete(p, alignment); }
  };
  using Owner = std::unique_ptr<T, Free>;

  static Owner allocate(std::size_t n_bytes) {
    const std::align_val_t alignment = n_bytes < large_page ? line : std::align_val_t{large_page};
    Owner owner(static_cast<T*>(::operator new(n_bytes, alignment)), Free{alignment});
    ask_for_large_pages(owner.get(), n_bytes);
    return owner;
  }

  std::size_t size_ = 0;
  Owner data_;
};

}  // namespace spinney
