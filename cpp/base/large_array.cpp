#include "base/large_array.h"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spinney {

static constexpr std::align_val_t line{64};

void ask_for_large_pages([[maybe_unused]] void* first, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t from = (begin + large_page - 1) / large_page * large_page,
                       to = (begin + n_bytes) / large_page * large_page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

#if defined(__linux__)
static std::size_t whole_pages(std::size_t n_bytes) {
  constexpr std::size_t page = 65536;  // a multiple of the page of every machine
  return (n_bytes + page - 1) / page * page;
}

// More than is asked for is mapped, so that a large page begins in it; what lies around is given back.
static void* map_pages(std::size_t n_bytes) {
  const std::size_t n_asked = n_bytes + large_page;
  void* const mapped = mmap(nullptr, n_asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t n_before = (large_page - reinterpret_cast<std::uintptr_t>(begin) % large_page) % large_page;
  if (n_before > 0) munmap(begin, n_before);
  if (n_before < large_page) munmap(begin + n_before + n_bytes, large_page - n_before);
  ask_for_large_pages(begin + n_before, n_bytes);
  return begin + n_before;
}
#endif

void* allocate_large(std::size_t n_bytes) {
#if defined(__linux__)
  if (n_bytes >= large_page) return map_pages(whole_pages(n_bytes));
#endif
  return ::operator new(n_bytes, line);
}

void free_large(void* first, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__)
  if (n_bytes >= large_page) {
    munmap(first, whole_pages(n_bytes));
    return;
  }
#endif
  ::operator delete(first, line);
}

}  // namespace spinney
