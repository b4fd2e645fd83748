#include "base/spill.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace spinney {

namespace {

std::string said(int error) { return std::generic_category().message(error); }

// A file that closes itself; what is mapped stays.
struct OpenFile {
  OpenFile(int opened, const std::string& path) : number(opened) {
    if (number < 0) throw std::runtime_error("cannot open " + path + ": " + said(errno));
  }
  ~OpenFile() { close(number); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int number;
};

// Space on the disk is asked for at once: a full disk is an error here, and would end the process later.
void reserve(int file, std::size_t n_bytes, const std::string& folder) {
  const auto size = static_cast<off_t>(n_bytes);
#if defined(__linux__)
  const int error = posix_fallocate(file, 0, size);
#else
  const int error = ftruncate(file, size) == 0 ? 0 : errno;
#endif
  if (error != 0)
    throw std::runtime_error("cannot make a file of " + std::to_string(n_bytes >> 20) + " MiB in " + folder + ": " +
                             said(error) + ". Name a folder with more room.");
}

}  // namespace

void* Spill::keep(void* mapped, std::size_t n_bytes) {
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map a file: " + said(errno));
  const std::lock_guard lock(mutex_);
  mapped_.emplace_back(mapped, n_bytes);
  return mapped;
}

void* Spill::map(const std::string& path, std::size_t n_bytes) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  return keep(mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, file.number, 0), n_bytes);
}

void* Spill::allocate(std::size_t n_bytes) {
  std::string path = folder_ + "/spinney-XXXXXX";
  const OpenFile file(mkstemp(path.data()), path);
  unlink(path.c_str());
  reserve(file.number, n_bytes, folder_);
  return keep(mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0), n_bytes);
}

void Spill::free(void* first, std::size_t n_bytes) {
  const std::lock_guard lock(mutex_);
  std::erase(mapped_, std::pair(first, n_bytes));
  munmap(first, n_bytes);
}

void Spill::let_go() {
  const std::lock_guard lock(mutex_);
  if (touched_.exchange(0, std::memory_order_relaxed) == 0) return;  // another thread was first
  for (const auto& [first, n_bytes] : mapped_) madvise(first, n_bytes, MADV_DONTNEED);
  n_let_go_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace spinney
