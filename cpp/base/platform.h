// Everything that depends on the operating system (Linux, macOS, Windows). No other file of the engine does.
//
// Paths are UTF-8. File errors are std::runtime_error with the system's error message.
#pragma once

#include <cstddef>
#include <string>

#include "base/function_ref.h"

namespace spinney::platform {

// ---- processors and threads

// The number of processors that an affinity mask, or on Windows a job's quota, leaves to this process; 0: no limit.
int n_granted_processors();

// The contents of a small file; empty if it does not exist.
std::string text_of(const std::string& path);

// Returns whether this is the main thread of the process; true if that is unknown.
bool on_first_thread();

[[noreturn]] void sleep_for_ever();

// Registers f to run in every forked child process. There is no fork on Windows.
void run_in_forked_children(void (*f)());

// Calls f. Threads started by f block all signals except those they raise themselves, which crash reporters and
// profilers need. The application's threads receive the others, which then interrupt their system calls.
void call_without_signals(FunctionRef<void()> f);

// ---- memory

// The size of a large page of the processor, or of the unit that the system manages.
inline constexpr std::size_t large_page = std::size_t{1} << 21;

// Pages that contain no other memory, aligned to large pages where the system has them, returned immediately when
// freed.
void* map_pages(std::size_t n_bytes);
void unmap_pages(void* first, std::size_t n_bytes);

// Requests large pages for n_bytes from `first` on, both multiples of a large page. A refusal affects speed only.
void request_large_pages(void* first, std::size_t n_bytes);

// ---- files in memory

struct MappedFile {
  void* first = nullptr;
  std::size_t n_bytes = 0;
  void* file = nullptr;  // open on Windows only
  int number = -1;       // file descriptor of a new file, not on Windows; mappings of existing files do not need it
};

// Maps the first bytes (at least one) of an open file for reading. The caller may close the file.
MappedFile map_file(int file, std::size_t n_bytes);

// Creates a file of zeros in `folder` for writing and reading. It has no name or vanishes with the mapping. Its disk
// space is reserved immediately: a full disk is an error here instead of ending the process at a later write.
MappedFile map_new_file(const std::string& folder, std::size_t n_bytes);

void unmap(const MappedFile& mapped);

// Drops pages from memory; they are read from the file again when needed.
void release_pages(const MappedFile& mapped);

// Copies bytes of a new file without mapping their pages, which is cheaper for bytes that are read once.
void read(const MappedFile& mapped, std::size_t first, std::size_t n_bytes, void* to);

// Announces that these bytes will be read soon, so that the system can fetch them.
void fetch_ahead(const MappedFile& mapped, std::size_t first, std::size_t n_bytes);

// ---- numbers

// Parses digits with an optional sign and exponent, without a decimal point or spaces, to the nearest double.
double number_of(const char* begin, const char* end);

}  // namespace spinney::platform
