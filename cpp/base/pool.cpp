#include "base/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/interrupt.h"
#include "base/near_tasks.h"
#include "base/platform.h"
#include "base/threads.h"

namespace spinney::detail {

namespace {

constinit thread_local std::size_t thread_number = 0;

// Long enough to catch the next call of a tight sequence, too short to starve another process.
constexpr std::chrono::microseconds spin_time{20};

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Yields between polls: on a busy machine the awaited thread may be queued for the same core and would otherwise lose
// all of spin_time (90th percentile of a slow call: 4 µs with yielding, 24 µs without).
template <class Condition>
void spin_until(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return;
      pause_cpu();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
}

// One parallel_for: it lives on the caller's stack until the last worker has left.
struct Job {
  explicit Job(const Tasks& job_tasks) : tasks(job_tasks) {}

  void work(int worker) {
    for (;;) {
      const auto task = next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks.n_tasks) return;
      try {
        tasks.call(tasks.body, task, worker);
      } catch (...) {
        fail(task, std::current_exception());
      }
    }
  }

  void fail(std::size_t task, std::exception_ptr error) {
    next_task.store(tasks.n_tasks, std::memory_order_relaxed);
    const std::lock_guard lock(failure_mutex);
    if (task >= failed_task) return;
    failed_task = task;
    failure = std::move(error);
  }

  const Tasks tasks;
  alignas(64) std::atomic<std::size_t> next_task{0};
  alignas(64) std::atomic<int> next_worker{1};

  std::mutex failure_mutex;
  std::size_t failed_task = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure;
};

// Where a job offers seats. Taking a seat and leaving it are one atomic step each: with a mutex, 16 threads took 35 µs
// to enter and leave a job. Slots belong to the pool, because a thread may look at one whose job has just ended.
class alignas(64) Slot {
 public:
  // Called under the pool's mutex.
  bool is_free() const { return job_ == nullptr; }
  void open(Job& job, int n_seats) {
    job_ = &job;
    seats_and_helpers_.store(static_cast<std::uint64_t>(n_seats), std::memory_order_release);
  }
  void clear() { job_ = nullptr; }

  Job* take_seat() {
    std::uint64_t now = seats_and_helpers_.load(std::memory_order_acquire);
    while ((now & seats) > 0)
      if (seats_and_helpers_.compare_exchange_weak(now, now - 1 + one_helper, std::memory_order_acq_rel)) return job_;
    return nullptr;
  }
  // Returns whether the caller sleeps until the last helper has left; the job may be gone.
  bool leave() {
    const std::uint64_t before = seats_and_helpers_.fetch_sub(one_helper);
    return before == one_helper && has_sleeper_.load();
  }
  int withdraw_seats() { return static_cast<int>(seats_and_helpers_.fetch_and(~seats) & seats); }
  bool is_left() const { return seats_and_helpers_.load() == 0; }
  void set_sleeper(bool has_sleeper) { has_sleeper_.store(has_sleeper); }

  std::condition_variable all_left;

 private:
  static constexpr std::uint64_t seats = 0xffffffff, one_helper = seats + 1;  // free seats; helpers in the upper half
  std::atomic<std::uint64_t> seats_and_helpers_{0};
  std::atomic<bool> has_sleeper_{false};
  Job* job_ = nullptr;
};

class Pool {
 public:
  void run(Job& job, int n_seats);

  Pool* abandoned = nullptr;  // the pool of the parent process after a fork

 private:
  static constexpr std::size_t most_slots = 16;  // further calls at the same time get no help

  Slot* open(Job& job, int n_seats);
  void close(Slot& slot);
  void wait_for_helpers(Slot& slot);
  void grow(int n_wanted);
  void work(std::size_t number);
  Slot* take_seat(Job*& job);

  std::mutex mutex_;
  std::condition_variable seat_offered_;
  std::array<Slot, most_slots> slots_;
  std::atomic<std::size_t> n_slots_{0};  // those that were ever used
  std::atomic<int> n_free_seats_{0};     // in all slots
  std::atomic<int> n_searching_{0};      // threads that are awake and will look for a seat before they sleep
  int n_threads_ = 0, n_sleeping_ = 0;   // under the mutex
};

// A plain pointer instead of a function-level static: another thread could hold the guard of a static during a fork.
constinit std::atomic<Pool*> current_pool{nullptr};
constinit Pool* abandoned_pools = nullptr;

// After a fork the threads are gone and the mutex may stay locked: the old pool is never used again. It stays
// reachable, so that leak checkers do not report it.
void abandon_pool_in_child() {
  Pool* old = current_pool.exchange(nullptr);
  if (!old) return;
  old->abandoned = abandoned_pools;
  abandoned_pools = old;
}

[[maybe_unused]] const bool registered = (platform::run_in_forked_children(abandon_pool_in_child), true);

Pool* the_pool() {
  Pool* pool = current_pool.load(std::memory_order_acquire);
  if (pool) return pool;
  Pool* fresh = new (std::nothrow) Pool;
  if (!fresh) return nullptr;
  if (current_pool.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return pool;
}

// Starts as many threads as the system grants: fewer are slower, but not wrong.
void Pool::grow(int n_wanted) {
  if (n_threads_ >= n_wanted) return;
  try {
    platform::call_without_signals([&] {
      for (; n_threads_ < n_wanted; ++n_threads_, ++n_searching_)
        std::thread([this, number = static_cast<std::size_t>(n_threads_) + 1] { work(number); }).detach();
    });
  } catch (const std::exception&) {
  }
}

// Returns null if no slot is free.
Slot* Pool::open(Job& job, int n_seats) {
  int n_to_wake = 0;
  Slot* slot = slots_.data();
  {
    const std::lock_guard lock(mutex_);
    while (slot != slots_.data() + most_slots && !slot->is_free()) ++slot;
    if (slot == slots_.data() + most_slots) return nullptr;
    grow(n_seats);
    slot->open(job, n_seats);
    const auto n_used = static_cast<std::size_t>(slot - slots_.data()) + 1;
    if (n_used > n_slots_.load(std::memory_order_relaxed)) n_slots_.store(n_used, std::memory_order_release);
    const int n_free = n_free_seats_.fetch_add(n_seats) + n_seats;
    n_to_wake = std::min(n_free - n_searching_.load(), n_sleeping_);
  }
  for (; n_to_wake > 0; --n_to_wake) seat_offered_.notify_one();
  return slot;
}

void Pool::close(Slot& slot) {
  n_free_seats_.fetch_sub(slot.withdraw_seats());
  if (!slot.is_left()) wait_for_helpers(slot);
  const std::lock_guard lock(mutex_);
  slot.clear();
}

void Pool::wait_for_helpers(Slot& slot) {
  const auto is_left = [&] { return slot.is_left(); };
  spin_until(is_left);
  if (is_left()) return;
  slot.set_sleeper(true);
  Interrupt* interrupt = Interrupt::of_this_thread();
  std::unique_lock lock(mutex_);
  while (!slot.all_left.wait_for(lock, Interrupt::poll_interval, is_left)) {
    lock.unlock();  // a poll may wait for other threads of the application
    if (interrupt) interrupt->poll_if_due();
    lock.lock();
  }
  slot.set_sleeper(false);
}

void Pool::run(Job& job, int n_seats) {
  Slot* slot = open(job, n_seats);
  {
    const InsideTask mark;
    job.work(0);
  }
  if (slot == nullptr) return;
  if (current_pool.load(std::memory_order_relaxed) == this) return close(*slot);
  // A task has forked and this is the child process: the helpers exist in the parent only.
  slot->withdraw_seats();
  if (!slot->is_left())
    throw std::runtime_error("The process was forked inside a parallel loop, which the child process cannot finish.");
}

Slot* Pool::take_seat(Job*& job) {
  for (std::size_t i = 0, n = n_slots_.load(std::memory_order_acquire); i < n; ++i) {
    job = slots_[i].take_seat();
    if (job == nullptr) continue;
    n_free_seats_.fetch_sub(1);
    return &slots_[i];
  }
  return nullptr;
}

// The main function of a pool thread, which counts as searching before it starts.
void Pool::work(std::size_t number) {
  inside_task = true;
  thread_number = number;
  for (;;) {
    Job* job = nullptr;
    Slot* slot = take_seat(job);
    if (!slot) {
      spin_until([&] { return n_free_seats_.load(std::memory_order_relaxed) > 0; });
      slot = take_seat(job);
    }
    if (slot) {
      n_searching_.fetch_sub(1);
    } else {  // seats are offered under the mutex: none is overlooked
      std::unique_lock lock(mutex_);
      n_searching_.fetch_sub(1);
      for (slot = take_seat(job); !slot; slot = take_seat(job)) {
        ++n_sleeping_;
        seat_offered_.wait(lock);
        --n_sleeping_;
      }
    }
    job->work(job->next_worker.fetch_add(1, std::memory_order_relaxed));
    if (current_pool.load(std::memory_order_relaxed) != this)
      return;  // forked by a task: the child process has no pool
    n_searching_.fetch_add(1);
    if (!slot->leave()) continue;
    const std::lock_guard lock(mutex_);  // its caller is waiting, or about to look again
    slot->all_left.notify_one();
  }
}

}  // namespace

std::size_t number_of_this_thread() { return thread_number; }

void run_in_pool(const Tasks& tasks, int n_threads) {
  const auto n_workers = std::min<std::size_t>({tasks.n_tasks, static_cast<std::size_t>(n_threads), max_threads});
  Job job(tasks);
  if (Pool* pool = the_pool()) {
    pool->run(job, static_cast<int>(n_workers) - 1);
  } else {
    const InsideTask mark;
    job.work(0);
  }
  if (job.failure) std::rethrow_exception(std::move(job.failure));
}

}  // namespace spinney::detail
