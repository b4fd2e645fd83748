// What only the operating system can do. The one place of the engine that knows which system it is: Linux, macOS, Windows.
//
// Paths are UTF-8. Errors of files are std::runtime_error with what the system said.
#pragma once

#include <cstddef>
#include <string>

#include "base/function_ref.h"

namespace spinney::platform {

// ---- processors and threads

// Processors that an affinity mask, or on Windows a job's quota, leaves to this process; 0 where nothing limits it.
int n_granted_processors();

// All of a small file; empty if there is none.
std::string text_of(const std::string& path);

// Is this the thread that the process began with? Where that cannot be known: yes.
bool on_first_thread();

[[noreturn]] void sleep_for_ever();

// f runs in every child that this process forks. Nothing forks on Windows.
void run_in_forked_children(void (*f)());

// Calls f. Threads that it starts take no signals but those they cause themselves, which crash reporters and profilers want:
// the others go to the threads of the application, so that they interrupt its system calls.
void call_without_signals(FunctionRef<void()> f);

// ---- memory

// A large page of the processor, or what the system would call one.
inline constexpr std::size_t large_page = std::size_t{1} << 21;

// Memory of its own pages, aligned to large ones where the system has them. Goes back to the system at once.
void* map_pages(std::size_t n_bytes);
void unmap_pages(void* first, std::size_t n_bytes);

// Asks for large pages from `first` on, where one begins and n_bytes are whole ones. A refusal changes nothing but the speed.
void ask_for_large_pages(void* first, std::size_t n_bytes);

// ---- files in memory

struct MappedFile {
  void* first = nullptr;
  std::size_t n_bytes = 0;
  void* file = nullptr;  // kept open on Windows
  int number = -1;       // of a new file, elsewhere; the mapping of another lives without it
};

// The first bytes of an open file, by its number, to be read; at least one. The caller may close it.
MappedFile map_file(int file, std::size_t n_bytes);

// A new file of zeros in `folder`, to be written and read; it has no name, or vanishes with the mapping. Its space is asked
// for at once: a full disk is an error here, and would end the process later.
MappedFile map_new_file(const std::string& folder, std::size_t n_bytes);

void unmap(const MappedFile& mapped);

// Pages may leave the memory; they come back from the file.
void let_go(const MappedFile& mapped);

// Copies some bytes of a new file without mapping their pages: those that are looked at once are cheaper to copy.
void read(const MappedFile& mapped, std::size_t first, std::size_t n_bytes, void* to);

// These bytes will be read soon: the system may fetch them meanwhile.
void fetch_ahead(const MappedFile& mapped, std::size_t first, std::size_t n_bytes);

// ---- numbers

// What digits, perhaps with a sign before and an exponent behind, stand for: the nearest double. No point, no spaces.
double number_of(const char* begin, const char* end);

}  // namespace spinney::platform
