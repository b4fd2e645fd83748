// The results of f(OfIsa<…>) for each instruction set of this machine, the plain one first.
#pragma once

#include <type_traits>
#include <vector>

#include "base/cpu.h"

template <class F>
auto of_every_isa(F f) {
  using namespace spinney;
  std::vector<std::invoke_result_t<F, OfIsa<Isa::base>>> all{f(OfIsa<Isa::base>{})};
#if defined(__x86_64__)
  if (isa() != Isa::base) all.push_back(f(OfIsa<Isa::avx2>{}));
  if (isa() == Isa::avx512) all.push_back(f(OfIsa<Isa::avx512>{}));
#endif
  return all;
}
