#include "base/threads.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "base/platform.h"
#include "base/recent_number.h"

namespace spinney {

namespace {

using detail::no_limit;
using platform::text_of;

// The number of threads, rounded up, for a quota of `quota` µs of CPU time in every `period` µs.
int threads_of_quota(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return no_limit;
  return static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, static_cast<double>(no_limit)));
}

// Removes the next number from a text and returns it; 0 if the text does not continue with a number.
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

// A quota applies to all groups below it, so the tightest one on the path up to the mount point counts. A container may
// see itself under its host's path, which does not exist inside: walking up then ends at the mount point, which is the
// container's group. A path with ".." is outside the mount.
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

// Parses a whole number of at least 1, with optional spaces around it; 0 for any other text.
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
  const char* omp = std::getenv("OMP_NUM_THREADS");  // "8" or, for nested levels, "8,2"; invalid values are ignored
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
  static constinit RecentNumber limit;
  const int of_machine = limit.get(std::chrono::steady_clock::now(), [] {
    const auto hardware = static_cast<int>(std::thread::hardware_concurrency());  // 0: unknown
    return std::min(hardware > 0 ? hardware : no_limit, detail::cgroup_limit(""));
  });
  const int granted = platform::n_granted_processors();  // 0: all
  const int n = std::min(granted > 0 ? granted : no_limit, of_machine);
  return n == no_limit ? 1 : std::max(1, n);
}

int resolve_threads(int n_jobs) {
  long long n = n_jobs;
  if (n_jobs < 0) n += available_threads() + 1LL;
  if (n_jobs == 0) n = default_threads();
  return static_cast<int>(std::clamp<long long>(n, 1, max_threads));
}

}  // namespace spinney
