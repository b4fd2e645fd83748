#include "base/spill.h"

#include <algorithm>
#include <stdexcept>

#include "base/checksum.h"

namespace spinney {

void* Spill::keep(const platform::MappedFile& file, std::vector<std::uint64_t> sums) {
  const std::lock_guard lock(mutex_);
  mapped_.push_back({file, std::move(sums)});
  return file.first;
}

void* Spill::map(int file, std::size_t n_bytes, std::vector<std::uint64_t> sums) {
  return keep(platform::map_file(file, n_bytes), std::move(sums));
}

void* Spill::allocate(std::size_t n_bytes) { return keep(platform::map_new_file(folder_, n_bytes)); }

std::vector<Spill::Mapped>::iterator Spill::found(const void* first) {
  return std::ranges::find_if(mapped_, [&](const Mapped& m) { return m.file.first == first; });
}

std::vector<std::uint64_t> Spill::sums_of(const platform::MappedFile& file) {
  constexpr std::size_t block = std::size_t{1} << 20;
  Checksums sums;
  for (std::size_t begin = 0; begin < file.n_bytes; begin += block) {
    const std::size_t n = std::min(block, file.n_bytes - begin);
    touch(n);
    sums.add(static_cast<const std::byte*>(file.first) + begin, n);
  }
  return sums.finish();
}

platform::MappedFile Spill::file_of(const void* first) {
  const std::lock_guard lock(mutex_);
  return found(first)->file;
}

void Spill::read(const void* first, std::size_t offset, std::size_t n_bytes, void* to) {
  platform::read(file_of(first), offset, n_bytes, to);
}

void Spill::fetch_ahead(const void* first, std::size_t offset, std::size_t n_bytes) {
  platform::fetch_ahead(file_of(first), offset, n_bytes);
}

void Spill::seal(const void* first) {
  std::vector<std::uint64_t> sums = sums_of(file_of(first));
  const std::lock_guard lock(mutex_);
  found(first)->sums = std::move(sums);
}

void Spill::verify() {
  std::unique_lock lock(mutex_);
  const std::vector<Mapped> all = mapped_;
  lock.unlock();
  for (const Mapped& m : all)
    if (!m.sums.empty() && sums_of(m.file) != m.sums)
      throw std::runtime_error("A temporary file in " + folder_ +
                               " has changed since it was written, so the fit was stopped. Check the "
                               "disk and the memory of this machine, or choose another folder, and fit again.");
}

void Spill::free(void* first) {
  const std::lock_guard lock(mutex_);
  const auto at = found(first);
  platform::unmap(at->file);
  mapped_.erase(at);
}

void Spill::release_pages() {
  const std::lock_guard lock(mutex_);
  if (touched_.exchange(0, std::memory_order_relaxed) == 0) return;  // another thread was faster
  for (const Mapped& m : mapped_) platform::release_pages(m.file);
  n_releases_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace spinney
