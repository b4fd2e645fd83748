#include "base/spill.h"

namespace spinney {

void* Spill::keep(const platform::MappedFile& mapped) {
  const std::lock_guard lock(mutex_);
  mapped_.push_back(mapped);
  return mapped.first;
}

void* Spill::map(const std::string& path, std::size_t n_bytes) { return keep(platform::map_file(path, n_bytes)); }

void* Spill::allocate(std::size_t n_bytes) { return keep(platform::map_new_file(folder_, n_bytes)); }

void Spill::free(void* first) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(mapped_, first, &platform::MappedFile::first);
  platform::unmap(*found);
  mapped_.erase(found);
}

void Spill::let_go() {
  const std::lock_guard lock(mutex_);
  if (touched_.exchange(0, std::memory_order_relaxed) == 0) return;  // another thread was first
  for (const auto& mapped : mapped_) platform::let_go(mapped);
  n_let_go_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace spinney
