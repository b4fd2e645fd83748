// Stopping a long call from outside (Ctrl-C).
//
// The caller of a long operation makes one Interrupt on its stack; the operation calls check() every few
// milliseconds of work, on whatever thread. Only the owner, the thread that made it, ever asks the outside
// world
// (`poll`); the other threads look at a flag. While the owner waits inside parallel_for for its helpers, the
// pool polls on its behalf.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace spinney {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "the call was interrupted"; }
};

class Interrupt {
 public:
  static constexpr std::chrono::milliseconds poll_interval{50};

  // poll: has the user asked to stop? Called on the owner thread only, at most every poll_interval; must not
  // throw.
  explicit Interrupt(bool (*poll)() = nullptr)
      : poll_(poll), outer_(current_), next_poll_(Clock::now() + poll_interval) {
    current_ = this;
  }
  ~Interrupt() { current_ = outer_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Throws Interrupted once stopped. Any thread.
  void check() {
    if (poll_ && std::this_thread::get_id() == owner_) poll_if_due();
    if (stopped_.load(std::memory_order_relaxed)) throw Interrupted();
  }

  // Asks all to stop. Any thread.
  void request() { stopped_.store(true, std::memory_order_relaxed); }

  // The innermost Interrupt that this thread owns, or null.
  static Interrupt* of_this_thread() { return current_; }

  // Asks the outside world if poll_interval has passed. Owner only; throws nothing.
  void poll_if_due() {
    if (!poll_ || stopped_.load(std::memory_order_relaxed)) return;
    const auto now = Clock::now();
    if (now < next_poll_) return;
    if (poll_()) request();
    next_poll_ = Clock::now() + poll_interval;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool (*poll_)();
  Interrupt* outer_;
  const std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point next_poll_;  // the owner's alone
  std::atomic<bool> stopped_{false};
  static inline constinit thread_local Interrupt* current_ = nullptr;
};

}  // namespace spinney
