// Memory for arrays that are read at random places: large pages spare the processor looking up where each lies.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spinney {

template <class T>
struct LargePages {
  using value_type = T;
  static constexpr std::size_t page = std::size_t{2} << 20;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < 2 * page) return static_cast<T*>(::operator new(bytes));
    void* p = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (p == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(p, (bytes + page - 1) / page * page, MADV_HUGEPAGE);  // a wish: nothing depends on it
#endif
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t n) {
    if (n * sizeof(T) < 2 * page)
      ::operator delete(p);
    else
      std::free(p);
  }
  bool operator==(const LargePages&) const { return true; }
};

template <class T>
using LargeArray = std::vector<T, LargePages<T>>;

}  // namespace spinney
