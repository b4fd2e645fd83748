#include "base/platform.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#if defined(_WIN32)
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <io.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#else
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#endif
#endif

namespace spinney::platform {

namespace {

// No streams: their locales may clash with those of another copy of the C++ library loaded by another extension module.
std::string all_of(std::FILE* opened) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(opened, std::fclose);
  std::string text;
  char part[4096];
  if (file)
    for (std::size_t n; (n = std::fread(part, 1, sizeof part, file.get())) > 0;) text.append(part, n);
  return text;
}

[[noreturn]] void cannot_open(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot open " + path + ": " + reason);
}

[[noreturn]] void cannot_make(const std::string& folder, std::size_t n_bytes, const std::string& reason) {
  throw std::runtime_error("cannot make a file of " + std::to_string(n_bytes) + " bytes in " + folder + ": " + reason +
                           ". Choose a folder on a disk with more free space.");
}

// Accessing the missing part would end the process.
[[noreturn]] void too_short() {
  throw std::runtime_error("A temporary file is shorter than expected. Choose a folder on another disk.");
}

[[noreturn]] void cannot_map(const std::string& reason) { throw std::runtime_error("cannot map a file: " + reason); }

}  // namespace

double number_of(const char* begin, const char* end) {
  double value = 0;
#if defined(__cpp_lib_to_chars) && \
    !defined(__APPLE__)  // macOS before 26 cannot parse floating-point numbers with from_chars
  std::from_chars(begin, end, value);
#else
  value = std::strtod(std::string(begin, end).c_str(),
                      nullptr);  // there is no decimal point, so the locale does not matter
#endif
  return value;
}

#if defined(_WIN32)

namespace {

std::string reason() { return std::system_category().message(static_cast<int>(GetLastError())); }

std::wstring wide(const std::string& text) {
  const int n = static_cast<int>(text.size());
  std::wstring words(static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), n, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), n, words.data(), static_cast<int>(words.size()));
  return words;
}

// Closes a handle unless it is released.
struct Handle {
  explicit Handle(HANDLE opened) : handle(opened) {}
  ~Handle() {
    if (handle != nullptr && handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  HANDLE keep() { return std::exchange(handle, nullptr); }
  HANDLE handle;
};

MappedFile view_of(Handle& file, std::size_t n_bytes, DWORD protection, DWORD access) {
  const Handle section(CreateFileMappingW(file.handle, nullptr, protection, static_cast<DWORD>(n_bytes >> 32),
                                          static_cast<DWORD>(n_bytes), nullptr));
  if (section.handle == nullptr) cannot_map(reason());
  void* const first = MapViewOfFile(section.handle, access, 0, 0, n_bytes);
  if (first == nullptr) cannot_map(reason());
  return {first, n_bytes, file.keep()};
}

// The container's CPU limit in whole processors; 0 if there is no limit.
int n_of_quota() {
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  constexpr DWORD capped = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  if (!QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof rate, nullptr)) return 0;
  if ((rate.ControlFlags & capped) != capped) return 0;
  const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), parts = 10'000;  // the rate is in units of 1/10000
  return static_cast<int>(std::max<DWORD>(1, (rate.CpuRate * n + parts - 1) / parts));
}

}  // namespace

int n_granted_processors() {
  DWORD_PTR ours = 0, all = 0;  // both are 0 for a process with more than 64 processors
  const int n_of_mask = GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)
                            ? std::popcount(static_cast<unsigned long long>(ours))
                            : 0;
  const int n = n_of_quota();
  return n == 0 || n_of_mask == 0 ? std::max(n, n_of_mask) : std::min(n, n_of_mask);
}

std::string text_of(const std::string& path) { return all_of(_wfopen(wide(path).c_str(), L"rb")); }

bool on_first_thread() { return true; }

void sleep_for_ever() {
  for (;;) Sleep(INFINITE);
}

void run_in_forked_children(void (*)()) {}

void call_without_signals(FunctionRef<void()> f) { f(); }  // Windows delivers signals on a separate thread

void* map_pages(std::size_t n_bytes) {
  void* const first = VirtualAlloc(nullptr, n_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (first == nullptr) throw std::bad_alloc();
  return first;
}

void unmap_pages(void* first, std::size_t) { VirtualFree(first, 0, MEM_RELEASE); }

void request_large_pages(void*, std::size_t) {}  // large pages need a privilege that few accounts have

MappedFile map_file(int file, std::size_t n_bytes) {
  const auto given = reinterpret_cast<HANDLE>(_get_osfhandle(file));
  LARGE_INTEGER size;
  if (!GetFileSizeEx(given, &size) || static_cast<std::size_t>(size.QuadPart) < n_bytes) too_short();
  HANDLE other = nullptr;
  if (!DuplicateHandle(GetCurrentProcess(), given, GetCurrentProcess(), &other, 0, FALSE, DUPLICATE_SAME_ACCESS))
    cannot_map(reason());
  Handle owned(other);
  return view_of(owned, n_bytes, PAGE_READONLY, FILE_MAP_READ);
}

MappedFile map_new_file(const std::string& folder, std::size_t n_bytes) {
  static std::atomic<unsigned> n_made = 0;
  const std::string path =
      folder + "\\spinney-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(n_made++);
  Handle file(CreateFileW(wide(path).c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_NEW,
                          FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (file.handle == INVALID_HANDLE_VALUE) cannot_open(path, reason());
  LARGE_INTEGER size;
  size.QuadPart = static_cast<LONGLONG>(n_bytes);
  if (!SetFilePointerEx(file.handle, size, nullptr, FILE_BEGIN) || !SetEndOfFile(file.handle))
    cannot_make(folder, n_bytes, reason());
  return view_of(file, n_bytes, PAGE_READWRITE, FILE_MAP_WRITE);
}

void unmap(const MappedFile& mapped) {
  UnmapViewOfFile(mapped.first);
  CloseHandle(mapped.file);
}

// Unlocking pages that are not locked removes them from the working set.
void release_pages(const MappedFile& mapped) { VirtualUnlock(mapped.first, mapped.n_bytes); }

// ReadFile need not see data written through a view.
void read(const MappedFile& mapped, std::size_t first, std::size_t n_bytes, void* to) {
  std::memcpy(to, static_cast<const std::byte*>(mapped.first) + first, n_bytes);
}

void fetch_ahead(const MappedFile&, std::size_t, std::size_t) {}

#else

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

// Closes the file descriptor; the mapping stays valid.
struct OpenFile {
  OpenFile(int opened, const std::string& path) : number(opened) {
    if (number < 0) cannot_open(path, reason(errno));
  }
  ~OpenFile() {
    if (number >= 0) close(number);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int keep() { return std::exchange(number, -1); }
  int number;
};

// 0, or the system's error number.
int reserve(int file, std::size_t n_bytes) {
  const auto size = static_cast<off_t>(n_bytes);
#if defined(__linux__)
  return posix_fallocate(file, 0, size);
#else
  fstore_t wanted{F_ALLOCATEALL, F_PEOFPOSMODE, 0, size, 0};
  if (fcntl(file, F_PREALLOCATE, &wanted) != 0 && errno != ENOTSUP) return errno;
  return ftruncate(file, size) == 0 ? 0 : errno;
#endif
}

MappedFile view_of(int file, std::size_t n_bytes, int protection) {
  void* const first = mmap(nullptr, n_bytes, protection, MAP_SHARED, file, 0);
  if (first == MAP_FAILED) cannot_map(reason(errno));
  return {first, n_bytes};
}

}  // namespace

int n_granted_processors() {
#if defined(__linux__)
  for (int n_cpus = CPU_SETSIZE; n_cpus <= (1 << 20); n_cpus *= 2) {  // the kernel refuses a mask that is too short
    cpu_set_t* mask = CPU_ALLOC(n_cpus);
    if (!mask) return 0;
    const auto bytes = CPU_ALLOC_SIZE(n_cpus);
    const int count = sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
#endif
  return 0;
}

std::string text_of(const std::string& path) {
#if defined(__linux__)
  return all_of(std::fopen(path.c_str(), "re"));
#else
  return all_of(std::fopen(path.c_str(), "r"));
#endif
}

bool on_first_thread() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

void sleep_for_ever() {
  for (;;) pause();
}

void run_in_forked_children(void (*f)()) { pthread_atfork(nullptr, nullptr, f); }

void call_without_signals(FunctionRef<void()> f) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF}) sigdelset(&all, signal);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;
  f();
}

// Maps more than requested, so that a large page starts inside, and returns the excess.
void* map_pages(std::size_t n_bytes) {
  const std::size_t n_requested = n_bytes + large_page;
  void* const mapped = mmap(nullptr, n_requested, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t n_before = (large_page - reinterpret_cast<std::uintptr_t>(begin) % large_page) % large_page;
  if (n_before > 0) munmap(begin, n_before);
  if (n_before < large_page) munmap(begin + n_before + n_bytes, large_page - n_before);
  return begin + n_before;
}

void unmap_pages(void* first, std::size_t n_bytes) { munmap(first, n_bytes); }

void request_large_pages([[maybe_unused]] void* first, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  madvise(first, n_bytes, MADV_HUGEPAGE);
#endif
}

MappedFile map_file(int file, std::size_t n_bytes) {
  struct stat about;
  if (fstat(file, &about) != 0 || static_cast<std::size_t>(about.st_size) < n_bytes) too_short();
  return view_of(file, n_bytes, PROT_READ);
}

MappedFile map_new_file(const std::string& folder, std::size_t n_bytes) {
  std::string path = folder + "/spinney-XXXXXX";
  OpenFile file(mkstemp(path.data()), path);
  unlink(path.c_str());
  fcntl(file.number, F_SETFD, FD_CLOEXEC);
  if (const int error = reserve(file.number, n_bytes)) cannot_make(folder, n_bytes, reason(error));
  MappedFile mapped = view_of(file.number, n_bytes, PROT_READ | PROT_WRITE);
  mapped.number = file.keep();
  return mapped;
}

void unmap(const MappedFile& mapped) {
  munmap(mapped.first, mapped.n_bytes);
  if (mapped.number >= 0) close(mapped.number);
}

void release_pages(const MappedFile& mapped) { madvise(mapped.first, mapped.n_bytes, MADV_DONTNEED); }

void read(const MappedFile& mapped, std::size_t first, std::size_t n_bytes, void* to) {
  auto* out = static_cast<std::byte*>(to);
  while (n_bytes > 0) {
    const ssize_t n = pread(mapped.number, out, n_bytes, static_cast<off_t>(first));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::runtime_error("cannot read a temporary file: " + reason(errno));
    if (n == 0) too_short();
    first += static_cast<std::size_t>(n);
    out += n;
    n_bytes -= static_cast<std::size_t>(n);
  }
}

void fetch_ahead([[maybe_unused]] const MappedFile& mapped, [[maybe_unused]] std::size_t first,
                 [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__)
  posix_fadvise(mapped.number, static_cast<off_t>(first), static_cast<off_t>(n_bytes), POSIX_FADV_WILLNEED);
#endif
}

#endif

}  // namespace spinney::platform
