#include "base/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/interrupt.h"
#include "base/platform.h"
#include "base/threads.h"

namespace spinney::detail {

namespace {

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
  Job(const Tasks& job_tasks, int seats) : tasks(job_tasks), n_free_seats(seats) {}

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

  // Written under the pool's mutex.
  alignas(64) std::atomic<int> n_inside{0};  // pool threads working on this job
  int n_free_seats;
  int next_worker = 1;
  Job* next = nullptr;  // next job in the pool's queue
  std::condition_variable all_left;

  std::mutex failure_mutex;
  std::size_t failed_task = std::numeric_limits<std::size_t>::max();
  std::exception_ptr failure;
};

class Pool {
 public:
  void run(Job& job);

  Pool* abandoned = nullptr;  // the pool of the parent process after a fork

 private:
  void open(Job& job);
  void close(Job& job);
  void wait_for_helpers(Job& job, std::unique_lock<std::mutex>& lock);
  void grow(int n_wanted);
  void work();
  Job* take_seat(int& worker);

  std::mutex mutex_;
  std::condition_variable seat_offered_;
  Job* first_job_ = nullptr;          // the jobs with tasks left to hand out
  std::atomic<int> n_free_seats_{0};  // in all jobs; written under the mutex
  int n_threads_ = 0;
  int n_searching_ = 0;  // threads that are awake and will look for a seat before they sleep
  int n_sleeping_ = 0;
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
      for (; n_threads_ < n_wanted; ++n_threads_, ++n_searching_) std::thread([this] { work(); }).detach();
    });
  } catch (const std::exception&) {
  }
}

void Pool::open(Job& job) {
  int n_to_wake;
  {
    const std::lock_guard lock(mutex_);
    grow(job.n_free_seats);
    Job** end = &first_job_;
    while (*end) end = &(*end)->next;
    *end = &job;
    const int n_free = n_free_seats_.load(std::memory_order_relaxed) + job.n_free_seats;
    n_free_seats_.store(n_free, std::memory_order_relaxed);
    n_to_wake = std::min(n_free - n_searching_, n_sleeping_);
  }
  for (; n_to_wake > 0; --n_to_wake) seat_offered_.notify_one();
}

void Pool::close(Job& job) {
  std::unique_lock lock(mutex_);
  Job** link = &first_job_;
  while (*link != &job) link = &(*link)->next;
  *link = job.next;
  n_free_seats_.fetch_sub(job.n_free_seats, std::memory_order_relaxed);
  if (job.n_inside.load(std::memory_order_relaxed) > 0) wait_for_helpers(job, lock);
}

// The lock is held again at the end, so that no helper can still access the job.
void Pool::wait_for_helpers(Job& job, std::unique_lock<std::mutex>& lock) {
  const auto all_left = [&] { return job.n_inside.load(std::memory_order_relaxed) == 0; };
  lock.unlock();
  spin_until(all_left);
  lock.lock();
  Interrupt* interrupt = Interrupt::of_this_thread();
  if (!interrupt) return job.all_left.wait(lock, all_left);
  while (!job.all_left.wait_for(lock, Interrupt::poll_interval, all_left)) {
    lock.unlock();  // a poll may wait for other threads of the application
    interrupt->poll_if_due();
    lock.lock();
  }
}

void Pool::run(Job& job) {
  open(job);
  {
    const InsideTask mark;
    job.work(0);
  }
  if (current_pool.load(std::memory_order_relaxed) == this) return close(job);
  // A task has forked and this is the child process: the helpers exist in the parent only.
  if (job.n_inside.load(std::memory_order_relaxed) > 0)
    throw std::runtime_error("The process was forked inside a parallel loop, which the child process cannot finish.");
}

Job* Pool::take_seat(int& worker) {
  for (Job* job = first_job_; job; job = job->next) {
    if (job->n_free_seats == 0) continue;
    --job->n_free_seats;
    n_free_seats_.fetch_sub(1, std::memory_order_relaxed);
    job->n_inside.fetch_add(1, std::memory_order_relaxed);
    worker = job->next_worker++;
    return job;
  }
  return nullptr;
}

// The main function of a pool thread, which counts as searching before it starts.
void Pool::work() {
  inside_task = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    int worker = 0;
    Job* job = take_seat(worker);
    if (!job) {
      lock.unlock();
      spin_until([&] { return n_free_seats_.load(std::memory_order_relaxed) > 0; });
      lock.lock();
      job = take_seat(worker);
    }
    --n_searching_;
    while (!job) {
      ++n_sleeping_;
      seat_offered_.wait(lock);
      --n_sleeping_;
      job = take_seat(worker);
    }
    lock.unlock();
    job->work(worker);
    if (current_pool.load(std::memory_order_relaxed) != this)
      return;  // forked by a task: the child process has no pool
    lock.lock();
    ++n_searching_;
    if (job->n_inside.fetch_sub(1, std::memory_order_relaxed) == 1) job->all_left.notify_one();
  }
}

}  // namespace

void run_in_pool(const Tasks& tasks, int n_threads) {
  const auto n_workers = std::min<std::size_t>({tasks.n_tasks, static_cast<std::size_t>(n_threads), max_threads});
  Job job(tasks, static_cast<int>(n_workers) - 1);
  if (Pool* pool = the_pool()) {
    pool->run(job);
  } else {
    const InsideTask mark;
    job.work(0);
  }
  if (job.failure) std::rethrow_exception(std::move(job.failure));
}

}  // namespace spinney::detail
