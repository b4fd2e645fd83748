// Memory that lies in files: for tables that are larger than the memory there is.
//
// Pages of a file come when they are looked at, and may be let go at any time: what was written is still in the file. Who
// looks at many says so, and from time to time all are let go, so that not many are held at once.
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
  // Files are made in `folder`; they vanish with the memory. About `budget` bytes of pages are held.
  Spill(std::string folder, std::size_t budget) : folder_(std::move(folder)), budget_(budget) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  // An open file, to be read. Not an empty one. `sums` are the checksums of what was written to it.
  void* map(int file, std::size_t n_bytes, std::vector<std::uint64_t> sums);

  // Zeros, to be written and read.
  void* allocate(std::size_t n_bytes);

  // What was allocated is written, and will not change any more.
  void seal(const void* first);

  // Throws if what was mapped or sealed is no longer what it was: a disk or its memory is damaged.
  void verify();

  void free(void* first);

  // Copies some bytes of what was allocated, without mapping its pages; fetch_ahead: they will be copied soon.
  void read(const void* first, std::size_t offset, std::size_t n_bytes, void* to);
  void fetch_ahead(const void* first, std::size_t offset, std::size_t n_bytes);

  // So many bytes are about to be looked at.
  void touch(std::size_t n_bytes) {
    if (touched_.fetch_add(n_bytes, std::memory_order_relaxed) + n_bytes > budget_) let_go();
  }

  // The same of `n` elements, ascending, that lie `span` bytes apart: a page brings its neighbours along.
  void touch_some(std::size_t n, std::size_t span) { touch(std::min(span, n * n_brought)); }

  void let_go();

  std::size_t budget() const { return budget_; }
  std::size_t n_times_let_go() const { return n_let_go_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t n_brought = 65536;

  struct Mapped {
    platform::MappedFile file;
    std::vector<std::uint64_t> sums;  // empty: not known
  };

  void* keep(const platform::MappedFile& file, std::vector<std::uint64_t> sums = {});
  std::vector<Mapped>::iterator found(const void* first);
  platform::MappedFile file_of(const void* first);
  std::vector<std::uint64_t> sums_of(const platform::MappedFile& file);

  const std::string folder_;
  const std::size_t budget_;
  std::atomic<std::size_t> touched_ = 0, n_let_go_ = 0;
  std::mutex mutex_;
  std::vector<Mapped> mapped_;
};

}  // namespace spinney
