// Memory backed by files, for tables that are larger than memory.
//
// Pages of a file are loaded when they are accessed and can be released at any time, because the data stay in the file.
// Callers announce large reads with `touch`, and all pages are released from time to time to limit memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/platform.h"

namespace spinney {

class Spill {
 public:
  // Files are created in `folder` and vanish with the memory. About `budget` bytes of pages are held.
  Spill(std::string folder, std::size_t budget) : folder_(std::move(folder)), budget_(budget) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  // Maps an open, non-empty file for reading. `sums` are the checksums of its contents.
  void* map(int file, std::size_t n_bytes, std::vector<std::uint64_t> sums);

  // Allocates zeros for writing and reading.
  void* allocate(std::size_t n_bytes);

  // Marks allocated memory as final.
  void seal(const void* first);

  // Throws if mapped or sealed data have changed, because the disk or the memory is damaged.
  void verify();

  void free(void* first);

  // Copies bytes of an allocation without mapping its pages; fetch_ahead announces such a copy.
  void read(const void* first, std::size_t offset, std::size_t n_bytes, void* to);
  void fetch_ahead(const void* first, std::size_t offset, std::size_t n_bytes);

  // Announces that n_bytes are about to be read.
  void touch(std::size_t n_bytes) {
    if (touched_.fetch_add(n_bytes, std::memory_order_relaxed) + n_bytes > budget_) release_pages();
  }

  // The same for `n` elements in ascending order, `span` bytes apart: adjacent elements may share a page.
  void touch_some(std::size_t n, std::size_t span) { touch(std::min(span, n * n_brought)); }

  void release_pages();

  std::size_t budget() const { return budget_; }
  std::size_t n_releases() const { return n_releases_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t n_brought = 65536;

  struct Mapped {
    platform::MappedFile file;
    std::vector<std::uint64_t> sums;  // empty: unknown
  };

  void* keep(const platform::MappedFile& file, std::vector<std::uint64_t> sums = {});
  std::vector<Mapped>::iterator found(const void* first);
  platform::MappedFile file_of(const void* first);
  std::vector<std::uint64_t> sums_of(const platform::MappedFile& file);

  const std::string folder_;
  const std::size_t budget_;
  std::atomic<std::size_t> touched_ = 0, n_releases_ = 0;
  std::mutex mutex_;
  std::vector<Mapped> mapped_;
};

}  // namespace spinney
