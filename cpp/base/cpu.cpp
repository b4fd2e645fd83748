#include "base/cpu.h"

#include <cstdlib>
#include <cstring>

namespace spinney {

static Isa offered() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) return Isa::avx2;
#endif
  return Isa::base;
}

static Isa choose() {
  const Isa best = offered();
  const char* wish = std::getenv("SPINNEY_ISA");
  if (wish == nullptr) return best;
  if (std::strcmp(wish, "base") == 0) return Isa::base;
  if (std::strcmp(wish, "avx2") == 0 && best != Isa::base) return Isa::avx2;
  return best;
}

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace spinney
