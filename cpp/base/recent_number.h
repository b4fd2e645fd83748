// A number that is read again when it is a second old.
#pragma once

#include <atomic>
#include <chrono>

namespace spinney {

// Threads may call at once.
class RecentNumber {
 public:
  using Time = std::chrono::steady_clock::time_point;

  template <class Read>
  int get(Time now, Read&& read) {
    if (now.time_since_epoch().count() < old_at_.load(std::memory_order_acquire)) return number_.load();
    const int number = read();
    number_.store(number);
    old_at_.store((now + std::chrono::seconds(1)).time_since_epoch().count(), std::memory_order_release);
    return number;
  }

 private:
  std::atomic<Time::rep> old_at_{std::chrono::steady_clock::duration::min().count()};
  std::atomic<int> number_{0};
};

}  // namespace spinney
