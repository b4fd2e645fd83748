#include "base/large_array.h"

#include <new>

#include "base/platform.h"

namespace spinney {

using platform::large_page;

static constexpr std::align_val_t line{64};

void request_large_pages(void* first, std::size_t n_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t from = (begin + large_page - 1) / large_page * large_page,
                       to = (begin + n_bytes) / large_page * large_page;
  if (from < to) platform::request_large_pages(reinterpret_cast<void*>(from), to - from);
}

static std::size_t whole_pages(std::size_t n_bytes) {
  constexpr std::size_t page = 65536;  // a multiple of the page size of every machine
  return (n_bytes + page - 1) / page * page;
}

void* allocate_large(std::size_t n_bytes) {
  if (n_bytes < large_page) return ::operator new(n_bytes, line);
  void* const first = platform::map_pages(whole_pages(n_bytes));
  request_large_pages(first, whole_pages(n_bytes));
  return first;
}

void free_large(void* first, std::size_t n_bytes) {
  if (n_bytes < large_page) return ::operator delete(first, line);
  platform::unmap_pages(first, whole_pages(n_bytes));
}

}  // namespace spinney
