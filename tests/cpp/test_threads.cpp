#include <chrono>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/recent_number.h"
#include "base/threads.h"

#ifdef __linux__
#include <sched.h>
#endif

#include "check.h"

using namespace spinney;
namespace fs = std::filesystem;

// A folder of fake system files that is removed after its test.
class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (fs::temp_directory_path() / "spinney_cgroup_XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for made-up files");
    root_ = name;
  }
  ~FakeRoot() { fs::remove_all(root_); }
  FakeRoot& file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return *this;
  }
  int limit() const { return detail::cgroup_limit(root_); }

 private:
  std::string root_;
};

// Sets (or, with null, unsets) an environment variable during a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, was_set_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

static const std::string v2 = "/sys/fs/cgroup", v1 = "/sys/fs/cgroup/cpu";

TEST(no_files_mean_no_limit) {
  CHECK_EQ(FakeRoot().limit(), detail::no_limit);
  CHECK_EQ(FakeRoot().file("/proc/self/cgroup", "").limit(), detail::no_limit);
  CHECK_EQ(FakeRoot().file("/proc/self/cgroup", "0::/a/b\n").limit(), detail::no_limit);
  CHECK_EQ(FakeRoot().file("/proc/self/cgroup", "rubbish\n:\n").limit(), detail::no_limit);
}

TEST(v2_quota_is_rounded_up) {
  const auto limit_of = [](const char* cpu_max) {
    return FakeRoot().file("/proc/self/cgroup", "0::/\n").file(v2 + "/cpu.max", cpu_max).limit();
  };
  CHECK_EQ(limit_of("200000 100000\n"), 2);
  CHECK_EQ(limit_of("150000 100000\n"), 2);
  CHECK_EQ(limit_of("100001 100000\n"), 2);
  CHECK_EQ(limit_of("1000 100000\n"), 1);
  CHECK_EQ(limit_of("max 100000\n"), detail::no_limit);
  CHECK_EQ(limit_of("200000 0\n"), detail::no_limit);
  CHECK_EQ(limit_of(""), detail::no_limit);
  CHECK_EQ(limit_of("99999999999999999 1\n"), detail::no_limit);
}

TEST(v2_tightest_ancestor_counts) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/user/slice/job\n").file(v2 + "/user/slice/job/cpu.max", "max 100000");
  CHECK_EQ(root.limit(), detail::no_limit);
  root.file(v2 + "/user/cpu.max", "300000 100000");
  CHECK_EQ(root.limit(), 3);
  root.file(v2 + "/user/slice/job/cpu.max", "500000 100000");
  CHECK_EQ(root.limit(), 3);
  root.file(v2 + "/user/slice/cpu.max", "50000 100000");
  CHECK_EQ(root.limit(), 1);
}

TEST(v2_another_group_does_not_count) {
  CHECK_EQ(FakeRoot().file("/proc/self/cgroup", "0::/a\n").file(v2 + "/b/cpu.max", "100000 100000").limit(),
           detail::no_limit);
}

TEST(v2_path_outside_the_mount_uses_the_mount) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/../other\n").file("/sys/fs/other/cpu.max", "100000 100000");
  CHECK_EQ(root.file(v2 + "/cpu.max", "400000 100000").limit(), 4);
}

TEST(v1_quota_and_period) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job\n2:cpuset:/s\n");
  root.file(v1 + "/job/cpu.cfs_quota_us", "-1\n").file(v1 + "/job/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(root.limit(), detail::no_limit);
  root.file(v1 + "/job/cpu.cfs_quota_us", "250000\n");
  CHECK_EQ(root.limit(), 3);
}

TEST(v1_in_a_container_that_sees_the_path_of_its_host) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "4:cpuacct,cpu:/docker/0123abc\n");
  root.file(v1 + "/cpu.cfs_quota_us", "200000\n").file(v1 + "/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(root.limit(), 2);
}

TEST(a_number_is_read_again_after_a_second) {
  RecentNumber number;
  int n_reads = 0;
  const auto at = [&](int ms) {
    return number.get(RecentNumber::Time(std::chrono::milliseconds(ms)), [&] { return ++n_reads; });
  };
  CHECK_EQ(at(0), 1);
  CHECK_EQ(at(500), 1);
  CHECK_EQ(at(999), 1);
  CHECK_EQ(at(1000), 2);
  CHECK_EQ(at(1500), 2);
  CHECK_EQ(at(60'000), 3);
}

TEST(v1_folder_named_after_both_controllers) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "4:cpu,cpuacct:/\n");
  root.file(v2 + "/cpu,cpuacct/cpu.cfs_quota_us", "200000\n").file(v2 + "/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(root.limit(), 2);
}

TEST(v1_a_controller_whose_name_only_begins_with_cpu_does_not_count) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "4:cpuset:/\n3:cpuacct:/\n");
  root.file(v1 + "/cpu.cfs_quota_us", "200000\n").file(v1 + "/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(root.limit(), detail::no_limit);
}

TEST(hybrid_takes_the_tighter) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "4:cpu:/job\n0::/job\n");
  root.file(v1 + "/job/cpu.cfs_quota_us", "300000\n").file(v1 + "/job/cpu.cfs_period_us", "100000\n");
  CHECK_EQ(root.limit(), 3);
  root.file(v2 + "/job/cpu.max", "200000 100000\n");
  CHECK_EQ(root.limit(), 2);
}

TEST(available_threads_is_between_one_and_the_hardware) {
  CHECK(available_threads() >= 1);
  CHECK(available_threads() <= static_cast<int>(std::thread::hardware_concurrency()));
}

#ifdef __linux__
TEST(available_threads_follows_the_affinity_mask) {
  cpu_set_t before, one;
  CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  CHECK_EQ(available_threads(), 1);
  CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  CHECK(available_threads() >= 1 && available_threads() <= CPU_COUNT(&before));
}
#endif

TEST(n_jobs_positive_is_used_as_given) {
  const Environment own("SPINNEY_NUM_THREADS", "3");
  CHECK_EQ(resolve_threads(1), 1);
  CHECK_EQ(resolve_threads(100), 100);
  CHECK_EQ(resolve_threads(1024), 1024);
  CHECK_EQ(resolve_threads(1025), 1024);
  CHECK_EQ(resolve_threads(INT_MAX), 1024);
}

TEST(n_jobs_negative_counts_from_all) {
  const Environment own("SPINNEY_NUM_THREADS", "77"), omp("OMP_NUM_THREADS", "1");
  const int all = available_threads();
  CHECK_EQ(resolve_threads(-1), all);
  CHECK_EQ(resolve_threads(-2), all > 1 ? all - 1 : 1);
  CHECK_EQ(resolve_threads(-1000), 1);
  CHECK_EQ(resolve_threads(INT_MIN), 1);
}

TEST(n_jobs_none_reads_the_environment) {
  const int all = available_threads();
  const Environment own("SPINNEY_NUM_THREADS", nullptr);
  {
    const Environment omp("OMP_NUM_THREADS", nullptr);
    CHECK_EQ(resolve_threads(0), all);
  }
  const auto with_omp = [](const char* value) {
    const Environment omp("OMP_NUM_THREADS", value);
    return resolve_threads(0);
  };
  CHECK_EQ(with_omp("1"), 1);
  CHECK_EQ(with_omp(" 1 , 4"), 1);
  CHECK_EQ(with_omp("9999"), all);
  CHECK_EQ(with_omp("99999999999999999999999"), all);
  for (const char* invalid : {"", "0", "-1", "two", "1x", ",1"}) CHECK_EQ(with_omp(invalid), all);
}

TEST(spinney_variable_wins_and_must_be_a_number) {
  const Environment omp("OMP_NUM_THREADS", "1");
  const auto with_own = [](const char* value) {
    const Environment own("SPINNEY_NUM_THREADS", value);
    return resolve_threads(0);
  };
  CHECK_EQ(with_own("7"), 7);
  CHECK_EQ(with_own(" 12 "), 12);
  CHECK_EQ(with_own("5000"), 1024);
  CHECK_EQ(with_own("99999999999999999999999"), 1024);
  CHECK_EQ(with_own(""), 1);
  for (const char* invalid : {"0", "-1", "-99999999999999999999999", "two", "1x", "3,2", " "})
    CHECK_THROWS(with_own(invalid), std::invalid_argument);
}
