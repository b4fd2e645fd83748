#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "base/near_tasks.h"
#include "base/pool.h"
#include "check.h"

using namespace spinney;
using namespace std::chrono_literals;

// Threads that a forked child uses. ThreadSanitizer cannot follow threads started after a fork ("dup thread with used
// id"): with it these tests only check the parent.
#ifdef __SANITIZE_THREAD__
constexpr int n_child_threads = 1;
#else
constexpr int n_child_threads = 4;
#endif

static std::uint64_t sum_of_squares(std::size_t n, int n_threads) {
  std::vector<std::uint64_t> partial(static_cast<std::size_t>(n_threads));
  parallel_for(n, n_threads,
               [&](std::size_t task, int worker) { partial.at(static_cast<std::size_t>(worker)) += task * task; });
  return std::accumulate(partial.begin(), partial.end(), std::uint64_t{0});
}

static std::uint64_t expected_sum(std::uint64_t n) { return n == 0 ? 0 : (n - 1) * n * (2 * n - 1) / 6; }

// True once `n` tasks are here at once, which proves that n threads run. Gives up after ten seconds.
class Meeting {
 public:
  explicit Meeting(int n) : n_missing_(n) {}
  bool join() {
    n_missing_.fetch_sub(1);
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (n_missing_.load() > 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(100us);
    }
    return true;
  }

 private:
  std::atomic<int> n_missing_;
};

// The exit status of a child that runs `body`; -1 if it crashed or did not end within `seconds`.
template <class Body>
static int status_of_child(int seconds, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(seconds));
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(every_task_runs_once) {
  for (int n_threads : {1, 2, 3, 8}) {
    for (std::size_t n : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      parallel_for(n, n_threads, [&](std::size_t task, int worker) {
        runs[task].fetch_add(1);
        CHECK(worker >= 0 && worker < n_threads);
      });
      for (const auto& count : runs) CHECK_EQ(count.load(), 1);
      CHECK_EQ(sum_of_squares(n, n_threads), expected_sum(n));
    }
  }
}

TEST(no_task_runs_nothing_for_any_number_of_threads) {
  for (int n_threads : {-1, 0, 1, 4}) parallel_for(0, n_threads, [](std::size_t, int) { CHECK(false); });
}

TEST(one_thread_or_one_task_runs_on_the_caller_in_order) {
  const auto caller = std::this_thread::get_id();
  for (int n_threads : {-3, 0, 1}) {
    std::vector<std::size_t> order;
    parallel_for(5, n_threads, [&](std::size_t task, int worker) {
      CHECK(std::this_thread::get_id() == caller);
      CHECK_EQ(worker, 0);
      order.push_back(task);
    });
    CHECK(order == std::vector<std::size_t>({0, 1, 2, 3, 4}));
  }
  parallel_for(1, 8, [&](std::size_t, int worker) { CHECK(std::this_thread::get_id() == caller && worker == 0); });
}

TEST(the_caller_is_worker_0_and_workers_are_distinct_threads) {
  const auto caller = std::this_thread::get_id();
  Meeting meeting(4);
  std::vector<std::thread::id> thread_of(4);
  parallel_for(4, 4, [&](std::size_t, int worker) {
    thread_of[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
    CHECK(meeting.join());
  });
  CHECK(thread_of[0] == caller);
  CHECK_EQ(std::set<std::thread::id>(thread_of.begin(), thread_of.end()).size(), 4u);
}

TEST(the_pool_grows_to_the_largest_call_and_still_serves_small_ones) {
  for (int n_threads : {2, 12, 3, 40}) {
    Meeting meeting(n_threads);
    std::atomic<int> n_met{0};
    parallel_for(static_cast<std::size_t>(n_threads), n_threads, [&](std::size_t, int) { n_met += meeting.join(); });
    CHECK_EQ(n_met.load(), n_threads);
  }
}

TEST(a_body_may_be_const_or_move_only_or_an_lvalue) {
  std::atomic<int> n{0};
  const auto body = [&n](std::size_t, int) { ++n; };
  parallel_for(10, 2, body);
  auto owning = [&n, owned = std::make_unique<int>(1)](std::size_t, int) { n += *owned; };
  parallel_for(10, 2, owning);
  parallel_for(10, 2, std::move(owning));
  CHECK_EQ(n.load(), 30);
}

TEST(the_exception_of_the_lowest_task_reaches_the_caller) {
  for (int n_threads : {1, 2, 8}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::atomic<int> n_running{0}, n_started{0};
      std::string message;
      try {
        parallel_for(10'000, n_threads, [&](std::size_t task, int) {
          ++n_running;
          ++n_started;
          if (task == 20) std::this_thread::sleep_for(50us);  // a higher task is likely to throw first
          --n_running;
          if (task >= 20) throw std::runtime_error(std::to_string(task));
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK_EQ(message, "20");
      CHECK_EQ(n_running.load(), 0);
      CHECK(n_started.load() <= 21 + n_threads);
    }
  }
  CHECK_EQ(sum_of_squares(100, 8), expected_sum(100));
}

TEST(the_lowest_task_wins_whichever_throws_first) {
  for (std::size_t late : {0, 1}) {
    Meeting meeting(2);
    std::string message;
    try {
      parallel_for(2, 2, [&](std::size_t task, int) {
        meeting.join();
        if (task == late) std::this_thread::sleep_for(20ms);
        throw std::runtime_error(std::to_string(task));
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK_EQ(message, "0");
  }
}

TEST(an_exception_thrown_by_a_helper_reaches_the_caller) {
  Meeting meeting(2);
  CHECK_THROWS(parallel_for(2, 2,
                            [&](std::size_t, int worker) {
                              meeting.join();
                              if (worker == 1) throw std::bad_alloc();
                            }),
               std::bad_alloc);
}

TEST(nested_calls_run_inline_as_worker_0) {
  for (int n_threads : {1, 4}) {
    std::atomic<int> n{0};
    parallel_for(8, n_threads, [&](std::size_t, int) {
      const auto outer = std::this_thread::get_id();
      std::size_t expected = 0;
      parallel_for(16, 4, [&](std::size_t task, int worker) {
        CHECK(std::this_thread::get_id() == outer);
        CHECK_EQ(worker, 0);
        CHECK_EQ(task, expected++);
        ++n;
      });
    });
    CHECK_EQ(n.load(), 8 * 16);
  }
}

TEST(a_nested_exception_passes_through_and_the_next_call_is_parallel_again) {
  const auto fail = [](std::size_t, int) { throw std::domain_error("inner"); };
  CHECK_THROWS(parallel_for(4, 2, [&](std::size_t, int) { parallel_for(4, 2, fail); }), std::domain_error);
  CHECK_THROWS(parallel_for(1, 1, fail), std::domain_error);
  Meeting meeting(2);
  parallel_for(2, 2, [&](std::size_t, int) { CHECK(meeting.join()); });
}

TEST(every_near_task_runs_once) {
  for (int n_threads : {1, 2, 3, 8}) {
    for (std::size_t n : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      parallel_for_near(n, n_threads, [&](std::size_t task, int worker) {
        CHECK(worker >= 0 && worker < n_threads);
        ++runs[task];
      });
      for (const auto& r : runs) CHECK_EQ(r.load(), 1);
    }
  }
}

TEST(near_tasks_of_absent_workers_are_done_by_others) {
  std::vector<std::atomic<int>> runs(1000);
  parallel_for_near(1000, 4, [&](std::size_t task, int worker) {
    if (worker > 0) std::this_thread::sleep_for(1ms);
    ++runs[task];
  });
  for (const auto& r : runs) CHECK_EQ(r.load(), 1);
}

TEST(an_exception_of_a_near_task_reaches_the_caller) {
  for (int n_threads : {1, 4}) {
    bool is_thrown = false;
    try {
      parallel_for_near(100, n_threads, [](std::size_t task, int) {
        if (task == 37) throw std::runtime_error("37");
      });
    } catch (const std::runtime_error& error) {
      is_thrown = std::string(error.what()) == "37";
    }
    CHECK(is_thrown);
  }
}

TEST(small_work_runs_inline) {
  const auto caller = std::this_thread::get_id();
  parallel_for_if_worth(49'999, 100, 4, [&](std::size_t, int) { CHECK(std::this_thread::get_id() == caller); });
  Meeting meeting(2);
  parallel_for_if_worth(50'000, 2, 2, [&](std::size_t, int) { CHECK(meeting.join()); });
}

TEST(callers_on_many_threads_share_the_pool) {
  std::vector<std::thread> callers;
  std::atomic<int> n_wrong{0};
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&, caller] {
      for (std::size_t n = 0; n < 200; ++n) n_wrong += sum_of_squares(n, 2 + caller) != expected_sum(n);
    });
  for (auto& caller : callers) caller.join();
  CHECK_EQ(n_wrong.load(), 0);
}

TEST(a_caller_is_not_held_up_by_workers_busy_elsewhere) {
  std::atomic<bool> release{false};
  std::atomic<int> n_holding{0};
  std::thread hog([&] {
    parallel_for(64, 64, [&](std::size_t, int) {
      ++n_holding;
      while (!release) std::this_thread::sleep_for(200us);
    });
  });
  while (n_holding < 2) std::this_thread::sleep_for(100us);
  CHECK_EQ(sum_of_squares(1000, 8), expected_sum(1000));
  release = true;
  hog.join();
}

TEST(many_tiny_calls) {
  std::uint64_t wrong = 0;
  for (int i = 0; i < 20'000; ++i)
    wrong += sum_of_squares(static_cast<std::size_t>(i % 5), 2 + i % 3) != expected_sum(i % 5);
  CHECK_EQ(wrong, 0u);
}

TEST(calls_far_apart_wake_sleeping_workers) {
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(2ms);
    Meeting meeting(3);
    parallel_for(3, 3, [&](std::size_t, int) { CHECK(meeting.join()); });
  }
}

TEST(a_forked_child_has_a_working_pool) {
  CHECK_EQ(sum_of_squares(1000, 4), expected_sum(1000));
  const int status = status_of_child(30, [] {
    Meeting meeting(n_child_threads);
    std::atomic<int> n_met{0};
    parallel_for(n_child_threads, n_child_threads, [&](std::size_t, int) { n_met += meeting.join(); });
    const int grandchild =
        status_of_child(20, [] { return sum_of_squares(100, n_child_threads) == expected_sum(100) ? 7 : 1; });
    return n_met == n_child_threads && grandchild == 7 ? 42 : 1;
  });
  CHECK_EQ(status, 42);
  CHECK_EQ(sum_of_squares(1000, 4), expected_sum(1000));
}

TEST(fork_while_other_threads_are_inside_parallel_for) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (std::size_t n = 0; !stop; ++n) CHECK_EQ(sum_of_squares(n % 50, 4), expected_sum(n % 50));
    });
  for (int i = 0; i < 30; ++i)
    CHECK_EQ(status_of_child(20, [] { return sum_of_squares(500, n_child_threads) == expected_sum(500) ? 42 : 1; }),
             42);
  stop = true;
  for (auto& caller : callers) caller.join();
}

TEST(fork_inside_a_task_raises_an_error_in_the_child) {
  Meeting all_busy(2), forked(2);
  const pid_t parent = getpid();
  int status = 0;
  bool child_reported = false;
  try {
    parallel_for(2, 2, [&](std::size_t, int worker) {
      all_busy.join();
      if (worker == 0) {
        const pid_t child = fork();
        if (child == 0) return;
        waitpid(child, &status, 0);
      }
      forked.join();
    });
  } catch (const std::runtime_error&) {
    child_reported = true;
  }
  if (getpid() != parent) _exit(child_reported ? 42 : 1);
  CHECK(!child_reported);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their run-times abort without memory
TEST(fewer_threads_where_the_system_refuses_more) {
  const int status = status_of_child(30, [] {
    const rlimit little{std::size_t{256} << 20, std::size_t{256} << 20};  // enough for about thirty stacks
    if (setrlimit(RLIMIT_AS, &little) != 0) return 2;
    std::atomic<int> n_workers{0};
    std::vector<std::atomic<bool>> seen(1024);
    parallel_for(2000, 1024, [&](std::size_t, int worker) {
      if (!seen[static_cast<std::size_t>(worker)].exchange(true)) ++n_workers;
      std::this_thread::sleep_for(200us);
    });
    if (n_workers < 2 || n_workers > 100) return 3;
    return sum_of_squares(1000, 1024) == expected_sum(1000) ? 42 : 4;
  });
  CHECK_EQ(status, 42);
}
#endif

// A process ends while its pool sleeps, or while it is busy. The program runs itself for that, because leak checkers
// cannot inspect a forked child.
[[noreturn]] static void exit_with_pool(bool busy) {
  alarm(30);
  sum_of_squares(1000, 8);
  std::this_thread::sleep_for(5ms);
  if (!busy) std::exit(42);
  std::atomic<int> n_running{0};
  std::thread([&n_running] {
    parallel_for(100, 4, [&](std::size_t, int) {
      ++n_running;
      std::this_thread::sleep_for(1s);
    });
  }).detach();
  while (n_running < 4) std::this_thread::sleep_for(1ms);
  std::exit(42);
}

static const char* const exit_scenario_variable = "SPINNEY_TEST_EXIT";
[[maybe_unused]] static const bool is_exit_scenario = [] {
  if (const char* scenario = std::getenv(exit_scenario_variable)) exit_with_pool(std::string(scenario) == "busy");
  return false;
}();

TEST(exit_with_sleeping_and_with_busy_workers) {
  for (const char* scenario : {"asleep", "busy"}) {
    const int status = status_of_child(30, [&] {
      setenv(exit_scenario_variable, scenario, 1);
      return execl("/proc/self/exe", "test_pool", nullptr);
    });
    CHECK_EQ(status, 42);
  }
}

TEST(an_interrupt_stops_all_workers) {
  for (int n_threads : {1, 4}) {
    Interrupt interrupt;
    std::atomic<int> n_done{0};
    CHECK_THROWS(parallel_for(100'000, n_threads,
                              [&](std::size_t task, int) {
                                interrupt.check();
                                if (task == 100) interrupt.request();
                                ++n_done;
                              }),
                 Interrupted);
    CHECK(n_done.load() >= 100 && n_done.load() < 100'000);
    CHECK_THROWS(interrupt.check(), Interrupted);
  }
}

static std::atomic<int> n_polls{0};
static std::atomic<bool> polled_elsewhere{false};
static std::thread::id polling_thread;

static bool stop_at_third_poll() {
  if (std::this_thread::get_id() != polling_thread) polled_elsewhere = true;
  return ++n_polls >= 3;
}

TEST(only_the_owner_polls_and_not_too_often) {
  n_polls = 0;
  polling_thread = std::this_thread::get_id();
  const auto start = std::chrono::steady_clock::now();
  Interrupt interrupt(stop_at_third_poll);
  CHECK_THROWS(parallel_for(1'000'000, 4,
                            [&](std::size_t, int) {
                              interrupt.check();
                              std::this_thread::sleep_for(100us);
                            }),
               Interrupted);
  CHECK(std::chrono::steady_clock::now() - start >= 150ms);
  CHECK_EQ(n_polls.load(), 3);
  CHECK(!polled_elsewhere.load());
  CHECK_THROWS(interrupt.check(), Interrupted);
  CHECK_EQ(n_polls.load(), 3);
}

TEST(calls_that_come_fast_and_then_slowly_are_polled_in_time) {
  n_polls = 0;
  Interrupt interrupt([] { return ++n_polls < 0; });  // counts, and never stops
  for (int i = 0; i < 1'000'000; ++i) interrupt.check();
  const auto start = std::chrono::steady_clock::now();
  const int before = n_polls.load();
  while (n_polls.load() == before && std::chrono::steady_clock::now() - start < 5s) {
    std::this_thread::sleep_for(10ms);
    interrupt.check();
  }
  CHECK(std::chrono::steady_clock::now() - start < 1s);
}

TEST(after_fast_calls_a_few_slow_ones_are_polled) {
  n_polls = 0;
  Interrupt interrupt([] { return ++n_polls < 0; });  // counts, and never stops
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100'000; ++i) interrupt.check();
    const int before = n_polls.load();
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(2 * Interrupt::poll_interval);
      interrupt.check();
    }
    CHECK(n_polls.load() > before);
  }
}

TEST(the_owner_polls_while_it_waits_for_helpers) {
  n_polls = 0;
  polling_thread = std::this_thread::get_id();
  Interrupt interrupt(stop_at_third_poll);
  Meeting both_busy(2);
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS(parallel_for(2, 2,
                            [&](std::size_t, int worker) {
                              both_busy.join();
                              while (worker == 1 && std::chrono::steady_clock::now() - start < 10s) {
                                interrupt.check();
                                std::this_thread::sleep_for(1ms);
                              }
                            }),
               Interrupted);
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  CHECK_EQ(n_polls.load(), 3);
}
