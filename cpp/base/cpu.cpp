#include "base/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

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

const char* name_of(Isa isa) { return isa == Isa::base ? "base" : isa == Isa::avx2 ? "avx2" : "avx512"; }

static Isa choose() {
  const Isa best = offered();
  const char* variable = std::getenv("SPINNEY_ISA");
  const std::string wish = variable == nullptr ? "" : variable;
  if (wish.empty()) return best;
  for (const Isa known : {Isa::base, Isa::avx2, Isa::avx512})
    if (wish == name_of(known)) return std::min(best, known);
  throw std::invalid_argument("The environment variable SPINNEY_ISA is '" + wish +
                              "'. Set it to 'base', 'avx2' or 'avx512', or not at all.");
}

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

}  // namespace spinney
