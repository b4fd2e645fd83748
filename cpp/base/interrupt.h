// Stopping a long call from outside (Ctrl-C).
//
// The caller of a long operation creates one Interrupt on its stack; the operation calls check() every few milliseconds
// of work, on any thread. Only the owner, the thread that created it, calls `poll`; the other threads read a flag.
// While the owner waits inside parallel_for for its helpers, the pool polls on its behalf.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>

#include "base/ticks.h"

namespace spinney {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "the call was interrupted"; }
};

class Interrupt {
 public:
  static constexpr std::chrono::milliseconds poll_interval{50};

  // poll returns whether the user has requested a stop. It is called on the owner thread only, at most every
  // poll_interval, and must not throw.
  explicit Interrupt(bool (*poll)() = nullptr)
      : poll_(poll), outer_(current_), next_poll_(Clock::now() + poll_interval) {
    current_ = this;
  }
  ~Interrupt() { current_ = outer_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Throws Interrupted after a stop. Any thread may call it. When calls follow each other quickly the clock is not
  // read, because that takes as long as splitting a small node, and is a system call on some machines; every fourth
  // call reads the processor's counter.
  void check() {
    if (poll_ && std::this_thread::get_id() == owner_ && n_calls_++ % 4 == 0 && ticks() - last_ticks_ >= few_ticks) {
      poll_if_due();
      last_ticks_ = ticks();
    }
    if (stopped_.load(std::memory_order_relaxed)) throw Interrupted();
  }

  // Requests a stop. Any thread may call it.
  void request() { stopped_.store(true, std::memory_order_relaxed); }

  // The innermost Interrupt that this thread owns, or null.
  static Interrupt* of_this_thread() { return current_; }

  // Polls if poll_interval has passed. Owner only; never throws.
  void poll_if_due() {
    if (!poll_ || stopped_.load(std::memory_order_relaxed)) return;
    if (Clock::now() < next_poll_) return;
    if (poll_()) request();
    next_poll_ = Clock::now() + poll_interval;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t few_ticks = 1 << 18;  // 11 milliseconds of the slowest counter (24 MHz)

  bool (*poll_)();
  Interrupt* outer_;
  const std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point next_poll_;  // this member and those below belong to the owner
  std::uint64_t last_ticks_ = ticks();
  unsigned n_calls_ = 0;
  std::atomic<bool> stopped_{false};
  static inline constinit thread_local Interrupt* current_ = nullptr;
};

}  // namespace spinney
