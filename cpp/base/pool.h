// Parallel loops over tasks, run by one process-wide thread pool.
//
// A call offers n_threads - 1 seats to the pool and works on tasks as worker 0. When no task is left, it withdraws the
// seats that no thread took and waits for the threads that did. It never waits for a thread that was too slow to take a
// seat, so a busy machine costs no more than the missing help. Several threads may call at once: they share the pool's
// threads, and each finishes alone if none is free.
//
// The pool starts threads when they are first needed, lets them sleep between calls, and is abandoned at exit. A forked
// child starts with an empty pool.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace spinney {

namespace detail {

struct Tasks {
  std::size_t n_tasks;
  void* body;
  void (*call)(void* body, std::size_t task, int worker);
};

void run_in_pool(const Tasks& tasks, int n_threads);

// True on the pool's threads, and on any thread that runs a task.
inline constinit thread_local bool inside_task = false;

class InsideTask {
 public:
  InsideTask() : before_(inside_task) { inside_task = true; }
  ~InsideTask() { inside_task = before_; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;

 private:
  bool before_;
};

}  // namespace detail

// Runs body(task, worker) for every task in [0, n_tasks), on at most n_threads threads; the caller is worker
// 0 and every worker < n_threads. Tasks are handed out one by one in index order.
//
// If tasks throw, no further task starts and, once all workers have stopped, the exception of the lowest task
// that threw reaches the caller. Lower tasks have then all run, so which exception that is does not depend on
// n_threads.
//
// A call from inside a task runs inline as worker 0: scratch per worker must be sized per call, not shared with the
// enclosing call. With n_threads <= 1 or n_tasks <= 1 the call also runs inline and uses no pool.
template <class Body>
void parallel_for(std::size_t n_tasks, int n_threads, Body&& body) {
  if (n_threads <= 1 || n_tasks <= 1 || detail::inside_task) {
    const detail::InsideTask mark;
    for (std::size_t task = 0; task < n_tasks; ++task) body(task, 0);
    return;
  }
  using Callable = std::remove_reference_t<Body>;
  detail::Tasks tasks{
      n_tasks, const_cast<void*>(static_cast<const void*>(std::addressof(body))),
      [](void* callable, std::size_t task, int worker) { (*static_cast<Callable*>(callable))(task, worker); }};
  detail::run_in_pool(tasks, n_threads);
}

// For less work, waking a thread costs more than it saves.
inline constexpr double worth_a_wake_up_ns = 50'000;

// parallel_for for work that may be small: runs inline if all tasks together take less than worth_a_wake_up_ns.
template <class Body>
void parallel_for_if_worth(double estimated_ns, std::size_t n_tasks, int n_threads, Body&& body) {
  parallel_for(n_tasks, estimated_ns < worth_a_wake_up_ns ? 1 : n_threads, body);
}

}  // namespace spinney
