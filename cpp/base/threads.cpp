#include "base/threads.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace spinney {

namespace {

using detail::no_limit;

// Whole threads for a quota of `quota` µs of CPU time in every `period` µs.
int threads_of_quota(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return no_limit;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, static_cast<double>(no_limit)));
}

// All of a small file; empty if there is none. No streams: their locales may clash with those of another copy of the C++
// library that some other extension module has brought into the process.
std::string text_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  std::string text;
  char part[4096];
  if (file)
    for (std::size_t n; (n = std::fread(part, 1, sizeof part, file.get())) > 0;) text.append(part, n);
  return text;
}

// The next number of a text, which it is taken from; 0 if what comes next is none.
long long take_number(std::string_view& text) {
  const auto first = text.find_first_not_of(" \t\n");
  text.remove_prefix(first == std::string_view::npos ? text.size() : first);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? value : 0;
}

// cpu.max holds "quota period", or "max period" where there is no limit.
int v2_limit(const std::string& folder) {
  const std::string text = text_of(folder + "/cpu.max");
  std::string_view rest = text;
  const long long quota = take_number(rest);
  return threads_of_quota(static_cast<double>(quota), static_cast<double>(take_number(rest)));
}

// The quota is -1 where there is no limit.
int v1_limit(const std::string& folder) {
  const std::string quota = text_of(folder + "/cpu.cfs_quota_us"), period = text_of(folder + "/cpu.cfs_period_us");
  std::string_view rest_of_quota = quota, rest_of_period = period;
  return threads_of_quota(static_cast<double>(take_number(rest_of_quota)),
                          static_cast<double>(take_number(rest_of_period)));
}

// A quota binds all groups below it, so the tightest one on the way up to the mount point counts. A container
// may see itself under its host's path, which does not exist inside: walking up then ends at the mount point,
// which is the container's own group. A path with ".." lies outside what is mounted.
int tightest(int (*limit_of)(const std::string&), const std::string& mount, std::string path) {
  if (path.find("/..") != std::string::npos) path.clear();
  int limit = no_limit;
  for (;;) {
    limit = std::min(limit, limit_of(mount + path));
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const auto comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

int affinity_limit() {
#ifdef __linux__
  for (int n_cpus = CPU_SETSIZE; n_cpus <= (1 << 20); n_cpus *= 2) {  // the kernel refuses a mask that is too short
    cpu_set_t* mask = CPU_ALLOC(n_cpus);
    if (!mask) return no_limit;
    const auto bytes = CPU_ALLOC_SIZE(n_cpus);
    const int count = sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
#endif
  return no_limit;
}

// A whole number of at least 1 that makes up all of `text` (spaces around it aside), else 0.
int positive_number(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return 0;
  text = text.substr(first, text.find_last_not_of(" \t") - first + 1);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return 0;
  if (error == std::errc::result_out_of_range) return text.front() == '-' ? 0 : no_limit;
  return static_cast<int>(std::clamp<long long>(value, 0, no_limit));
}

int default_threads() {
  const char* own = std::getenv("SPINNEY_NUM_THREADS");
  if (own && *own) {
    if (const int n = positive_number(own)) return n;
    throw std::invalid_argument("SPINNEY_NUM_THREADS is '" + std::string(own) +
                                "'; set it to a whole number of at least 1, or unset it.");
  }
  const int available = available_threads();
  const char* omp = std::getenv("OMP_NUM_THREADS");  // "8" or, for nested levels, "8,2"; not ours to complain about
  if (!omp) return available;
  const std::string_view levels(omp);
  const int cap = positive_number(levels.substr(0, levels.find(',')));
  return cap ? std::min(cap, available) : available;
}

}  // namespace

int detail::cgroup_limit(const std::string& root) {
  const std::string groups = text_of(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  int limit = no_limit;
  for (std::size_t begin = 0, end; begin < groups.size(); begin = end + 1) {  // id:controllers:path
    end = std::min(groups.find('\n', begin), groups.size());
    const std::string line = groups.substr(begin, end - begin);
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const auto path = line.substr(second + 1);
    if (controllers.empty()) {
      limit = std::min(limit, tightest(v2_limit, mount, path));
    } else if (names_cpu(controllers)) {
      limit = std::min(limit, tightest(v1_limit, mount + "/cpu", path));
      limit = std::min(limit, tightest(v1_limit, mount + "/" + controllers, path));
    }
  }
  return limit;
}

int available_threads() {
  const auto hardware = static_cast<int>(std::thread::hardware_concurrency());  // 0: unknown
  const int limit = std::min(affinity_limit(), detail::cgroup_limit(""));
  if (hardware > 0) return std::max(1, std::min(limit, hardware));
  return limit == no_limit ? 1 : limit;
}

int resolve_threads(int n_jobs) {
  long long n = n_jobs;
  if (n_jobs < 0) n += available_threads() + 1LL;
  if (n_jobs == 0) n = default_threads();
  return static_cast<int>(std::clamp<long long>(n, 1, max_threads));
}

}  // namespace spinney
