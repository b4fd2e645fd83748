// The number of threads a call may use: limited by the machine, the affinity mask and the container's quota.
#pragma once

#include <string>

namespace spinney {

inline constexpr int max_threads = 1024;

// The smallest of affinity mask, cgroup CPU quota (rounded up) and hardware; at least 1. All three may change while the
// process runs. Quota and hardware are read again after a second, because reading their files takes longer than predicting
// a row.
int available_threads();

// Converts the n_jobs of an estimator to a number of threads in [1, max_threads].
//   n_jobs > 0   that many
//   n_jobs < 0   all available but -n_jobs - 1 of them
//   n_jobs == 0  SPINNEY_NUM_THREADS if set; else all available, at most OMP_NUM_THREADS if that is set (joblib sets
//                it in its worker processes)
// Throws std::invalid_argument where SPINNEY_NUM_THREADS is needed and is not a whole number of at least 1.
int resolve_threads(int n_jobs);

namespace detail {

inline constexpr int no_limit = 1 << 30;

// The CPU quota of this process's cgroup and its ancestors (v2, v1 or hybrid), rounded up, or no_limit. The files are
// read below `root`: "" on a real machine, a folder of fake files in tests.
int cgroup_limit(const std::string& root);

}  // namespace detail
}  // namespace spinney
