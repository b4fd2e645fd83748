// Which instruction set the kernels may use. Results do not depend on it.
//
// Kernels live in files that end in _body.cpp. The build compiles each of these once per instruction set, with SPINNEY_ISA
// defined as that set's name, and each copy defines one function that takes the set's tag:
//
//   const Kernels& kernels_of(OfIsa<Isa::SPINNEY_ISA>) { … }             in kernels_body.cpp
//   by_isa([](auto isa) -> const Kernels& { return kernels_of(isa); })   where one of them is chosen
//
// All else in such a file, and in headers it includes, has internal linkage or is always inlined: the linker must never take
// a function compiled for wide vectors in place of its plain namesake. tools/check_kernel_objects.cmake holds that.
#pragma once

namespace spinney {

enum class Isa { base, avx2, avx512 };

// The best the processor offers; the environment variable SPINNEY_ISA (base, avx2, avx512) can only lower it. Throws
// std::invalid_argument if it says anything else, on any processor.
Isa isa();

const char* name_of(Isa isa);

template <Isa>
struct OfIsa {};

// f(OfIsa<…>) of the instruction set in use.
template <class F>
decltype(auto) by_isa(F&& f) {
  const Isa chosen = isa();
#if defined(__x86_64__)
  if (chosen == Isa::avx512) return f(OfIsa<Isa::avx512>{});
  if (chosen == Isa::avx2) return f(OfIsa<Isa::avx2>{});
#endif
  static_cast<void>(chosen);  // elsewhere there is but one, yet an unknown wish is refused
  return f(OfIsa<Isa::base>{});
}

}  // namespace spinney
