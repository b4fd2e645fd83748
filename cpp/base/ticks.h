// The processor's counter, a clock whose unit differs between processors (24 MHz to 5 GHz).
#pragma once

#include <chrono>
#include <cstdint>

namespace spinney {

// Five times as fast as reading a clock. Values read on different processors need not agree.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t counted;
  asm volatile("mrs %0, cntvct_el0" : "=r"(counted));
  return counted;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace spinney
