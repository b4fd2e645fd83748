// A parallel loop whose tasks use more of the same data the closer they are: chunks of rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "base/pool.h"

namespace spinney {

namespace detail {

// Numbers the pool's threads; 0 on other threads.
std::size_t number_of_this_thread();

}  // namespace detail

// parallel_for in which each thread has a range of the tasks, the same in every loop, and helps with the others' ranges
// when it has finished. So the data of a row are mostly written and read by the same core: with tasks in order, 16 threads
// spent 13 times as much processor time as one thread on rounding gradients, because each read what another core had just
// written. Tasks start in no particular order, and if several throw, any of the exceptions reaches the caller.
template <class Body>
void parallel_for_near(std::size_t n_tasks, int n_threads, Body&& body) {
  if (n_threads <= 1 || n_tasks <= 1 || detail::inside_task) return parallel_for(n_tasks, 1, body);
  struct alignas(64) Range {
    std::atomic<std::size_t> next = 0;
    std::size_t end = 0;
  };
  const std::size_t n = std::min(n_tasks, static_cast<std::size_t>(n_threads));
  std::vector<Range> ranges(n);
  for (std::size_t r = 0; r < n; ++r) {
    ranges[r].next = r * n_tasks / n;
    ranges[r].end = (r + 1) * n_tasks / n;
  }
  parallel_for(n, n_threads, [&](std::size_t, int worker) {
    const std::size_t own = detail::number_of_this_thread();
    for (std::size_t i = 0; i < n; ++i) {
      Range& range = ranges[(own + i) % n];
      for (std::size_t task = range.next++; task < range.end; task = range.next++) body(task, worker);
    }
  });
}

template <class Body>
void parallel_for_near_if_worth(double estimated_ns, std::size_t n_tasks, int n_threads, Body&& body) {
  parallel_for_near(n_tasks, estimated_ns < worth_a_wake_up_ns ? 1 : n_threads, body);
}

}  // namespace spinney
