// The processor's counter: how time goes by, in units that differ from processor to processor (24 MHz to 5 GHz).
#pragma once

#include <chrono>
#include <cstdint>

namespace spinney {

// Cheaper than a clock, of which it takes a fifth. Reads on two processors need not agree.
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
